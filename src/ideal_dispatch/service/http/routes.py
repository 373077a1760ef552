"""The API: advice and what dispatchers do with it, units, what a desk needs, and health."""

import asyncio
import re
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Query, Request
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.responses import JSONResponse, Response, StreamingResponse

from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.service import clock
from ideal_dispatch.service.admission import BusyError
from ideal_dispatch.service.audit.units import DepotUnits
from ideal_dispatch.service.clock import moment_text
from ideal_dispatch.service.http import access, answer_schemas, closures, dispatches, fleet, schemas
from ideal_dispatch.service.http.access import Caller, Dispatcher, Reader, Serving, still_there
from ideal_dispatch.service.http.answer_schemas import Health, Recommendation, SessionOut, UnitsOut
from ideal_dispatch.service.http.eido import news_of, request_of
from ideal_dispatch.service.http.fleet import UnitNewsIn
from ideal_dispatch.service.http.protection import SLOT
from ideal_dispatch.service.http.refusals import BODY, ToldOneByOneError, documented, there
from ideal_dispatch.service.http.simulation import Simulator
from ideal_dispatch.service.observations import CONTENT_TYPE
from ideal_dispatch.service.units.unit import check_told_at

ASK, EIDO, UNITS = "/v1/recommendations", "/v1/incidents/eido", "/v1/units"
SESSION, SIMULATED = "/v1/session", "/v1/simulated-calls"

calls, units, desk, health = OWN = [
    APIRouter(tags=[tag]) for tag in ("recommendations", "units", "desk", "health")
]
PARTS = [calls, units, fleet.router, dispatches.router, closures.router, desk, health]

_PRINTABLE = re.compile(r"[ -~]{1,200}")  # keys
_SESSION_S = 12 * 3600
_NEWS_S = 0.3  # of a call's time, for recording what its EIDO tells of units

Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)]
Told = Annotated[
    list[schemas.UnitsIn],
    Body(min_length=1, max_length=500, examples=[[{"depot": "Kelp Point", "units": 2}]]),
]


def _content(kind: str) -> dict[str, Any]:
    """What describes a route for readers that answers with other content than JSON."""
    return {"response_class": Response, "responses": documented(403, 503, content=kind)}


class Json(Response):
    """JSON, written quickly: an advice has hundreds of coordinates."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return to_json(content)


@calls.post(ASK, responses=documented(403, *BODY, 409, 503, model=Recommendation))
async def recommend(
    request: schemas.RecommendationRequest,
    asked: Request,
    service: Serving,
    caller: Caller,
    key: Key = None,
) -> Json:
    """Whether a second ambulance is worth sending to this call, and from where.

    The same call, key and body give the same answer and one row in the audit. A new body with
    a new key is a new revision. Without a key the body itself is the key.
    """
    key, slot = _one_key(key, request.idempotency_key), asked.scope[SLOT]
    call, content = request.call(), request.content()
    return Json(await service.recommender.recommend(call, content, key, caller.name, slot))


@calls.post(EIDO, responses=documented(403, *BODY, 409, 503, model=Recommendation))
async def eido(
    document: Annotated[dict[str, Any], Body()],  # no example: tools would follow the `$ref` in it
    asked: Request,
    service: Serving,
    caller: Caller,
    key: Key = None,
) -> Json:
    """Advice for a NENA EIDO (NENA-STA-021.1): its incident and its location by value.

    The primary is the first dispatched resource that is a unit of the fleet or of a depot of ours;
    where there is none, the router chooses one. What the document tells of units of the fleet is
    known before the advice, unless it makes no sense. Free units are those of PUT /v1/units or
    PUT /v1/fleet/units.
    """

    def is_unit(name: str) -> bool:
        return service.ledger.units.find(name) is not None

    request = request_of(document, service.recommender.names.knows, is_unit)
    if news := news_of(document, is_unit, fleet.status_codes(service)):
        with suppress(IdealError, ValidationError, TimeoutError):  # the call comes first
            async with asyncio.timeout(_NEWS_S):
                known = service.ledger.units
                told = [{**one, "id": unit.id} for one in news if (unit := known.find(one["id"]))]
                await fleet.tell([UnitNewsIn(**one) for one in told], service, caller.name)
    return await recommend(request, asked, service, caller, key)


def _one_key(header: str | None, body: str | None) -> str | None:
    """The idempotency key, from wherever it was given."""
    if header is not None and body is not None and header != body:
        raise InputError("Idempotency-Key and idempotency_key differ; give one of them")
    key = header if header is not None else body
    if key is not None and _PRINTABLE.fullmatch(key) is None:
        raise InputError("idempotency key: 1 to 200 printable ASCII characters are needed")
    return key


@calls.get(ASK, responses=documented(403, 422, 503, model=list[Recommendation]))
async def recent(
    service: Serving, reader: Reader, limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> Json:
    """The latest recommendations, newest first."""
    return Json(await service.ledger.recent(limit))


@calls.get(f"{ASK}/{{id}}", responses=documented(403, 404, 422, 503, model=Recommendation))
async def one(id: schemas.Id, service: Serving, reader: Reader) -> Json:  # noqa: A002
    """One recommendation, with the response to it."""
    return Json(there(await service.ledger.get(id)))


@calls.post(
    f"{ASK}/{{id}}/response",
    dependencies=[Depends(still_there)],
    responses=documented(403, 404, 409, *BODY, 503, model=Recommendation),
)
async def respond(
    id: schemas.Id,  # noqa: A002
    response: schemas.HumanResponse,
    service: Serving,
    dispatcher: Dispatcher,
) -> Json:
    """What the dispatcher did: accept, or override with a reason. The last one counts.

    An advice that expired or that a newer one replaced is not answered any more: 409 with the
    code `advice_expired` or `advice_superseded`.
    """
    return Json(there(await service.respond(id, response.model_dump(), dispatcher.name)))


# --- units ------------------------------------------------------------------------


@units.get(UNITS, responses=documented(403, model=list[UnitsOut]))
async def known(service: Serving, reader: Reader) -> JSONResponse:
    """Free units of every depot, as last told, and the calls that units are promised to."""
    return JSONResponse(service.units())


@units.put(
    UNITS,
    dependencies=[Depends(still_there)],
    responses=documented(403, 409, *BODY, 503, model=list[UnitsOut]),
)
async def tell(told: Told, service: Serving, caller: Caller) -> JSONResponse:
    """Tell free units of some or all depots, now or as of `updated_at`.

    A count older than the one that is known is refused with 409, one that is more than 5 s ahead
    of the clock here with 422; no count is changed then.
    """
    if service.ledger.units.fleet:
        raise ToldOneByOneError("units are told one by one here; use PUT /v1/fleet/units")
    names, now = service.recommender.names, clock.now()
    counts: dict[str, schemas.UnitsIn] = {}
    for one in told:
        depot = names.find(one.depot)
        if depot in counts:
            raise InputError(f"{depot} is told twice; give one count of each depot")
        counts[depot] = one
    moment = service.ledger.units.moment(counts, now)
    news = []
    for depot, one in counts.items():
        at = moment if one.updated_at is None else one.updated_at
        check_told_at(f"updated_at of {depot}", at, now)
        news.append(DepotUnits(depot, one.units, at))
    await service.set_units(news, caller.name)
    return JSONResponse(service.units())


# --- what a desk needs ------------------------------------------------------------


@desk.post(SESSION, responses=documented(*BODY, model=SessionOut))
async def sign_in(
    request: Request, service: Serving, given: Annotated[schemas.SessionIn | None, Body()] = None
) -> JSONResponse:
    """Keep a token, of the body or of the Authorization header, in a cookie for this browser."""
    token = access.bearer(request)
    if given is not None and given.token is not None:
        token = given.token.strip()
    who = access.owner(request, token)
    response = JSONResponse({"name": who.name, "role": who.role})
    response.set_cookie(
        access.COOKIE, token or "", max_age=_SESSION_S, httponly=True, samesite="strict",
        secure=service.settings.server.secure_cookie or request.url.scheme == "https",
    )  # fmt: skip
    return response


@desk.get(SESSION, responses=documented(model=SessionOut))
async def who(reader: Reader) -> JSONResponse:
    """Whose session it is."""
    return JSONResponse({"name": reader.name, "role": reader.role})


@desk.delete(SESSION, status_code=204, response_class=Response)
async def sign_out() -> Response:
    """Forget the cookie."""
    response = Response(status_code=204)
    response.delete_cookie(access.COOKIE, httponly=True, samesite="strict")
    return response


@desk.get("/v1/languages", responses={200: {"model": list[str]}})
async def languages(service: Serving) -> JSONResponse:
    """The languages that the desk offers, for anybody: the sign-in page has them too."""
    return JSONResponse(list(service.settings.city.languages))


@desk.get("/v1/city", responses=documented(403, model=answer_schemas.CityOut))
async def city(service: Serving, reader: Reader) -> JSONResponse:
    """Name, depots, extent and clock."""
    facts, free = service.solver.facts, {row["depot"]: row["units"] for row in service.units()}
    west, south, east, north = facts.bounds
    return JSONResponse({
        "name": facts.name,
        "depots": [
            {"name": name, "lon": lon, "lat": lat, "units": free[name]}
            for name, (lon, lat) in facts.depots.items()
        ],
        "centre": [round((west + east) / 2, 6), round((south + north) / 2, 6)],
        "bounds": [west, south, east, north],
        "time_zone": facts.time_zone,
        "simulated": service.settings.demo,
        "clock": {"now": moment_text(clock.now()), "speed": clock.speed()},
        "units": "fleet" if service.ledger.units.fleet else "counts",
        "cover": await service.cover(),
    })  # fmt: skip


@desk.get("/v1/network.geojson", **_content("application/geo+json"))
async def network(request: Request, service: Serving, reader: Reader) -> Response:
    """The roads, for a map without internet."""
    tag = f'"{service.solver.facts.checksums["network"]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    roads = await service.road_map()
    headers["ETag"] = f'"{roads.checksum}"'
    packed = "gzip" in request.headers.get("accept-encoding", "")
    if packed:
        headers["Content-Encoding"] = "gzip"
    content = roads.packed if packed else roads.plain
    return Response(content, media_type="application/geo+json", headers=headers)


@desk.get("/v1/events", **_content("text/event-stream"))
async def events(service: Serving, reader: Reader) -> StreamingResponse:
    """What happens, as it happens: server-sent events.

    Events are `recommendation`, `response`, `units`, `fleet`, `dispatch`, `closures` and `health`;
    a ping comes every 5 s.
    """
    if service.hub.full:
        raise BusyError("too many desks listen; close some")
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(service.hub.listen(), media_type="text/event-stream", headers=headers)


@desk.get("/v1/model-card", **_content("text/markdown"))
async def model_card(service: Serving, reader: Reader) -> Response:
    """What the model is, learned from, and good for."""
    card = await service.solver.ask("model_card")
    return Response(card, media_type="text/markdown; charset=utf-8")


@desk.post(SIMULATED, responses=documented(403, *BODY, model=answer_schemas.Simulation))
async def simulate(
    asked: schemas.SimulatedCalls, request: Request, service: Serving, reader: Reader
) -> JSONResponse:
    """Invent calls, to see decisions flow. For admins, and for all on the embedded city."""
    if not service.settings.demo:
        access.check_role(reader, "admin")
    simulator: Simulator = request.app.state.simulator
    simulator.ask(asked.count, asked.every_s)
    return JSONResponse(simulator.status())


@desk.get(SIMULATED, responses=documented(403, model=answer_schemas.Simulation))
async def simulated(request: Request, reader: Reader) -> JSONResponse:
    """How many simulated calls are still to come."""
    simulator: Simulator = request.app.state.simulator
    return JSONResponse(simulator.status())


# --- health -----------------------------------------------------------------------


@health.get("/healthz", responses={200: {"model": Health}})
async def alive(service: Serving) -> JSONResponse:
    """The process answers."""
    status, parts = service.health()
    return JSONResponse({"status": status, "parts": parts})


@health.get("/readyz", responses={200: {"model": Health}, 503: {"model": Health}})
async def ready(service: Serving) -> JSONResponse:
    """Advice can be given; 503 while the service starts. A degraded service is ready."""
    status, parts = service.health()
    return JSONResponse({"status": status, "parts": parts}, 503 if status == "starting" else 200)


@health.get("/metrics", responses=documented(403, content="text/plain"), response_class=Response)
async def metrics(request: Request, service: Serving) -> Response:
    """Numbers for Prometheus, for auditors and admins unless the settings make them public."""
    if not service.settings.server.public_metrics:
        access.check_role(access.token_of(request), "auditor", "admin")
    return Response(service.measure(), media_type=CONTENT_TYPE)

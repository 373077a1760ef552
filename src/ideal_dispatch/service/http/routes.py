"""The API: advice and replies, units, closures, dispatches, what a desk needs, and health."""

# ruff: noqa: A002 - the addresses name an id

import asyncio
import gzip
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Query, Request
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic_core import to_json
from starlette.responses import Response, StreamingResponse

from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.forecast.model_directory import model_card as card_of
from ideal_dispatch.service import closures as closed_roads
from ideal_dispatch.service import dispatches as followed
from ideal_dispatch.service import recommending, unit_news
from ideal_dispatch.service import requests as schemas
from ideal_dispatch.service.clock import micros
from ideal_dispatch.service.errors import BusyError, ConflictError
from ideal_dispatch.service.http import access
from ideal_dispatch.service.http import answer_schemas as out
from ideal_dispatch.service.http.access import Admin, Changer, Dispatcher, Reader
from ideal_dispatch.service.http.eido import Eido
from ideal_dispatch.service.http.protection import ASK, BEGAN, EIDO, SESSION, UNITS
from ideal_dispatch.service.http.refusals import REFUSALS, or_404
from ideal_dispatch.service.record.database import State, Transaction
from ideal_dispatch.service.service import CityNow, Health, Service
from ideal_dispatch.service.settings import authenticate

CLOSURES, DISPATCHES, SIMULATED = "/v1/closures", "/v1/dispatches", "/v1/simulated-calls"

calls, units, closures, dispatches, desk = OWN = [
    APIRouter(tags=[tag], responses=REFUSALS)
    for tag in ("recommendations", "units", "closures", "dispatches", "desk")
]
health = APIRouter(tags=["health"])
PARTS = [*OWN, health]

_SESSION_S = 12 * 3600
_NEWS_S = 0.3  # of a call's time, for what its EIDO says of units
_GEOMETRY = {"shared_edges": True, "route": {"edges": True, "geojson": True}}
_LONG = {
    "why": True, "considered": True, "made_with": True, "primary": _GEOMETRY, "second": _GEOMETRY,
}  # fmt: skip


def service_of(request: Request) -> Service:
    """The state that all requests share."""
    service: Service = request.app.state.service
    return service


Serving = Annotated[Service, Depends(service_of)]
Key = Annotated[schemas.Key | None, Header(alias="Idempotency-Key")]
Brief = Annotated[bool, Query(description="Leave out geometry and explanation.")]


def _json(content: Any, status: int = 200, **options: Any) -> Response:
    """JSON, written quickly: an advice has hundreds of coordinates."""
    return Response(to_json(content, **options), status, media_type="application/json")


# --- recommendations --------------------------------------------------------------


@calls.post(ASK, response_model=out.Recommendation)
async def recommend(
    request: schemas.RecommendationRequest,
    asked: Request,
    service: Serving,
    caller: Changer,
    key: Key = None,
    brief: Brief = False,
) -> Response:
    """Whether a second ambulance is worth sending to this call, and from where.

    The same call, key and body give the same answer and one row on record. A new body with
    a new key is a new revision. Without a key the body itself is the key.
    """
    if key is not None and request.idempotency_key not in (None, key):
        raise InputError("Idempotency-Key and idempotency_key differ; give one of them")
    key = key or request.idempotency_key
    made = await service.recommend(request, key, caller.name, asked.scope[BEGAN])
    return _json(made, exclude=_LONG if brief else None)


@calls.post(EIDO, response_model=out.Recommendation)
async def eido(
    document: Annotated[dict[str, Any], Body()],  # no example: tools would follow the `$ref` in it
    asked: Request,
    service: Serving,
    caller: Changer,
    key: Key = None,
    brief: Brief = False,
) -> Response:
    """Advice for a NENA EIDO (NENA-STA-021.1): its incident and its location by value.

    The primary is the first dispatched resource that is a known unit or of a depot of ours;
    otherwise the router chooses one. What the document says of known units is on record before
    the advice, unless it makes no sense.
    """
    known: set[str] = set()
    with suppress(IdealError, TimeoutError):  # the call comes first
        async with asyncio.timeout(_NEWS_S):
            known = await service.read(lambda state: {unit.id for unit in state.units()})
    read = await asyncio.to_thread(Eido, document)
    request = await asyncio.to_thread(read.request, service.depots.knows, known.__contains__)
    news = await asyncio.to_thread(read.news, known.__contains__, service.settings.units.codes)
    if news:
        with suppress(IdealError, TimeoutError):
            async with asyncio.timeout(_NEWS_S):
                await service.update_units(news, caller.name)
    return await recommend(request, asked, service, caller, key, brief)


@calls.get(ASK, response_model=list[out.Recommendation])
async def recent(
    service: Serving,
    reader: Reader,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    brief: Brief = False,
) -> Response:
    """The latest recommendations, newest first."""
    rows = await service.read(partial(recommending.latest, limit=limit))
    return _json([row.public() for row in rows], exclude={"__all__": _LONG} if brief else None)


@calls.get(f"{ASK}/{{id}}", response_model=out.Recommendation)
async def recommendation(
    id: schemas.Id, service: Serving, reader: Reader, brief: Brief = False
) -> Response:
    """One recommendation, with the reply to it."""
    found = or_404(await service.read(lambda state: state.advice(id)))
    return _json(found.public(), exclude=_LONG if brief else None)


@calls.post(f"{ASK}/{{id}}/reply", response_model=out.Recommendation)
async def reply(
    id: schemas.Id, said: schemas.ReplyIn, service: Serving, dispatcher: Dispatcher
) -> Response:
    """What the dispatcher did: accept, or override with a reason; the first reply is final.

    A running dispatch takes `stand_down`, `keep` and `send_one`. 409 where it no longer holds, by
    `code`: `unit_promised`, `unit_gone`, `answered`, `expired`, `superseded` or `ended`.
    """
    given = said.model_dump(exclude={"question"} if said.question is None else None)
    change = partial(followed.reply, id=id, said=given, actor=dispatcher.name)
    made = or_404(await service.write(change))
    service.metrics.replies.labels(said.action).inc()
    return _json(made)


# --- units ------------------------------------------------------------------------


def _plain(service: Service, state: State, id: str | None = None) -> list[dict[str, Any]]:
    stale_s, found = service.settings.units.position_stale_s, state.units()
    return [unit.plain(state.now, stale_s) for unit in found if id in (None, unit.id)]


@units.get(UNITS, response_model=list[out.UnitOut])
async def all_units(service: Serving, reader: Reader) -> Response:
    """Every unit, as last reported."""
    return _json(await service.read(partial(_plain, service)))


@units.get(f"{UNITS}/{{id:path}}", response_model=out.UnitOut)
async def one_unit(id: schemas.UnitInPath, service: Serving, reader: Reader) -> Response:
    """One unit."""
    found = await service.read(partial(_plain, service, id=id))
    return _json(or_404(next(iter(found), None)))


@units.put(UNITS, response_model=out.UpdateOut)
async def update_units(
    news: Annotated[
        list[schemas.News],
        Body(min_length=1, max_length=1000, examples=[schemas.UNITS_EXAMPLE]),
    ],
    service: Serving,
    changer: Changer,
) -> Response:
    """Report units, one by one or as counts of free ones by depot, in one list.

    Reports older than what is known change nothing. All are refused where one makes no sense.
    """
    return _json(await service.update_units(news, changer.name))


@units.put(f"{UNITS}/{{id:path}}", response_model=out.UpdateOut)
async def update_unit(
    id: schemas.UnitInPath, news: schemas.UnitIn, service: Serving, changer: Changer
) -> Response:
    """Report one unit. A report older than what is known changes nothing."""
    one = schemas.UnitInList(id=id, **news.model_dump())
    return _json(await service.update_units([one], changer.name))


@units.delete(f"{UNITS}/{{id:path}}", status_code=204, response_class=Response)
async def delete_unit(id: schemas.UnitInPath, service: Serving, changer: Changer) -> Response:
    """Remove a unit that is no longer in service."""
    removed = await service.write(partial(unit_news.remove, id=id, actor=changer.name))
    or_404(removed or None)
    return Response(status_code=204)


# --- closures ---------------------------------------------------------------------


@closures.get(CLOSURES, response_model=list[out.ClosureOut])
async def all_closures(service: Serving, reader: Reader) -> Response:
    """Closures that are in force or will be, in the order in which they were made."""
    plain = service.closures.plain
    return _json(
        await service.read(lambda state: [plain(row, state.now) for row in state.closures()])
    )


@closures.post(CLOSURES, status_code=201, response_model=out.ClosureOut)
async def close(closure: schemas.ClosureIn, service: Serving, changer: Changer) -> Response:
    """Close a road or an area: no route of an advice drives there while it is closed.

    It ends by itself at `until`, or when it is deleted.
    """
    drawn = {"edges": closure.edges, "line": closure.line, "polygon": closure.polygon}
    kind, points = next((kind, shape) for kind, shape in drawn.items() if shape is not None)
    edges = await asyncio.to_thread(service.closures.draw, kind, points, closure.whole_city)
    shape = {
        **drawn, "edges": list(edges), "network": service.engine.checksums["network"],
        "reason": closure.reason or "", "by": changer.name,
    }  # fmt: skip
    id_ = recommending.new_id()
    since, until = (None if at is None else micros(at) for at in (closure.since, closure.until))

    def change(tx: Transaction) -> dict[str, Any]:
        return service.closures.plain(closed_roads.close(tx, id_, shape, since, until), tx.now)

    return _json(await service.write(change), 201)


@closures.delete(f"{CLOSURES}/{{id}}", status_code=204, response_class=Response)
async def end_closure(id: schemas.Id, service: Serving, changer: Changer) -> Response:
    """Open it again, before its time is over or before it began."""
    ended = await service.write(partial(closed_roads.end, id=id, actor=changer.name))
    or_404(ended or None)
    return Response(status_code=204)


# --- dispatches -------------------------------------------------------------------


@dispatches.get(DISPATCHES, response_model=list[out.DispatchOut])
async def all_dispatches(service: Serving, reader: Reader) -> Response:
    """Dispatches with a second unit: running ones, and those that ended within the last hour."""
    rows = await service.read(followed.shown)
    return _json([followed.plain(row) for row in rows])


@dispatches.get(f"{DISPATCHES}/{{id}}", response_model=out.DispatchOut)
async def dispatch(id: schemas.Id, service: Serving, reader: Reader) -> Response:
    """One dispatch; its id is that of the recommendation."""
    row = or_404(await service.read(lambda state: state.advice(id)))
    return _json(or_404(followed.plain(row)))


# --- what a desk needs ------------------------------------------------------------


def _content(kind: str) -> dict[str, Any]:
    """What describes a route that answers with other content than JSON."""
    return {"response_class": Response, "responses": {200: {"content": {kind: {}}}}}


@desk.get("/v1/events", **_content("text/event-stream"))
async def events(
    service: Serving,
    reader: Reader,
    after: Annotated[int | None, Query(ge=0)] = None,
    last: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> StreamingResponse:
    """What happens, as it happens: server-sent events, resumable by their `id`.

    Events are `recommendation`, `reply`, `units`, `closures`, `dispatch`, `promise_lost` and
    `health`; a ping comes every 5 s. Without `after` or `Last-Event-ID` it begins with now.
    """
    if service.events.full:
        raise BusyError("too many clients listen to events; close some")
    if last is not None and last.isdecimal() and len(last) < 19:
        after = int(last)  # of the connection before this one
    if after is not None and service.events.is_ahead(after):
        number = await service.read(lambda state: state.head.number)
        if after > number:
            words = f"the log ends at row {number}: {after} is of another database; read all again"
            raise ConflictError("not_in_log", words)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        service.events.listen(after), media_type="text/event-stream", headers=headers
    )


@desk.get("/v1/city", response_model=CityNow)
async def city(service: Serving, reader: Reader) -> Response:
    """Name, depots, extent, clock, and how far the next call is from help."""
    return _json(await service.city())


@desk.get("/v1/network.geojson", **_content("application/geo+json"))
async def network(request: Request, service: Serving, reader: Reader) -> Response:
    """The roads, for a map without internet."""
    tag = f'"{service.engine.checksums["network"]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    roads = await asyncio.to_thread(service.road_map)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
    else:
        roads = gzip.decompress(roads)
    return Response(roads, media_type="application/geo+json", headers=headers)


@desk.get("/v1/model-card", **_content("text/markdown"))
async def model_card(service: Serving, reader: Reader) -> Response:
    """What the model is, learned from, and good for."""
    card = await asyncio.to_thread(card_of, service.engine.assets.model)
    return Response(card, media_type="text/markdown; charset=utf-8")


@desk.get("/v1/languages", response_model=list[str])
async def languages(service: Serving) -> Response:
    """The languages that the desk offers; the sign-in page has them too, so no token is needed."""
    return _json(list(service.settings.city.languages))


@desk.post(SESSION, response_model=dict[str, Any])
async def sign_in(request: Request, service: Serving, given: schemas.SessionIn) -> Response:
    """Keep a token in a cookie for this browser."""
    token = given.token.strip()
    owner = authenticate(token, service.settings.tokens)
    response = _json({"name": owner.name, "role": owner.role})
    response.set_cookie(
        access.COOKIE, token, max_age=_SESSION_S, httponly=True, samesite="strict",
        secure=service.settings.server.secure_cookie or request.url.scheme == "https",
    )  # fmt: skip
    return response


@desk.get(SESSION, response_model=dict[str, Any])
async def session(reader: Reader) -> Response:
    """Whose session it is."""
    return _json({"name": reader.name, "role": reader.role})


@desk.delete(SESSION, status_code=204, response_class=Response)
async def sign_out() -> Response:
    """Forget the cookie."""
    response = Response(status_code=204)
    response.delete_cookie(access.COOKIE, httponly=True, samesite="strict")
    return response


@desk.post(SIMULATED, response_model=dict[str, Any])
async def simulate(asked: schemas.SimulatedCalls, service: Serving, admin: Admin) -> Response:
    """Invent calls, to see decisions flow."""
    service.simulate(asked.count, asked.every_s)
    return _json(service.simulation())


@desk.get(SIMULATED, response_model=dict[str, Any])
async def simulation(service: Serving, reader: Reader) -> Response:
    """How many simulated calls are still to come."""
    return _json(service.simulation())


@desk.post("/v1/clock", response_model=dict[str, Any])
async def step_clock(step: schemas.ClockStep, service: Serving, admin: Admin) -> Response:
    """Set a simulated clock ahead; the clock of a real city is refused."""
    return _json(await service.step_clock(step.step_s, admin.name))


# --- health -----------------------------------------------------------------------


@health.get("/healthz", response_model=Health)
async def alive(service: Serving) -> Response:
    """The process answers."""
    return _json(service.health())


@health.get("/readyz", response_model=Health, responses={503: {"model": Health}})
async def ready(service: Serving) -> Response:
    """Advice can be given; 503 while the service starts. A degraded service is ready."""
    found = service.health()
    return _json(found, 503 if found.status == "starting" else 200)


@health.get("/metrics", **_content("text/plain"))
async def metrics(request: Request, service: Serving) -> Response:
    """Numbers for Prometheus, for auditors and admins unless the settings make them public."""
    if not service.settings.server.public_metrics:
        access.check_role(access.token_of(request), "auditor", "admin")
    return Response(service.measure(), media_type=CONTENT_TYPE_LATEST)

"""What a desk needs: a session, the city, its roads, news, the model, and simulated calls."""

from typing import Annotated

from fastapi import APIRouter, Body, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from ideal_dispatch.service.admission import BusyError
from ideal_dispatch.service.http.access import (
    COOKIE,
    Reader,
    Serving,
    bearer,
    check_role,
    owner,
)
from ideal_dispatch.service.http.answer_schemas import CityOut, SessionOut, Simulation
from ideal_dispatch.service.http.refusals import BODY, documented
from ideal_dispatch.service.http.schemas import SessionIn, SimulatedCalls
from ideal_dispatch.service.http.simulation import Simulator

SESSION, SIMULATED = "/v1/session", "/v1/simulated-calls"

router = APIRouter(tags=["desk"])

_SESSION_S = 12 * 3600


@router.post(SESSION, responses=documented(*BODY, model=SessionOut))
async def sign_in(
    request: Request, service: Serving, given: Annotated[SessionIn | None, Body()] = None
) -> JSONResponse:
    """Keep a token, of the body or of the Authorization header, in a cookie for this browser."""
    token = bearer(request)
    if given is not None and given.token is not None:
        token = given.token.strip()
    who = owner(request, token)
    response = JSONResponse({"name": who.name, "role": who.role})
    response.set_cookie(
        COOKIE, token or "", max_age=_SESSION_S, httponly=True, samesite="strict",
        secure=service.settings.server.secure_cookie or request.url.scheme == "https",
    )  # fmt: skip
    return response


@router.get(SESSION, responses=documented(model=SessionOut))
async def who(reader: Reader) -> JSONResponse:
    """Whose session it is."""
    return JSONResponse({"name": reader.name, "role": reader.role})


@router.delete(SESSION, status_code=204, response_class=Response)
async def sign_out() -> Response:
    """Forget the cookie."""
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


@router.get("/v1/languages", responses={200: {"model": list[str]}})
async def languages(service: Serving) -> JSONResponse:
    """The languages that the desk offers, for anybody: the sign-in page has them too."""
    return JSONResponse(list(service.settings.city.languages))


@router.get("/v1/city", responses=documented(403, model=CityOut))
async def city(service: Serving, reader: Reader) -> JSONResponse:
    """Name, depots, extent and clock."""
    facts, units = service.solver.facts, {row["depot"]: row["units"] for row in service.units()}
    west, south, east, north = facts.bounds
    return JSONResponse({
        "name": facts.name,
        "depots": [
            {"name": name, "lon": lon, "lat": lat, "units": units[name]}
            for name, (lon, lat) in facts.depots.items()
        ],
        "centre": [round((west + east) / 2, 6), round((south + north) / 2, 6)],
        "bounds": [west, south, east, north],
        "time_zone": facts.time_zone,
        "simulated": service.settings.demo,
    })  # fmt: skip


@router.get(
    "/v1/network.geojson",
    response_class=Response,
    responses=documented(403, 503, content="application/geo+json"),
)
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


@router.get(
    "/v1/events",
    response_class=Response,
    responses=documented(403, 503, content="text/event-stream"),
)
async def events(service: Serving, reader: Reader) -> StreamingResponse:
    """What happens, as it happens: server-sent events.

    Events are `recommendation`, `response`, `units` and `health`; a ping comes every 5 s.
    """
    if service.hub.full:
        raise BusyError("too many desks listen; close some")
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(service.hub.listen(), media_type="text/event-stream", headers=headers)


@router.get(
    "/v1/model-card",
    response_class=Response,
    responses=documented(403, 503, content="text/markdown"),
)
async def model_card(service: Serving, reader: Reader) -> Response:
    """What the model is, learned from, and good for."""
    card = await service.solver.ask("model_card")
    return Response(card, media_type="text/markdown; charset=utf-8")


@router.post(SIMULATED, responses=documented(403, *BODY, model=Simulation))
async def simulate(
    asked: SimulatedCalls, request: Request, service: Serving, reader: Reader
) -> JSONResponse:
    """Invent calls, to see decisions flow. For admins, and for all on the embedded city."""
    if not service.settings.demo:
        check_role(reader, "admin")
    simulator: Simulator = request.app.state.simulator
    simulator.ask(asked.count, asked.every_s)
    return JSONResponse(simulator.status())


@router.get(SIMULATED, responses=documented(403, model=Simulation))
async def simulated(request: Request, reader: Reader) -> JSONResponse:
    """How many simulated calls are still to come."""
    simulator: Simulator = request.app.state.simulator
    return JSONResponse(simulator.status())

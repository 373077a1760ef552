"""The city, its roads, its languages and the model: what a desk needs to show."""

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from ideal_dispatch.service.admission import BusyError
from ideal_dispatch.service.http.access import Reader, Serving
from ideal_dispatch.service.http.answer_schemas import CityOut
from ideal_dispatch.service.http.refusals import documented

router = APIRouter(prefix="/v1", tags=["city"])


@router.get("/city", responses=documented(401, 403, 429, model=CityOut))
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


@router.get("/languages", responses={200: {"model": list[str]}})
async def languages(service: Serving) -> JSONResponse:
    """The languages that the desk offers, for anybody: the sign-in page has them too."""
    return JSONResponse(list(service.settings.city.languages))


@router.get(
    "/network.geojson",
    response_class=Response,
    responses=documented(401, 403, 429, 503, content="application/geo+json"),
)
async def network(request: Request, service: Serving, reader: Reader) -> Response:
    """The roads, for a map without internet."""
    tag = f'"{service.solver.facts.checksums["network"]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    roads = await service.road_map()
    headers["ETag"] = f'"{roads.checksum}"'
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(roads.packed, media_type="application/geo+json", headers=headers)
    return Response(roads.plain, media_type="application/geo+json", headers=headers)


@router.get(
    "/events",
    response_class=Response,
    responses=documented(401, 403, 429, 503, content="text/event-stream"),
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
    "/model-card",
    response_class=Response,
    responses=documented(401, 403, 429, 503, content="text/markdown"),
)
async def model_card(service: Serving, reader: Reader) -> Response:
    """What the model is, learned from, and good for."""
    card = await service.solver.ask("model_card")
    return Response(card, media_type="text/markdown; charset=utf-8")

"""The city, its roads and the model: what a desk needs to show."""

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from ideal_dispatch.service.access import Reader, Serving
from ideal_dispatch.service.answer_schemas import CityOut
from ideal_dispatch.service.engine import BusyError
from ideal_dispatch.service.refusals import documented
from ideal_dispatch.service.road_map import city_part, road_map

router = APIRouter(prefix="/v1", tags=["city"])


@router.get("/city", responses=documented(401, 403, 429, model=CityOut))
async def city(service: Serving, reader: Reader) -> JSONResponse:
    """Name, depots, extent, languages and clock."""
    return JSONResponse(city_part(service))


@router.get("/network.geojson", responses=documented(401, 403, 429, content="application/geo+json"))
async def network(request: Request, service: Serving, reader: Reader) -> Response:
    """The roads, for a map without internet."""
    roads = await asyncio.to_thread(road_map, service.assets.network)
    headers = {"ETag": roads.tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == roads.tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(roads.packed, media_type="application/geo+json", headers=headers)
    return Response(roads.plain, media_type="application/geo+json", headers=headers)


@router.get("/events", responses=documented(401, 403, 429, 503, content="text/event-stream"))
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
    response_class=PlainTextResponse,
    responses=documented(401, 403, 429, content="text/markdown"),
)
async def model_card(service: Serving, reader: Reader) -> Response:
    """What the model is, learned from, and good for."""
    from ideal_dispatch.forecast.card import model_card as card

    return Response(card(service.assets.model), media_type="text/markdown; charset=utf-8")

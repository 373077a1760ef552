"""Incidents as other systems send them, and simulated ones."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from starlette.responses import JSONResponse

from ideal_dispatch.service.desk.simulation import Simulator
from ideal_dispatch.service.http.access import Caller, Reader, Serving, check_role
from ideal_dispatch.service.http.answer_schemas import Recommendation, Simulation
from ideal_dispatch.service.http.eido import request_of
from ideal_dispatch.service.http.protection import SLOT
from ideal_dispatch.service.http.refusals import BODY, documented
from ideal_dispatch.service.http.routes.recommendations import Json, Key, one_key
from ideal_dispatch.service.http.schemas import SimulatedCalls

EIDO = "/v1/incidents/eido"

router = APIRouter(tags=["incidents"])

# no example: tools would follow the `$ref` in it
Document = Annotated[dict[str, Any], Body()]


@router.post(
    EIDO,
    responses=documented(401, 403, *BODY, 409, 429, 503, model=Recommendation),
)
async def eido(
    document: Document, asked: Request, service: Serving, caller: Caller, key: Key = None
) -> Json:
    """Advice for a NENA EIDO (NENA-STA-021.1): its incident and its location by value.

    The primary is the first dispatched resource that is of a depot of ours; where there is none,
    the router chooses one. Free units are those of PUT /v1/units.
    """
    request = request_of(document, service.names.knows)
    given = one_key(key, request.idempotency_key)
    return Json(await service.recommender.recommend(request, given, caller.name, asked.scope[SLOT]))


@router.post(
    "/v1/simulated-calls",
    responses=documented(401, 403, *BODY, 429, model=Simulation),
)
async def simulate(
    asked: SimulatedCalls, request: Request, service: Serving, reader: Reader
) -> JSONResponse:
    """Invent calls, to see decisions flow. For admins, and for all on the embedded city."""
    if not service.settings.demo:
        check_role(reader, "admin")
    simulator: Simulator = request.app.state.simulator
    simulator.ask(asked.count, asked.every_s)
    return JSONResponse(simulator.status())


@router.get("/v1/simulated-calls", responses=documented(401, 403, 429, model=Simulation))
async def simulated(request: Request, reader: Reader) -> JSONResponse:
    """How many simulated calls are still to come."""
    simulator: Simulator = request.app.state.simulator
    return JSONResponse(simulator.status())

"""How many ambulances are free where."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Body
from starlette.responses import JSONResponse

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.access import Caller, Reader, Serving
from ideal_dispatch.service.answer_schemas import UnitsOut
from ideal_dispatch.service.known import unknown_depot
from ideal_dispatch.service.refusals import BODY, documented
from ideal_dispatch.service.schemas import UnitsIn

router = APIRouter(prefix="/v1/units", tags=["units"])

_NEWS = timedelta(days=30)

Told = Annotated[
    list[UnitsIn],
    Body(min_length=1, max_length=500, examples=[[{"depot": "Kelp Point", "units": 2}]]),
]


@router.get("", responses=documented(401, 403, 429, model=list[UnitsOut]))
async def known(service: Serving, reader: Reader) -> JSONResponse:
    """Free units of every depot, as last told."""
    return JSONResponse(service.units())


@router.put("", responses=documented(401, 403, *BODY, 429, 503, model=list[UnitsOut]))
async def tell(told: Told, service: Serving, caller: Caller) -> JSONResponse:
    """Tell free units of some or all depots; older news than what is known changes nothing."""
    depots, now = service.solver.facts.depots, datetime.now(UTC)
    by_moment: dict[datetime, dict[str, int]] = {}
    for one in told:
        if one.depot not in depots:
            raise InputError(unknown_depot(one.depot, depots))
        at = now if one.updated_at is None else one.updated_at
        if at > now + timedelta(seconds=service.settings.server.clock_skew_s):
            raise InputError(f"updated_at of {one.depot} is in the future; check both clocks")
        if at < now - _NEWS:
            raise InputError(f"updated_at of {one.depot} is over {_NEWS.days} days ago; check it")
        by_moment.setdefault(at, {})[one.depot] = one.units
    for at, units in by_moment.items():
        await service.set_units(units, at, caller.name)
    return JSONResponse(service.units())

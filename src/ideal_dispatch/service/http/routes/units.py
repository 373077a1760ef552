"""How many ambulances are free where."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Body, Depends
from starlette.responses import JSONResponse

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.audit.units import AHEAD, DepotUnits
from ideal_dispatch.service.http.access import Caller, Reader, Serving, still_there
from ideal_dispatch.service.http.answer_schemas import UnitsOut
from ideal_dispatch.service.http.refusals import BODY, documented
from ideal_dispatch.service.http.schemas import UnitsIn

router = APIRouter(prefix="/v1/units", tags=["units"])

_NEWS = timedelta(days=30)  # older counts are none

Told = Annotated[
    list[UnitsIn],
    Body(min_length=1, max_length=500, examples=[[{"depot": "Kelp Point", "units": 2}]]),
]


@router.get("", responses=documented(403, model=list[UnitsOut]))
async def known(service: Serving, reader: Reader) -> JSONResponse:
    """Free units of every depot, as last told, and the calls that units are promised to."""
    return JSONResponse(service.units())


@router.put(
    "",
    dependencies=[Depends(still_there)],
    responses=documented(403, 409, *BODY, 503, model=list[UnitsOut]),
)
async def tell(told: Told, service: Serving, caller: Caller) -> JSONResponse:
    """Tell free units of some or all depots, now or as of `updated_at`.

    A count older than the one that is known is refused with 409, one that is more than 5 s ahead
    of the clock here with 422; no count is changed then.
    """
    names, now = service.recommender.names, datetime.now(UTC)
    counts: dict[str, UnitsIn] = {}
    for one in told:
        depot = names.find(one.depot)
        if depot in counts:
            raise InputError(f"{depot} is told twice; give one count of each depot")
        counts[depot] = one
    moment = service.ledger.units.moment(counts, now)
    news: list[DepotUnits] = []
    for depot, one in counts.items():
        at = moment if one.updated_at is None else one.updated_at
        if at > now + AHEAD:
            raise InputError(
                f"updated_at of {depot} is {(at - now).total_seconds():.0f} s ahead of the clock "
                "here; check both clocks, or leave it out"
            )
        if at < now - _NEWS:
            raise InputError(f"updated_at of {depot} is over {_NEWS.days} days ago; check it")
        news.append(DepotUnits(depot, one.units, at))
    await service.set_units(news, caller.name)
    return JSONResponse(service.units())

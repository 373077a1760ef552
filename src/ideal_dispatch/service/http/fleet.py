"""The API of units, one by one: what they do, where they are, and who is promised to whom."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path
from pydantic import BaseModel, BeforeValidator, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from ideal_dispatch.errors import InputError
from ideal_dispatch.service import clock
from ideal_dispatch.service.http.access import Caller, Reader, Serving, still_there
from ideal_dispatch.service.http.answer_schemas import PromiseOut
from ideal_dispatch.service.http.refusals import BODY, documented, there
from ideal_dispatch.service.http.schemas import CallId, In, Moment, Name, Number, plain_text
from ideal_dispatch.service.state import Service
from ideal_dispatch.service.units.statuses import StatusCodes
from ideal_dispatch.service.units.unit import News, Seen, Status, Unit, check_told_at, told_now

FLEET = "/v1/fleet/units"

router = APIRouter(tags=["units"])

Id = Annotated[str, Field(min_length=1, max_length=64), BeforeValidator(plain_text)]
IdInPath = Annotated[str, Path(min_length=1, max_length=64), BeforeValidator(plain_text)]
Word = Annotated[str, Field(max_length=64), BeforeValidator(plain_text)]


class NewsIn(In):
    """What is told of a unit. All may be left out, and stays as it was then.

    A new unit needs its station and its status. ``status`` is one of our words, or a code of the
    centre's radio. ``heading`` is in degrees from north. ``at`` left out means now.
    """

    station: Name | None = None
    kind: Word | None = None
    status: Annotated[Word, Field(min_length=1)] | None = None
    call_id: CallId | None = None
    lon: Number | None = Field(default=None, ge=-180, le=180)
    lat: Number | None = Field(default=None, ge=-90, le=90)
    heading: Number | None = Field(default=None, ge=0, le=360)
    speed_kmh: Number | None = Field(default=None, ge=0, le=400)
    at: Moment | None = None


class UnitNewsIn(NewsIn):
    """What is told of the unit ``id``."""

    id: Id


class IgnoredOut(BaseModel):
    """News that changed nothing, and why."""

    id: str
    why: str


class TakenOut(BaseModel):
    """How many news were taken."""

    taken: int
    ignored: list[IgnoredOut]


class PositionOut(BaseModel):
    """Where a unit was seen."""

    lon: float
    lat: float
    heading: float | None
    speed_kmh: float | None
    at: datetime


class UnitOut(BaseModel):
    """A unit: what it does since when, where it was seen, and which call counts on it.

    ``age_s`` is how old its position is by the clock here. A ``stale`` one was not seen for a
    while, and counts as at its station.
    """

    id: str
    station: str
    kind: str
    status: Status
    since: datetime
    call_id: str | None
    position: PositionOut | None
    age_s: float | None
    told_at: datetime
    source: str
    free: bool
    stale: bool
    promised: PromiseOut | None


Told = Annotated[
    list[UnitNewsIn],
    Body(
        min_length=1, max_length=1000,
        examples=[[{"id": "A117", "station": "Kelp Point", "status": "at_station"}]],
    ),
]  # fmt: skip


@router.get(FLEET, responses=documented(403, model=list[UnitOut]))
async def fleet(service: Serving, reader: Reader) -> JSONResponse:
    """Every unit, as last told."""
    return JSONResponse(service.fleet())


@router.get(f"{FLEET}/{{id}}", responses=documented(403, 404, 422, model=UnitOut))
async def unit(id: IdInPath, service: Serving, reader: Reader) -> JSONResponse:  # noqa: A002
    """One unit."""
    return JSONResponse(there(next((one for one in service.fleet() if one["id"] == id), None)))


@router.put(
    FLEET,
    dependencies=[Depends(still_there)],
    responses=documented(403, *BODY, 503, model=TakenOut),
)
async def tell_many(told: Told, service: Serving, caller: Caller) -> JSONResponse:
    """Tell what units do and where they are. News older than what is known change nothing."""
    return await tell(told, service, caller.name)


@router.put(
    f"{FLEET}/{{id}}",
    dependencies=[Depends(still_there)],
    responses=documented(403, *BODY, 503, model=TakenOut),
)
async def tell_one(
    id: IdInPath,  # noqa: A002
    told: NewsIn,
    service: Serving,
    caller: Caller,
) -> JSONResponse:
    """Tell what a unit does and where it is. News older than what is known change nothing."""
    return await tell([UnitNewsIn(id=id, **told.model_dump())], service, caller.name)


@router.delete(
    f"{FLEET}/{{id}}",
    status_code=204,
    response_class=Response,
    responses=documented(403, 404, 422, 503),
)
async def remove(id: IdInPath, service: Serving, caller: Caller) -> Response:  # noqa: A002
    """A unit is no longer of the fleet."""
    if not await service.remove_unit(id, caller.name):
        raise HTTPException(404)
    return Response(status_code=204)


def status_codes(service: Service) -> StatusCodes:
    """How this centre tells statuses."""
    table = service.settings.units
    return StatusCodes(table.statuses, table.codes)


async def tell(told: list[UnitNewsIn], service: Service, actor: str) -> JSONResponse:
    """Take news, and say how many were; all of them or none where one makes no sense."""
    now, codes = clock.now(), status_codes(service)
    news = [_news(one, service, codes, now, actor) for one in told]
    old = await service.tell_fleet(news, actor)
    ignored = [{"id": one, "why": "older than what is known"} for one in old]
    return JSONResponse({"taken": len(news) - len(old), "ignored": ignored})


def _moment(known: Unit | None, gone_at: datetime | None, now: datetime) -> datetime:
    """The moment of news of a unit that is told now."""
    moments = [] if gone_at is None else [gone_at]
    if known is not None:
        moments += [known.status_at] if known.seen is None else [known.status_at, known.seen.at]
    return told_now(moments, now)


def _news(
    told: UnitNewsIn, service: Service, codes: StatusCodes, now: datetime, actor: str
) -> News:
    """The news as they are known here, or one line on what is wrong with them."""
    known = service.ledger.units.find(told.id)
    gone_at = service.ledger.units.gone_at(told.id)
    at = _moment(known, gone_at, now) if told.at is None else told.at
    check_told_at(f"unit {told.id}: at", at, now)
    if (told.lon is None) != (told.lat is None):
        raise InputError(f"unit {told.id}: give both lon and lat, or neither")
    if known is not None and known.id != told.id:
        raise InputError(f"unit {told.id}: {known.id} is known; write it in the same way")
    names = service.recommender.names
    if told.id in service.solver.facts.depots:
        raise InputError(f"unit {told.id}: a depot has this name; give the unit another id")
    seen = None
    if told.lon is not None and told.lat is not None:
        seen = Seen(told.lon, told.lat, at, told.heading, told.speed_kmh)
    return News(
        told.id, at, actor,
        None if told.station is None else names.find(told.station),
        told.kind,
        None if told.status is None else codes.status(told.status),
        told.call_id,
        seen,
    )  # fmt: skip

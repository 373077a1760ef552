"""The API's JSON that goes out, documented. Seconds count from ``asked_at`` or ``as_of``."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from ideal_dispatch.dispatch.answer import Advice, Remark
from ideal_dispatch.dispatch.candidate import SoonerUnit
from ideal_dispatch.service.record.rows import AdviceState
from ideal_dispatch.service.requests import Moment, ReplyIn
from ideal_dispatch.service.units import Promise, Status


class ReplyOut(ReplyIn, json_schema_extra=None):
    """What a dispatcher replied, who and when."""

    by: str
    at: Moment


class ErrorBody(BaseModel):
    """What went wrong, in words; ``reply`` is the first answer, where another came before."""

    code: str
    message: str
    where: str | None = None
    reply: ReplyOut | None = None


class ErrorAnswer(BaseModel):
    """Every refusal has this form."""

    error: ErrorBody


class Place(BaseModel):
    """A place on the map."""

    lon: float
    lat: float


class LocationOut(Place):
    """The location as given, and the junction that stands for it."""

    node: int | None
    snapped_m: float | None


class StartOut(Place):
    """Where an ambulance starts: at its depot, or on the road where it was seen ``age_s`` ago."""

    on_road: bool
    age_s: float | None


class ArrivalOut(BaseModel):
    """Seconds from now until a unit is at the address: its turnout left and its drive left.

    ``expected_s`` is the sum of both; nine times of ten it takes at most ``p90_s``.
    """

    expected_s: float
    turnout_s: float
    drive_s: float
    p90_s: float


class RouteOut(BaseModel):
    """A way through the network; ``?brief=1`` leaves out ``edges`` and ``geojson``."""

    edges: list[int] | None = None
    geojson: dict[str, Any] | None = None
    length_m: float
    roads: list[str]


class CandidateOut(BaseModel):
    """A unit that could go, and when it arrives; ``unit`` is null where only its depot is known.

    A considered one has its drive by ``quote_s`` and ``forecast_s``, the primary and the second
    have their ``route``. Of the primary ``chosen_by`` says who chose it. The second should keep to
    the first ``follow`` edges of its route, and shares ``overlap`` of it with the primary.
    """

    depot: str
    unit: str | None
    kind: str
    start: StartOut
    arrival: ArrivalOut
    quote_s: float | None = None
    forecast_s: float | None = None
    route: RouteOut | None = None
    chosen_by: Literal["cad", "router"] | None = None
    follow: int | None = None
    overlap: float | None = None
    shared_edges: list[int] | None = None


class Recommendation(BaseModel):
    """An advice, or an honest ``no_advice``; ``?brief=1`` leaves out the last three.

    Of two answers for a call the one with the later ``asked_at`` stands, until ``expires_at``.
    ``gain_s`` are the seconds that the second is expected to save, ``second_first`` is its chance
    to arrive first, ``gain_survival`` what that is in survival. ``sooner_unit`` is a free unit
    that is expected clearly sooner than the primary. ``degraded`` says why the advice is less than
    it could be, or missing, the most serious first. An ``unrecorded`` one could not be put on
    record: it is no advice and cannot be looked up.

    ``why`` explains in words and by road; its ``gap`` is the optimistic gap, what the scenario set
    of drives allows. ``made_with`` has hashes of contents, ages of data and closures in force.
    """

    id: str
    call_id: str
    revision: int
    state: Literal[AdviceState, "unrecorded"]
    decision: Advice
    headline: str
    asked_at: datetime
    expires_at: datetime
    received_at: datetime
    note: str | None
    simulated: bool
    location: LocationOut
    primary: CandidateOut | None
    second: CandidateOut | None
    gain_s: float | None
    second_first: float | None
    gain_survival: float | None
    sooner_unit: SoonerUnit | None
    degraded: list[Remark]
    reply: ReplyOut | None
    considered: list[CandidateOut] | None = None
    why: dict[str, Any] | None = None
    made_with: dict[str, Any] | None = None


class PromiseOut(BaseModel):
    """The call that counts on a unit, until then at the latest."""

    call_id: str
    kind: Promise
    until: datetime


class PositionOut(Place):
    """Where a unit was seen."""

    heading: float | None
    speed_kmh: float | None
    at: datetime


class UnitOut(BaseModel):
    """A unit: what it does since when, where it was seen, and which call counts on it.

    An ``anonymous`` one stands for one of a depot's count. ``age_s`` is how old its position is;
    a ``stale`` one was not seen for a while, and counts as at its station.
    """

    id: str
    depot: str
    kind: str
    status: Status
    since: datetime
    call_id: str | None
    free: bool
    anonymous: bool
    position: PositionOut | None
    age_s: float | None
    stale: bool
    told_at: datetime
    promised: PromiseOut | None


class UpdateOut(BaseModel):
    """How many reports were taken, and which changed nothing, and why."""

    taken: int
    ignored: list[dict[str, str]]


class DispatchedUnitOut(BaseModel):
    """A unit of a dispatch, and in how many seconds it arrives; null where that is unknown."""

    unit: str
    depot: str
    status: str | None
    expected_s: float | None


class QuestionOut(BaseModel):
    """A change that is advised to a running dispatch, until a dispatcher replies."""

    id: str
    advice: Literal["stand_down", "send_one"]
    unit: str | None
    depot: str | None
    reason: str
    reasons: list[dict[str, Any]]
    asked_at: datetime


class DispatchOut(BaseModel):
    """Two units on their way to one call, as of ``as_of``; unknown figures are null.

    The second still ``saves`` so many lives, and keeping it costs other calls ``cost`` lives.
    """

    id: str
    call_id: str
    state: Literal["running", "stood_down", "ended"]
    started_at: datetime
    ended_at: datetime | None
    as_of: datetime
    primary: DispatchedUnitOut
    second: DispatchedUnitOut
    second_first: float | None
    saves: float | None
    cost: float | None
    question: QuestionOut | None
    reason: str
    reasons: list[dict[str, Any]]
    reply: ReplyOut | None
    changes: int


class ClosureOut(BaseModel):
    """A closure: ``edges`` are closed while it is ``active``.

    It has no edges, and is not active, where the network changed and its roads are not known any
    more.
    """

    id: str
    since: datetime | None = Field(alias="from")
    until: datetime | None
    reason: str
    by: str
    at: datetime
    edges: list[int]
    line: list[list[float]] | None
    polygon: list[list[float]] | None
    active: bool

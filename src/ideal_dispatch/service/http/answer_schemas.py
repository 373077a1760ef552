"""The API's JSON that goes out, documented."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel

from ideal_dispatch.dispatch.answer import Remark
from ideal_dispatch.service.http.schemas import OverrideReason

Decided = Literal["send_second", "primary_only", "no_advice"]


class ErrorBody(BaseModel):
    """What went wrong, in words."""

    code: str
    message: str
    where: str | None = None


class ErrorAnswer(BaseModel):
    """Every refusal has this form."""

    error: ErrorBody


class Place(BaseModel):
    """The location as told, and the junction that stands for it."""

    lon: float
    lat: float
    node: int | None
    snapped_m: float | None


class Line(BaseModel):
    """A GeoJSON line."""

    type: Literal["LineString"]
    coordinates: list[tuple[float, float]]


class Route(BaseModel):
    """A way through the network; ``quoted_s`` is when an ambulance on it is expected."""

    edges: list[int]
    geojson: Line
    length_m: float
    quoted_s: float | None
    roads: list[str]


class StartOut(BaseModel):
    """Where an ambulance starts: at its depot, or on the road where it was seen ``age_s`` ago."""

    lon: float
    lat: float
    on_road: bool
    age_s: float | None


class TrafficOut(BaseModel):
    """Seconds of the fastest way of an ambulance by the live router, and those of the forecast."""

    router_s: float
    forecast_s: float


class PrimaryOut(BaseModel):
    """Who goes first; ``depot`` is its station, wherever it starts.

    ``traffic`` is null where no live router answered.
    """

    depot: str
    unit: str | None
    start: StartOut | None = None
    route: Route
    chosen_by: Literal["cad", "router"]
    traffic: TrafficOut | None = None


class SecondOut(BaseModel):
    """Who could go second, and how different its way is; shown also where it should stay.

    It should keep to the first ``follow`` edges of its route.
    """

    depot: str
    unit: str | None = None
    start: StartOut | None = None
    units: int
    route: Route
    overlap: float
    shared_edges: list[int]
    follow: int
    traffic: TrafficOut | None = None


class ConsideredOut(BaseModel):
    """A unit that could go from where it was seen on the road, and the seconds of its way."""

    depot: str
    unit: str
    start: StartOut
    quoted_s: float


class SoonerUnitOut(BaseModel):
    """A free unit that, leaving now, is expected so many seconds sooner than the primary.

    ``probability`` is that of its arriving before the primary at all. The primary is taken to
    have left at ``received_at``. Only a unit that is more than ``sooner_s`` of the policy (30 by
    default) sooner and 80 % sure is named.
    """

    depot: str
    units: int
    seconds: float
    probability: float


class GapOut(BaseModel):
    """What a second could plausibly gain at most: proved to lie in this interval."""

    lower_s: float
    upper_s: float | None
    status: Literal["exact", "decided", "open"]


class ThresholdOut(BaseModel):
    """What a second must be worth; null seconds: one always goes."""

    seconds: float | None
    source: Literal["request", "configuration"]
    words: str


class CostOut(BaseModel):
    """What a second costs the other calls, in lives, while its unit is away for ``hold_s``.

    It is the price in the ``fleet`` as it was at the call, or the ``fixed`` cost of the
    settings, whatever the absence: then ``hold_s`` is null.
    """

    lives: float
    hold_s: float | None
    source: Literal["fleet", "fixed"]


class Nominal(BaseModel):
    """When both are expected."""

    primary_s: float | None
    second_s: float | None


class Road(BaseModel):
    """Seconds that the second avoids (positive) or takes on (negative) on a road."""

    name: str
    seconds: float


class RoadPart(BaseModel):
    """A road, or a part of one, that one of the two drives alone."""

    name: str
    length_m: float
    seconds: float


class Stress(BaseModel):
    """A road that slows down in the scenario of the gap, and how it goes along with the first."""

    name: str
    slowdown: float
    correlation: float


class OtherWay(BaseModel):
    """A way that is not advised: its depot, and its longest roads."""

    depot: str
    roads: list[str]


class ExplanationOut(BaseModel):
    """Why, in words and by road: the primary's way beside that of the second that is advised.

    ``other_way`` is the gap's, where that is neither the primary's nor the second's and the
    gap is above zero. ``shared_m`` are the metres that both drive, ``seconds_from`` says whose
    seconds by road these are: the live router's, the forecast's, or those of empty roads.
    Both are null without a second.
    """

    text: str
    other_way: OtherWay | None
    seconds_from: Literal["router", "forecast", "free_flow"] | None = None
    shared_m: float | None
    primary_only: list[RoadPart]
    second_only: list[RoadPart]
    roads: list[Road]
    stress: list[Stress]


class Ages(BaseModel):
    """How old the newest data were; null where not known or not used."""

    traffic_s: float | None
    weather_s: float | None
    units_s: float | None


class Versions(BaseModel):
    """What the advice was made with: hashes of contents, those that have a default where used."""

    software: str
    model: str
    network: str
    depots: str | None = None
    gain: str | None = None
    drift: str | None = None
    territories: str | None = None
    fleet: str | None = None
    configuration: str


class ResponseOut(BaseModel):
    """What a dispatcher did with it."""

    action: Literal["accept", "override"]
    reason_code: OverrideReason | None
    text: str | None
    by: str
    at: datetime


class Recommendation(BaseModel):
    """An advice, or an honest ``no_advice``.

    Of two answers for a call the one with the later ``asked_at`` stands, until ``expires_at``.
    ``gain_s`` are the seconds that a second is expected to save, ``gain_survival`` what that is in
    survival, ``radius`` is the size of the scenario set, and ``closures`` are those in force.
    ``considered`` are the units on the road that were weighed.
    ``degraded`` says why the advice is less than it could be, or is none, the most serious first.
    """

    id: str
    call_id: str
    revision: int
    revision_of: str | None
    decision: Decided
    headline: str
    asked_at: datetime
    created_at: datetime
    expires_at: datetime
    received_at: datetime
    note: str | None
    simulated: bool
    location: Place
    primary: PrimaryOut | None
    second: SecondOut | None
    considered: list[ConsideredOut] = []
    sooner_unit: SoonerUnitOut | None = None
    gain_s: float | None
    gain_survival: float | None
    gap: GapOut | None
    threshold: ThresholdOut | None
    cost: CostOut | None = None
    radius: float | None
    nominal: Nominal
    explanation: ExplanationOut
    degraded: list[Remark]
    closures: list[str] = []
    data_ages: Ages
    versions: Versions
    latency_ms: float
    response: ResponseOut | None


class PromiseOut(BaseModel):
    """A unit that a call counts on: ``until`` then at the latest."""

    call_id: str
    kind: Literal["advised", "accepted", "sent"]
    until: datetime


class UnitsOut(BaseModel):
    """Units free at a depot, and since when that is known; null where nobody has told.

    Those that are ``promised`` are among them.
    """

    depot: str
    units: int
    updated_at: datetime | None
    promised: list[PromiseOut]


class DepotOut(BaseModel):
    """A depot on the map."""

    name: str
    lon: float
    lat: float
    units: int


class ClockOut(BaseModel):
    """The service's moment, and how many of its seconds pass in a real one."""

    now: datetime
    speed: float


class CoverOut(BaseModel):
    """How far the next call is from help: the drive of the nearest free unit to a junction.

    Half of all junctions are reached within ``median_s``, nine of ten within ``p90_s``; null
    where closed roads cut off so many that they are not.
    """

    median_s: float | None
    p90_s: float | None


class CityOut(BaseModel):
    """The city of this service; ``units`` are told as counts of depots, or one by one."""

    name: str
    depots: list[DepotOut]
    centre: tuple[float, float]
    bounds: tuple[float, float, float, float]
    time_zone: str
    simulated: bool
    clock: ClockOut
    units: Literal["counts", "fleet"]
    cover: CoverOut | None


class SessionOut(BaseModel):
    """Whose token it is."""

    name: str
    role: str


class Simulation(BaseModel):
    """Simulated calls still to come."""

    running: bool
    left: int
    every_s: float


class Health(BaseModel):
    """Whether the process lives, or can give advice, and what is wrong."""

    status: str
    parts: dict[str, str]

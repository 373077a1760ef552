"""What the parts of the service hand to each other about a call: plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ideal_dispatch.context import Weather
from ideal_dispatch.dispatch.answer import Reason
from ideal_dispatch.service.requests import Location
from ideal_dispatch.service.units import Unit


@dataclass(frozen=True, slots=True)
class Closed:
    """Edges that the centre closed, and why; ``reason`` may be empty."""

    id: str
    reason: str
    edges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KnownWeather:
    """What is known about the weather now, and why that is less than it should be."""

    weather: Weather = field(default_factory=Weather)
    doubts: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """What the database holds at one moment, ``now`` in microseconds, for one decision.

    ``units`` are all units, whatever they do. ``closures`` are those in force.
    """

    now: int
    units: tuple[Unit, ...]
    closures: tuple[Closed, ...] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """What was decided about a call, before it is on record.

    ``fields`` are those of the API. ``primary`` is the unit that goes first, where one is known,
    and ``chosen`` says that we chose it. ``second`` is the unit to send, None where none goes.
    It ``needs`` the units that it chose to be free still when it is recorded.
    """

    fields: Mapping[str, Any]
    primary: str | None = None
    chosen: bool = False
    second: str | None = None
    needs: tuple[str, ...] = ()

    @property
    def decision(self) -> str:
        found: str = self.fields["decision"]
        return found


@dataclass(frozen=True, slots=True)
class FollowedUnit:
    """A unit of a running dispatch, how it gets on, and how long ago it was sent."""

    unit: Unit
    state: Literal["waiting", "en_route", "arrived", "lost"]
    sent_ago_s: float


@dataclass(frozen=True, slots=True)
class Followed:
    """A running dispatch to be looked at again.

    ``second`` is None where it was stood down or lost: ``free`` are units that could go. The
    second was to cost ``cost_lives`` for an absence of ``hold_s``; ``last`` is what was said
    before. ``traffic`` are, by unit, the seconds of its way that the live router and the forecast
    said at the call.
    """

    call_id: str
    location: Location
    first: FollowedUnit
    second: FollowedUnit | None
    free: tuple[Unit, ...] = ()
    cost_lives: float | None = None
    hold_s: float | None = None
    last: Mapping[str, Any] | None = None
    traffic: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

"""What a simulated day is, decided before anything is simulated."""

from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from ideal_dispatch.arrays import non_negative, whole_number
from ideal_dispatch.context import WEATHER_VARIABLES
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.errors import InputError

DAY_KINDS = ("weekday", "saturday", "sunday", "holiday")
PEAKS = ((6, 10), (16, 20))
WHOLE_DAY = ((0, 24),)
HOUR_S = 3600
RAIN = WEATHER_VARIABLES.index("rainfall_mm")


@dataclass(frozen=True, slots=True)
class Closure:
    """Edges that lose lanes for a while: works, or an accident.

    Times are seconds of the local day. ``lanes_left`` of 0 closes the edges to
    all but emergency vehicles; an edge always loses at least one lane.
    """

    edges: tuple[int, ...]
    from_s: int
    until_s: int
    lanes_left: int = 0

    def __post_init__(self) -> None:
        edges = tuple(whole_number(edge, "closed edge") for edge in self.edges)
        object.__setattr__(self, "edges", edges)
        if not edges or min(edges) < 0:
            raise InputError(f"closure of edges {edges}: name at least one edge, from 0")
        for name in ("from_s", "until_s", "lanes_left"):
            object.__setattr__(self, name, whole_number(getattr(self, name), f"closure {name}"))
        if not 0 <= self.from_s < self.until_s or self.lanes_left < 0:
            raise InputError(
                f"closure from {self.from_s} s until {self.until_s} s with "
                f"{self.lanes_left} lanes left: it must begin in the day and end later"
            )


@dataclass(frozen=True, slots=True)
class DayPlan:
    """One day to simulate: its calendar, demand, weather, closures and seed.

    ``hours`` are the simulated periods of the local day, in order; the clocks
    may not change within one.
    ``demand_factor`` multiplies the trips of the kind of day. ``weather`` has 25
    rows of the variables of :data:`WEATHER_VARIABLES`: row h is of the hour that
    ends h hours after midnight, so the first is of the day before. ``queues`` moves vehicles
    from queue to queue along a road (SUMO's mesoscopic model), which is much quicker to
    simulate than how each follows the one before it.
    """

    date: date
    kind: str
    time_zone: str
    hours: tuple[tuple[int, int], ...]
    demand_factor: float
    weather: tuple[tuple[float, ...], ...]
    closures: tuple[Closure, ...] = ()
    seed: int = 0
    queues: bool = False

    def __post_init__(self) -> None:
        zone(self.time_zone)
        if self.kind not in DAY_KINDS:
            raise InputError(f"day kind {self.kind!r}; one of {', '.join(DAY_KINDS)} is needed")
        hours = tuple((whole_number(a, "hour"), whole_number(b, "hour")) for a, b in self.hours)
        object.__setattr__(self, "hours", hours)
        ends = [hour for period in hours for hour in period]
        if not ends or ends != sorted(set(ends)) or ends[0] < 0 or ends[-1] > 24:
            raise InputError(f"hours {hours}: periods within 0 … 24 in order, apart, are needed")
        for first, last in hours:
            begin, end = (self.moment(hour * HOUR_S).astimezone(UTC) for hour in (first, last))
            if end - begin != timedelta(hours=last - first):
                raise InputError(
                    f"{self.date}: the clocks of {self.time_zone} change within {first}–{last}; "
                    "simulate other hours, or another day (another seed draws others)"
                )
        object.__setattr__(self, "demand_factor", non_negative(self.demand_factor, "demand factor"))
        rows = tuple(tuple(float(value) for value in row) for row in self.weather)
        if len(rows) != 25 or any(len(row) != len(WEATHER_VARIABLES) for row in rows):
            raise InputError(
                "weather of a day: 25 rows of the five variables are needed, "
                "the hour before midnight first"
            )
        for row in rows:
            non_negative(row[RAIN], "hourly rain")
        object.__setattr__(self, "weather", rows)
        object.__setattr__(self, "closures", tuple(self.closures))
        if whole_number(self.seed, "seed") < 0:
            raise InputError(f"seed {self.seed}: zero or more is needed")

    @property
    def rain_mm(self) -> tuple[float, ...]:
        """Rain of each hour of the day."""
        return tuple(row[RAIN] for row in self.weather[1:])

    def moment(self, second: float) -> datetime:
        """An aware time of the day by its second on the wall clock of midnight."""
        midnight = datetime.combine(self.date, time(), zone(self.time_zone))
        return midnight + timedelta(seconds=second)

    def second(self, at: datetime) -> float:
        """The second of the day on the wall clock; the inverse of :meth:`moment`."""
        local = at.astimezone(zone(self.time_zone)).replace(tzinfo=None)
        return (local - datetime.combine(self.date, time())).total_seconds()

    def to_json(self) -> dict[str, Any]:
        """The plan in plain values, such that days simulated by earlier versions are known."""
        values = asdict(self) | {"date": self.date.isoformat(), "signals": "actuated"}
        if not self.queues:
            del values["queues"]
        return values

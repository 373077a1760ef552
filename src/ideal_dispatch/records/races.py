"""Races: two units sent to one call at once from different places, both on scene."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, read_only
from ideal_dispatch.errors import InputError
from ideal_dispatch.frames import DataFrame, frame
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.ranges import ZERO_OR_MORE
from ideal_dispatch.records.responses import Day, Responses, as_day
from ideal_dispatch.records.schema import Times

APART = "two units or more, but not sent together"
ONE_START = "the units started at the same place, or it is not known where"
MANY = "more than two units sent together"
NEVER = "a unit never arrived (not observed, not lost)"
IMPOSSIBLE = "a unit was on scene before it was sent"
OTHERS = "the log says that another number of units attended"
_SAME_M = 100.0  # nearer starts are one place


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Races:
    """Races among responses, two candidates each.

    ``rows`` has the two rows of ``responses`` that race, a line each, ordered by station, unit and
    start: by what was known at the call, never by arrival. ``left_out`` counts the calls with
    two units or more that are no race, by reason.
    """

    responses: Responses
    rows: npt.NDArray[np.int64]
    left_out: Mapping[str, int] = field(default_factory=dict)
    together_s: float = 5.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", read_only(self.rows, np.int64, (None, 2), "rows"))
        object.__setattr__(self, "left_out", MappingProxyType(dict(self.left_out)))
        if self.rows.size and not 0 <= self.rows.min() <= self.rows.max() < len(self.responses):
            raise InputError("rows: a race names a row that the responses do not have")

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Races({len(self):,} races)"

    @property
    def response_s(self) -> FloatArray:
        """Seconds from dispatch to arrival of both candidates, a line a race."""
        return self.responses.response_s[self.rows]

    @property
    def at(self) -> Times:
        """When the calls came in."""
        return self.responses.at[self.rows[:, 0]]

    @property
    def date(self) -> Times:
        """The city's day of the calls."""
        return self.responses.date[self.rows[:, 0]]

    def select(self, index: npt.ArrayLike) -> "Races":
        """The races of ``index``, numbers or a mask."""
        chosen = np.asarray(index)
        return replace(self, rows=self.rows[chosen if chosen.size else chosen.astype(np.int64)])

    def until(self, day: Day) -> "Races":
        """The races before this day of the city's calendar."""
        return self.select(self.date < as_day(day))

    def since(self, day: Day) -> "Races":
        """The races of this day of the city's calendar and later."""
        return self.select(self.date >= as_day(day))

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame, a line a race: the call, and both candidates side by side."""
        told, first = self.responses, self.rows[:, 0]
        columns = {name: getattr(told, name)[first] for name in _OF_CALL}
        for side, rows in zip(("a", "b"), self.rows.T, strict=True):
            columns |= {f"{name}_{side}": getattr(told, name)[rows] for name in _OF_UNIT}
        return frame(columns)


_OF_CALL = ("incident", "at", "call_kind", "district", "lon", "lat")
_OF_UNIT = ("unit", "kind", "station", "from_lon", "from_lat", "dispatched", "on_scene",
            "turnout_s", "drive_s", "response_s")  # fmt: skip


def find_races(responses: Responses, together_s: float = 5.0, kinds: Sequence[str] = ()) -> Races:
    """The clean races: exactly two units, dispatched within ``together_s`` of each other.

    Units of one kind race each other. ``kinds`` are kinds that count as one, such as
    ("ambulance", "medic"): then only units of these race. A call is no race where the two started
    at the same place, one of them never arrived, more were sent with them, or the log says that
    another number attended; such calls are counted.
    """
    ZERO_OR_MORE.check(together_s, "together_s")
    if kinds:
        unknown = set(kinds) - set(responses.kind.tolist())
        if unknown:
            known = ", ".join(sorted(set(responses.kind.tolist()) - {""})) or "none"
            raise InputError(f"kinds: no unit is of kind {min(unknown)!r}; the log has {known}")
    sent = ~np.isnat(responses.dispatched)
    sent &= np.isin(responses.kind, kinds) if kinds else True
    rows = np.flatnonzero(sent)
    kind = np.zeros(len(responses), np.int64)
    if not kinds:
        kind = np.unique(responses.kind, return_inverse=True)[1]
    order = rows[np.lexsort((responses.dispatched[rows], kind[rows], responses.calls[rows]))]
    keys = np.column_stack([responses.calls[order], kind[order]])
    starts = np.flatnonzero(np.any(np.diff(keys, axis=0, prepend=-1), axis=1))
    found: list[tuple[int, int]] = []
    left_out: Counter[str] = Counter()
    for group in np.split(order, starts[1:]):
        if group.size > 1:
            verdict = _race(responses, group, together_s)
            if isinstance(verdict, str):
                left_out[verdict] += 1
            else:
                found.append(verdict)
    return Races(responses, np.array(sorted(found), np.int64).reshape(-1, 2), left_out, together_s)


def _race(
    responses: Responses, group: npt.NDArray[np.intp], together_s: float
) -> tuple[int, int] | str:
    """The race among units of one call, earliest dispatch first, or why there is none."""
    dispatched = responses.dispatched[group]
    gap_s = (dispatched - dispatched[0]) / np.timedelta64(1, "s")
    first = group[gap_s <= together_s]
    if first.size < 2:
        return APART
    if first.size > 2:
        return MANY
    attending = set(responses.attending[first].tolist()) - {0}
    if attending - {2}:
        return OTHERS
    if not responses.arrived[first].all():
        return NEVER
    if (responses.response_s[first] < 0).any():
        return IMPOSSIBLE
    if not _apart(responses, first):
        return ONE_START
    a, b = sorted(first.tolist(), key=lambda row: _identity(responses, row))
    return a, b


def _apart(responses: Responses, pair: npt.NDArray[np.intp]) -> bool:
    """Whether two units started at different places, or else at stations of different names."""
    lon, lat = responses.from_lon[pair], responses.from_lat[pair]
    if not np.isnan(lon + lat).any():
        return bool(great_circle_m(lon[:1], lat[:1], lon[1:], lat[1:])[0] >= _SAME_M)
    a, b = responses.station[pair].tolist()
    return bool(a and b and a != b)


def _identity(responses: Responses, row: int) -> tuple[str, str, float, float]:
    """What is known of a unit at the call."""
    place = float(responses.from_lon[row]), float(responses.from_lat[row])
    return str(responses.station[row]), str(responses.unit[row]), *place

"""Past calls as an agency has them: when, where and how urgent, to be counted or repeated."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.city import HOURS
from ideal_dispatch.network.readers import table_rows
from ideal_dispatch.records.responses import Responses
from ideal_dispatch.records.schema import Times

_NAMES = {
    "time": ("time", "received", "call_time"), **table_rows.DEGREES, "priority": ("priority",)
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class PastCalls:
    """Calls in the order of their times on the city's clock.

    ``priority`` has the number of each among the named priorities; None where no call has one.
    """

    where: str
    at: Times
    lon: FloatArray
    lat: FloatArray
    priority: IntArray | None

    @classmethod
    def read(cls, path: Path, priorities: Sequence[str]) -> "PastCalls":
        """From a .responses file, or from a CSV with the columns time, lon, lat and priority.

        Times of a CSV are on the city's clock. The priority of a response is the kind of its
        call.
        """
        if path.suffix == ".responses":
            return cls._of_responses(Responses.load(path), str(path), priorities)
        where, rows = table_rows.read(
            path, _NAMES, ("time", "lon", "lat"), "time, lon and lat are needed"
        )
        mark = table_rows.degrees_mark(rows)
        places = [
            [table_rows.number(where, line, field, row, mark) for field in ("lon", "lat")]
            for line, row in rows
        ]
        at = np.array([_time(where, line, row.get("time", "")) for line, row in rows], "M8[s]")
        lon, lat = np.array(places, np.float64).reshape(-1, 2).T
        given = [row.get("priority", "") for _, row in rows]
        lines = [f"{where} line {line}" for line, _ in rows]
        return cls._sorted(where, at, lon, lat, _levels(given, lines, priorities))

    @classmethod
    def _of_responses(
        cls, responses: Responses, where: str, priorities: Sequence[str]
    ) -> "PastCalls":
        """One call for all units of it; those without a place are left out."""
        placed = np.flatnonzero(np.isfinite(responses.lon) & np.isfinite(responses.lat))
        _, first = np.unique(responses.calls[placed], return_index=True)
        rows = placed[first]
        kinds = responses.call_kind[rows].tolist()
        known = bool(set(kinds) & set(priorities))  # else the log has kinds of another sort
        lines = [f"{where}, call {name}" for name in responses.incident[rows]]
        return cls._sorted(
            where, responses.local[rows], responses.lon[rows], responses.lat[rows],
            _levels(kinds, lines, priorities) if known else None,
        )  # fmt: skip

    @classmethod
    def _sorted(
        cls, where: str, at: Times, lon: FloatArray, lat: FloatArray, priority: IntArray | None
    ) -> "PastCalls":
        if not at.size:
            raise InputError(f"{where}: no call with a time and a place in it")
        order = np.argsort(at, kind="stable")
        levels = None if priority is None else priority[order]
        return cls(where, at[order], lon[order], lat[order], levels)

    def __getitem__(self, rows: BoolArray) -> "PastCalls":
        """Some of them."""
        return PastCalls._sorted(
            self.where, self.at[rows], self.lon[rows], self.lat[rows],
            None if self.priority is None else self.priority[rows],
        )  # fmt: skip

    @property
    def midnight(self) -> str:
        """The date of the first call."""
        return str(self.at[0].astype("M8[D]"))

    @property
    def at_s(self) -> FloatArray:
        """Seconds from the midnight before the first call."""
        since = self.at - np.datetime64(self.midnight)
        return np.asarray(since / np.timedelta64(1, "s"), np.float64)

    @property
    def per_day(self) -> float:
        """Their mean number a day, first and last day included."""
        return float(len(self.at) / (self.at_s[-1] // 86_400.0 + 1.0))

    @property
    def by_hour(self) -> FloatArray:
        """How they fall on the hours of a day: 1 is the mean."""
        hours = (self.at_s // 3600.0).astype(np.int64) % HOURS
        return np.asarray(np.bincount(hours, minlength=HOURS) * HOURS / len(self.at), np.float64)


def _time(where: str, line: int, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{where} line {line}: time is {text!r}; one such as 2024-05-01 13:45:00 is needed"
        ) from None
    if moment.tzinfo is not None:
        raise InputError(
            f"{where} line {line}: time {text} names a zone; write the city's own time without one"
        )
    return moment


def _levels(
    given: Sequence[str], lines: Sequence[str], priorities: Sequence[str]
) -> IntArray | None:
    if not any(given):
        return None
    for name, line in zip(given, lines, strict=True):
        if name not in priorities:
            raise InputError(f"{line}: priority {name!r} is none of {', '.join(priorities)}")
    return np.array([priorities.index(name) for name in given], np.int32)

"""The contexts that a model was trained on, and what becomes of one that is unlike them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import WEATHER_VARIABLES, ContextEncoding, Weather
from ideal_dispatch.context.encoding import MONTHS, WEEKDAYS

LEAST_TRIPS = 30
"""A month, weekday or holiday with fewer training trips is neutral."""

_MARGIN = 0.1  # of the range seen: a value this far outside is still called usual
_CATEGORIES = (WEEKDAYS, MONTHS, ("holiday",), ("holiday_eve",))


@dataclass(frozen=True, slots=True)
class SeenContexts:
    """The range of every context column in training, and how often its categories occurred.

    A column that was never known is NaN and never unusual. ``trips_by_hour``
    has a number for each hour of the day, ``trips_by_flag`` one for each flag.
    ``sources`` names, for each weather variable, where its values came from;
    values of another source may be measured differently.
    """

    trips: int
    least: tuple[float, ...]
    greatest: tuple[float, ...]
    trips_by_hour: tuple[int, ...]
    trips_by_flag: Mapping[str, int]
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        contexts: FloatArray,
        encoding: ContextEncoding,
        sources: Mapping[str, tuple[str, ...]] | None = None,
    ) -> "SeenContexts":
        """What training contexts, encoded, show."""
        columns = encoding.columns
        hours = contexts[:, columns.index("hour")]
        known = ~np.isnan(contexts)
        least = np.where(known, contexts, np.inf).min(axis=0)
        greatest = np.where(known, contexts, -np.inf).max(axis=0)
        never = ~known.any(axis=0)
        least[never] = greatest[never] = np.nan
        counts = np.bincount(hours[~np.isnan(hours)].astype(int), minlength=24)
        ones = (contexts == 1.0).sum(axis=0).tolist()
        flags = {name: ones[columns.index(name)] for group in _CATEGORIES for name in group}
        return cls(
            len(contexts), tuple(least.tolist()), tuple(greatest.tolist()), tuple(counts.tolist()),
            flags, dict(sources or {}),
        )  # fmt: skip

    @property
    def least_trips(self) -> int:
        """Fewer trips than this say nothing about a category: 30, or 2 % of few trips."""
        return max(1, min(LEAST_TRIPS, self.trips // 50))

    def held(self, rows: FloatArray, encoding: ContextEncoding) -> FloatArray:
        """Encoded contexts without what training could not learn.

        A month, weekday, holiday or its eve of too few trips becomes unknown, so
        that a network sees the mean of its training there. An hour of too few
        trips becomes the nearest hour, around the clock, that has enough.
        """
        held, columns = rows.copy(), encoding.columns
        for group in _CATEGORIES:
            where = [columns.index(name) for name in group]
            counts = np.array([self.trips_by_flag[name] for name in group])
            values = held[:, where]
            rare = ((values == 1.0) & (counts < self.least_trips)).any(axis=1)
            if len(group) == 1:
                rare |= (values[:, 0] == 0.0) & (self.trips - counts[0] < self.least_trips)
            held[np.ix_(rare, where)] = np.nan
        hour = columns.index("hour")
        learned = self.learned_hours
        for i in np.flatnonzero(~np.isnan(held[:, hour])):
            if learned and int(held[i, hour]) not in learned:
                apart = np.abs(np.array(learned) - held[i, hour])
                held[i, hour] = learned[np.minimum(apart, 24 - apart).argmin()]
        return held

    @property
    def learned_hours(self) -> tuple[int, ...]:
        """The hours of the day with enough trips; where none has, all with any."""
        least = max(1, min(LEAST_TRIPS, self.trips // 200))  # of 24, whose neighbours are alike
        often = np.flatnonzero(np.array(self.trips_by_hour) >= least)
        return tuple((often if often.size else np.flatnonzero(self.trips_by_hour)).tolist())

    def other_sources(self, weather: Weather) -> tuple[str, ...]:
        """Which weather values come from a source that training did not know, in words."""
        return tuple(
            f"{name} is from {value.source or 'an unnamed source'}, "
            f"training had it from {', '.join(self.sources[name])}"
            for name, value in zip(WEATHER_VARIABLES, weather, strict=True)
            if value.known and name in self.sources and value.source not in self.sources[name]
        )

    def unusual(self, row: FloatArray, encoding: ContextEncoding) -> tuple[str, ...]:
        """How an encoded context differs from what was learned, in words."""
        reasons = []
        least, greatest = np.array(self.least), np.array(self.greatest)
        margin = np.where(least == greatest, 0.0, _MARGIN * (greatest - least))
        outside = (row < least - margin) | (row > greatest + margin)  # False on NaN
        for index, name in enumerate(encoding.columns):
            if name in self.trips_by_flag:
                if row[index] == 1.0 and self.trips_by_flag[name] < self.least_trips:
                    word = name.title() if name in (*WEEKDAYS, *MONTHS) else name.replace("_", " ")
                    reasons.append(f"{word} ({_trips(self.trips_by_flag[name])})")
            elif outside[index] and name != "hour":
                reasons.append(
                    f"{name} {row[index]:g} (seen: {least[index]:g} … {greatest[index]:g})"
                )
        hour = row[encoding.columns.index("hour")]
        if any(self.trips_by_hour) and not np.isnan(hour) and int(hour) not in self.learned_hours:
            reasons.append(f"hour {int(hour)} ({_trips(self.trips_by_hour[int(hour)])})")
        return tuple(reasons)

    def as_dict(self) -> dict[str, Any]:
        """Plain values; NaN, which JSON does not have, is null."""
        known = asdict(self)
        for name in ("least", "greatest"):
            known[name] = [None if np.isnan(v) else v for v in known[name]]
        return known

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "SeenContexts":
        """What :meth:`as_dict` wrote."""
        least, greatest = (
            tuple(np.nan if v is None else float(v) for v in values[name])
            for name in ("least", "greatest")
        )
        hours = tuple(int(count) for count in values["trips_by_hour"])
        flags = {name: int(count) for name, count in values["trips_by_flag"].items()}
        sources = {name: tuple(known) for name, known in values["sources"].items()}
        return cls(int(values["trips"]), least, greatest, hours, flags, sources)


def _trips(count: int) -> str:
    return f"{count or 'no'} {'trip' if count == 1 else 'trips'}"

"""What a model has seen in training, to say when a context is outside it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import WEATHER_VARIABLES, ContextEncoding, Weather

_MARGIN = 0.1  # of the range seen: a value this far outside is still called usual


@dataclass(frozen=True, slots=True)
class Seen:
    """The range of every context column in training, and the hours that occurred.

    A column that was never known is NaN: nothing can be said about it.
    ``sources`` names, for each weather variable, where its values came from;
    values of another source may be measured differently.
    """

    least: tuple[float, ...]
    greatest: tuple[float, ...]
    hours: tuple[int, ...]
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        contexts: FloatArray,
        encoding: ContextEncoding,
        sources: Mapping[str, tuple[str, ...]] | None = None,
    ) -> "Seen":
        """The ranges of training contexts."""
        hours = contexts[:, encoding.columns.index("hour")]
        known = ~np.isnan(contexts)
        least = np.where(known, contexts, np.inf).min(axis=0)
        greatest = np.where(known, contexts, -np.inf).max(axis=0)
        never = ~known.any(axis=0)
        least[never] = greatest[never] = np.nan
        seen = np.unique(hours[~np.isnan(hours)]).astype(int)
        ranges = tuple(least.tolist()), tuple(greatest.tolist())
        return cls(*ranges, tuple(seen.tolist()), dict(sources or {}))

    def other_sources(self, weather: Weather) -> tuple[str, ...]:
        """Which weather values come from a source that training did not know, in words."""
        return tuple(
            f"{name} is from {value.source or 'an unnamed source'}, "
            f"training had it from {', '.join(self.sources[name])}"
            for name, value in zip(WEATHER_VARIABLES, weather, strict=True)
            if value.known and name in self.sources and value.source not in self.sources[name]
        )

    def unusual(self, row: FloatArray, encoding: ContextEncoding) -> tuple[str, ...]:
        """How an encoded context differs from everything seen, in words."""
        reasons = []
        least, greatest = np.array(self.least), np.array(self.greatest)
        margin = np.where(least == greatest, 0.0, _MARGIN * (greatest - least))
        outside = (row < least - margin) | (row > greatest + margin)  # False on NaN
        for index in np.flatnonzero(outside):
            name, value = encoding.columns[index], row[index]
            if name == "hour":
                continue
            if (least[index], greatest[index]) == (0.0, 0.0) and value == 1.0:
                reasons.append(f"{name.replace('_', ' ')}: never seen in training")
            elif not (least[index] == greatest[index] == 1.0 and value == 0.0):
                reasons.append(
                    f"{name} {value:g} is outside {least[index]:g} … {greatest[index]:g} "
                    "seen in training"
                )
        hour = row[encoding.columns.index("hour")]
        if self.hours and not np.isnan(hour) and int(hour) not in self.hours:
            reasons.append(f"hour {int(hour)}: never seen in training")
        return tuple(reasons)

    def as_dict(self) -> dict[str, Any]:
        """Plain values; NaN, which JSON does not have, is null."""
        plain = {
            name: [None if np.isnan(v) else v for v in getattr(self, name)]
            for name in ("least", "greatest")
        }
        sources = {name: list(known) for name, known in self.sources.items()}
        return {**plain, "hours": list(self.hours), "sources": sources}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Seen":
        """What :meth:`as_dict` wrote."""
        least, greatest = (
            tuple(np.nan if v is None else float(v) for v in values[name])
            for name in ("least", "greatest")
        )
        sources = {name: tuple(known) for name, known in values["sources"].items()}
        return cls(least, greatest, tuple(int(hour) for hour in values["hours"]), sources)

"""What years of a fleet come to: numbers of one year, and rows of tables over all years."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.fleet.calls import Calls
from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.experiment import NEVER
from ideal_dispatch.fleet.prices import LATE_S
from ideal_dispatch.fleet.simulation import BIN_S, BINS, Year
from ideal_dispatch.fleet.units import Log

ENOUGH_YEARS, MANY_YEARS = 5, 10
"""From so many years on, a difference may be called sure, and years alone tell how sure."""

SUMMARY = (
    "policy", "recall", "utilisation", "second_share", "deaths_per_1000", "paired_se",
    "mean_first_s", "p90_first_s", "late_share", "others_mean_s", "second_unit_minutes",
)  # fmt: skip
"""The keys of a row of the summary."""

_COUNTED = ("deaths", "entitled", "seconds", "held_s", "stood", "stood_s", "queued", "busy")
_SPECIAL = ("arrests", "others")  # groups beside those of the priorities, which have all calls


def deaths_of(city: FleetCity, calls: Calls, log: Log, from_s: float) -> FloatArray:
    """The chance of death of every arrest that is counted."""
    counted = calls.arrest & (calls.at_s >= from_s)
    response_s = (log.first_s - calls.at_s)[counted]
    return np.asarray(np.interp(response_s, np.arange(len(city.risk)), city.risk), np.float64)


def entry(year: Year, difference: FloatArray) -> dict[str, Any]:
    """A year in plain JSON; ``difference`` are its arrests' chances of death less never's."""
    groups = {}
    for k, name in enumerate(year.groups):
        used = np.flatnonzero(year.bins[k])
        first, last = (int(used[0]), int(used[-1]) + 1) if used.size else (0, 0)
        groups[name] = {
            "calls": int(year.calls[k]), "total_s": float(year.total_s[k]),
            "first_bin": first, "bins": year.bins[k][first:last].tolist(),
        }  # fmt: skip
    alone = difference.std(ddof=1) / math.sqrt(len(difference)) if len(difference) > 1 else 0.0
    numbers = {name: getattr(year, name) for name in _COUNTED}
    return {**numbers, "alone_se": float(alone), "groups": groups}


@dataclass(slots=True)
class Tally:
    """The years of one policy, taken up in any order; sums do not depend on it."""

    years: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    bins: dict[str, Any] = field(default_factory=dict)

    def add(self, seed: int, year: int, one: Mapping[str, Any]) -> None:
        """Count a year as :func:`entry` gave it."""
        groups = {}
        for name, group in one["groups"].items():
            bins = self.bins.setdefault(name, np.zeros(BINS, np.int64))
            found = np.array(group["bins"], np.int64)
            bins[group["first_bin"] :][: len(found)] += found
            groups[name] = (group["calls"], group["total_s"])
        self.years[seed, year] = {**one, "groups": groups}

    def each(self, name: str) -> FloatArray:
        """A number of every year, in their order."""
        return np.array([self.years[key][name] for key in sorted(self.years)], float)

    def group(self, *names: str) -> dict[str, Any]:
        """Calls, mean, 90th percentile and late share of the calls of some groups."""
        inside = [one["groups"][name] for _, one in sorted(self.years.items()) for name in names]
        calls, total_s = sum(one[0] for one in inside), math.fsum(one[1] for one in inside)
        bins = sum((self.bins[name] for name in names), np.zeros(BINS, np.int64))
        if not calls:
            return {"calls": 0, "mean_s": None, "p90_s": None, "late_share": None}
        late = int(bins[int(LATE_S / BIN_S) :].sum())
        return {"calls": calls, "mean_s": total_s / calls, "p90_s": _quantile(bins, 0.9),
                "late_share": late / calls}  # fmt: skip

    @property
    def arrests(self) -> FloatArray:
        """The cardiac arrests of every year."""
        return np.array([one["groups"]["arrests"][0] for _, one in sorted(self.years.items())])

    @property
    def deaths_per_1000(self) -> float:
        """Expected deaths among 1,000 cardiac arrests."""
        return 1000.0 * float(self.each("deaths").sum()) / max(float(self.arrests.sum()), 1.0)

    @property
    def deaths_by_year(self) -> FloatArray:
        """The same of every year, in their order."""
        return np.asarray(1000.0 * self.each("deaths") / np.maximum(self.arrests, 1))

    def row(self, never: "Tally") -> dict[str, Any]:
        """The numbers of a policy over its years; ``never`` are the same years without seconds."""
        total = {name: float(self.each(name).sum()) for name in _COUNTED}
        everybody = self.group(*(name for name in self.bins if name not in _SPECIAL))
        difference = self.deaths_per_1000 - never.deaths_per_1000
        return {
            "years": len(self.years),
            "utilisation": total["busy"] / len(self.years),
            "second_share": total["seconds"] / max(total["entitled"], 1.0),
            "deaths_per_1000": self.deaths_per_1000,
            "deaths_difference": difference,
            "paired_se": self._paired_se(never),
            "mean_first_s": everybody["mean_s"],
            "p90_first_s": everybody["p90_s"],
            "late_share": everybody["late_share"],
            "others_mean_s": self.group("others")["mean_s"],
            "others_se_s": self._others_se_s(never),
            "second_unit_minutes": total["held_s"] / 60.0 / max(total["seconds"], 1.0),
            "stood_down_share": total["stood"] / max(total["seconds"], 1.0),
            "stood_down_minutes": total["stood_s"] / 60.0 / max(total["stood"], 1.0),
            "deaths_by_year": self.deaths_by_year.tolist(),
            "queued_share": total["queued"] / max(everybody["calls"], 1),
            "groups": {name: self.group(name) for name in self.bins},
        }

    def _paired_se(self, never: "Tally") -> float:
        """Of the difference to never in deaths per 1,000: over years, where there are many.

        A few years can be alike by chance. Then the arrests within each year are asked as well,
        and the larger error counts.
        """
        change = self.deaths_by_year - never.deaths_by_year
        over_years = standard_error(change) if len(change) > 1 else 0.0
        if len(change) >= MANY_YEARS:
            return over_years
        arrests = np.maximum(self.arrests, 1)
        within = math.hypot(*(arrests * self.each("alone_se"))) / float(arrests.sum())
        return max(over_years, 1000.0 * within)

    def _others_se_s(self, never: "Tally") -> float | None:
        """Of the others' longer mean wait than with never, over years; None: too few years."""
        keys = sorted(self.years)
        pairs = [[one.years[key]["groups"]["others"] for one in (self, never)] for key in keys]
        change = [own[1] / own[0] - base[1] / base[0] for own, base in pairs if own[0] and base[0]]
        return standard_error(np.array(change)) if len(change) >= ENOUGH_YEARS else None


def standard_error(values: FloatArray) -> float:
    """Of the mean of some values, one of each year."""
    return float(values.std(ddof=1)) / math.sqrt(len(values))


def _quantile(bins: Any, share: float) -> float:
    """Where so many of the calls have had their first arrival, even inside a bin."""
    below = np.concatenate([[0], np.cumsum(bins)])
    k = int(np.searchsorted(below, share * below[-1], side="left")) - 1
    part = (share * below[-1] - below[k]) / (below[k + 1] - below[k])
    return float(BIN_S * (k + part))


def summary(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same rows with the keys of the summary alone; "never" once for each rule of recall."""
    recalls = list(dict.fromkeys(row["recall"] for row in rows if row["policy"] != NEVER))
    told = (
        {**row, "recall": recall}
        for row in rows
        for recall in (recalls if row["policy"] == NEVER and recalls else [row["recall"]])
    )
    return [{name: row[name] for name in SUMMARY} for row in told]

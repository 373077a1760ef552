"""What years of a fleet come to: totals of one year, and rows of tables over all years."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.fleet.calls import DAY_S, Calls, counted_from_s
from ideal_dispatch.fleet.prices import LATE_S
from ideal_dispatch.fleet.simulation import Simulator
from ideal_dispatch.fleet.units import Log, State

NEVER = "never"
"""The policy that all others are compared with; it takes part in every experiment."""

ENOUGH_YEARS, MANY_YEARS = 5, 10
"""Years from which a difference may be called certain, and from which their spread suffices."""

SUMMARY = (
    "policy", "recall", "utilisation", "second_share", "deaths_per_1000", "paired_se",
    "mean_first_s", "p90_first_s", "late_share", "others_mean_s", "second_unit_minutes",
)  # fmt: skip
"""The keys of a row of the summary."""

_BIN_S, _BINS = 5.0, 1440  # first arrivals are counted in bins with their ends; the last is open
_SUMS = ("deaths", "entitled", "seconds", "held_s", "stood", "stood_s", "queued", "busy")
_SPECIAL = ("arrests", "others")  # groups beside those of the priorities, which have all calls


def year_totals(
    simulator: Simulator,
    calls: Calls,
    state: State,
    log: Log,
    days: float,
    never: FloatArray | None = None,
) -> tuple[dict[str, Any], FloatArray]:
    """A year in plain JSON, and the chance of death of every arrest that is counted.

    ``deaths`` is the expected number among the arrests. ``seconds`` second units went to
    ``entitled`` calls; ``held_s`` is for how long units were kept that took no patient, ``stood``
    how many were stood down on their way. ``queued`` calls found no unit free, or lost theirs to
    a more urgent call. ``alone_se`` is the standard error, within this year, of the difference to
    ``never``, the chances of death without second units. ``groups`` are the arrests, the calls
    that are not entitled to a second unit, and each priority, with the number of calls, the sum
    of seconds until the first arrival, and how many fell into each bin of seconds.
    """
    city = simulator.city
    counted = calls.at_s >= counted_from_s(city, days)
    response_s = log.first_s - calls.at_s
    groups = {}
    members = {"arrests": calls.arrest, "others": ~calls.entitled}
    members |= {one.name: calls.priority == k for k, one in enumerate(city.priorities)}
    for name, inside in members.items():
        taken_s = response_s[counted & inside]
        place = np.clip(np.ceil(taken_s / _BIN_S) - 1, 0, _BINS - 1).astype(np.int64)
        bins = np.bincount(place, minlength=_BINS)
        used = np.flatnonzero(bins)
        first, last = (int(used[0]), int(used[-1]) + 1) if used.size else (0, 0)
        groups[name] = {
            "calls": len(taken_s), "total_s": float(taken_s.sum()),
            "first_bin": first, "bins": bins[first:last].tolist(),
        }  # fmt: skip
    arrests_s = response_s[counted & calls.arrest]
    risk = np.asarray(np.interp(arrests_s, np.arange(len(city.risk)), city.risk), np.float64)
    change = risk - (risk if never is None else never)
    alone_se = change.std(ddof=1) / math.sqrt(len(change)) if len(change) > 1 else 0.0
    second = counted & (log.unit[:, 1] >= 0)
    stood = np.isfinite(log.stood_s[second])
    kept_s = (log.stood_s[second] - log.sent_s[second])[stood]
    waited = counted & (log.sent_s[:, 0] > calls.at_s + city.work.delay_s + 1e-6)
    totals = {
        "deaths": float(risk.sum()),
        "entitled": int((counted & calls.entitled).sum()),
        "seconds": int(second.sum()),
        "held_s": float(log.held_s[second].sum()),
        "stood": int(stood.sum()),
        "stood_s": float(kept_s.sum()),
        "queued": int(waited.sum()),
        "busy": float(state.busy_s.sum() / (days * DAY_S * city.on_duty.mean())),
        "alone_se": float(alone_se),
        "groups": groups,
    }
    return totals, risk


@dataclass(slots=True)
class RunSummary:
    """The years of one policy, added in any order; sums do not depend on it."""

    years: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    bins: dict[str, Any] = field(default_factory=dict)

    def add(self, seed: int, year: int, totals: Mapping[str, Any]) -> None:
        """Count a year as :func:`year_totals` gave it."""
        groups = {}
        for name, group in totals["groups"].items():
            bins = self.bins.setdefault(name, np.zeros(_BINS, np.int64))
            found = np.array(group["bins"], np.int64)
            bins[group["first_bin"] :][: len(found)] += found
            groups[name] = (group["calls"], group["total_s"])
        self.years[seed, year] = {**totals, "groups": groups}

    def each(self, name: str) -> FloatArray:
        """A number of every year, in their order."""
        return np.array([self.years[key][name] for key in sorted(self.years)], float)

    def group(self, *names: str) -> dict[str, Any]:
        """Calls, mean, 90th percentile and late share of the calls of some groups."""
        inside = [one["groups"][name] for _, one in sorted(self.years.items()) for name in names]
        calls, total_s = sum(one[0] for one in inside), math.fsum(one[1] for one in inside)
        bins = sum((self.bins[name] for name in names), np.zeros(_BINS, np.int64))
        if not calls:
            return {"calls": 0, "mean_s": None, "p90_s": None, "late_share": None}
        # the 90th percentile lies where so many calls have had their first arrival, also in a bin
        below = np.concatenate([[0], np.cumsum(bins)])
        k = int(np.searchsorted(below, 0.9 * below[-1], side="left")) - 1
        part = (0.9 * below[-1] - below[k]) / (below[k + 1] - below[k])
        late = int(bins[int(LATE_S / _BIN_S) :].sum())
        return {"calls": calls, "mean_s": total_s / calls, "p90_s": float(_BIN_S * (k + part)),
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

    def row(self, never: "RunSummary") -> dict[str, Any]:
        """The numbers of a policy over its years; ``never`` are the same years without seconds."""
        total = {name: float(self.each(name).sum()) for name in _SUMS}
        everybody = self.group(*(name for name in self.bins if name not in _SPECIAL))
        return {
            "years": len(self.years),
            "utilisation": total["busy"] / len(self.years),
            "second_share": total["seconds"] / max(total["entitled"], 1.0),
            "deaths_per_1000": self.deaths_per_1000,
            "deaths_difference": self.deaths_per_1000 - never.deaths_per_1000,
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

    def _paired_se(self, never: "RunSummary") -> float:
        """Of the difference to never in deaths per 1,000: over years, where there are many.

        A few years can be alike by chance. Then the larger of the error over years and of the
        error of the arrests within each year counts.
        """
        change = self.deaths_by_year - never.deaths_by_year
        over_years = standard_error(change) if len(change) > 1 else 0.0
        if len(change) >= MANY_YEARS:
            return over_years
        arrests = np.maximum(self.arrests, 1)
        within = math.hypot(*(arrests * self.each("alone_se"))) / float(arrests.sum())
        return max(over_years, 1000.0 * within)

    def _others_se_s(self, never: "RunSummary") -> float | None:
        """Of the others' longer mean wait than with never, over years; None: too few years."""
        keys = sorted(self.years)
        pairs = [[one.years[key]["groups"]["others"] for one in (self, never)] for key in keys]
        change = [own[1] / own[0] - base[1] / base[0] for own, base in pairs if own[0] and base[0]]
        return standard_error(np.array(change)) if len(change) >= ENOUGH_YEARS else None


def standard_error(values: FloatArray) -> float:
    """Of the mean of some values, one of each year."""
    return float(values.std(ddof=1)) / math.sqrt(len(values))


def summary(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same rows with the keys of the summary alone; "never" once for each rule of recall."""
    recalls = list(dict.fromkeys(row["recall"] for row in rows if row["policy"] != NEVER))
    repeated = (
        {**row, "recall": recall}
        for row in rows
        for recall in (recalls if row["policy"] == NEVER and recalls else [row["recall"]])
    )
    return [{name: row[name] for name in SUMMARY} for row in repeated]

"""What a folder of ``ideal fleet simulate`` says: every run, and the runs that can be compared."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch.dispatch.recall import RECALLS, Recall
from ideal_dispatch.errors import InputError
from ideal_dispatch.experiment.engine import read_manifest
from ideal_dispatch.fleet.calls import YEAR_DAYS
from ideal_dispatch.fleet.results import standard_error
from ideal_dispatch.fleet.run import KIND, RUNS, read_runs
from ideal_dispatch.toml_tables import built, complaints_about

NEVER, ALWAYS, PRICED = "never", "always", "priced C"
NOT_PRIORITIES = ("arrests", "others")
"""Groups of calls that lie across the priorities."""

HARM_S = 5.0
"""The other calls are harmed where they wait longer than this, in the mean."""

SURE = 2.0
"""A difference of more standard errors than this is beyond chance."""

_SAME_CALLS = 0.001


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When help came to a group of calls: mean, 90th percentile, share that came late."""

    calls: int
    mean_s: float | None
    p90_s: float | None
    late_share: float | None


@dataclass(frozen=True, slots=True)
class FleetRun:
    """Years of one fleet under one rule for the second unit, as a row of ``runs.json``.

    ``load`` is the share of unit time that was asked for, None for the city's own calls.
    ``deaths_difference`` is to "never" in the same years, ``paired_se`` its standard error
    over years. ``others_mean_s`` is of calls that are not entitled to a second unit, None where
    there are none, ``others_se_s`` the standard error of its difference to "never", None where
    there are too few years. ``deaths_by_year`` has the deaths of every year, where they are
    known. ``second_share`` is of the calls that are entitled to a second unit, these are the
    share ``entitled`` of all; ``stood_down_share`` is of the second units that went.
    """

    city: str
    units: int
    load: float | None
    entitled: float
    policy: str
    recall: Recall
    years: int
    utilisation: float
    second_share: float
    deaths_per_1000: float
    deaths_difference: float
    paired_se: float | None
    mean_first_s: float
    p90_first_s: float
    late_share: float
    others_mean_s: float | None
    second_unit_minutes: float
    stood_down_share: float | None
    stood_down_minutes: float | None
    queued_share: float
    groups: Mapping[str, Arrivals]
    others_se_s: float | None = None
    deaths_by_year: tuple[float, ...] = ()
    days: int = YEAR_DAYS

    def error_against(self, other: "FleetRun") -> float | None:
        """The standard error of the difference in deaths to a run of the same calls, over years."""
        own, its = np.array(self.deaths_by_year), np.array(other.deaths_by_year)
        return standard_error(own - its) if len(own) == len(its) > 1 else None

    @property
    def more_survivors(self) -> float:
        """How many more of 1,000 survive than if no second unit ever goes."""
        return 0.0 - self.deaths_difference  # no −0.0

    def a_year(self, group: str) -> float:
        """The calls of a group in a year."""
        return self.groups[group].calls / self.years * YEAR_DAYS / self.days

    @property
    def calls_a_year(self) -> float:
        """Calls of all priorities."""
        return sum(self.a_year(name) for name in self.groups if name not in NOT_PRIORITIES)

    @property
    def unit_hours(self) -> float:
        """Hours a year for which a unit was held that took no patient."""
        seconds = self.second_share * self.entitled * self.calls_a_year
        return seconds * self.second_unit_minutes / 60.0


@dataclass(frozen=True, slots=True)
class Setting:
    """The runs of one city with one fleet, one load and one kind of entitled calls."""

    city: str
    units: int
    load: float | None
    entitled: float
    runs: tuple[FleetRun, ...]

    def __post_init__(self) -> None:
        if self.find(NEVER) is None:
            raise InputError(
                f"{self.name}: no run of {NEVER!r} to compare with; add it to the policies"
            )

    @property
    def fleet(self) -> str:
        """City, units and load, for people."""
        load = "its own calls" if self.load is None else f"load {self.load:g}"
        return f"{self.city}, {self.units} units, {load}"

    @property
    def name(self) -> str:
        """What sets it apart, for people."""
        return f"{self.fleet}, {100 * self.entitled:.0f} % entitled"

    @property
    def never(self) -> FleetRun:
        """The run without any second unit."""
        found = self.find(NEVER)
        assert found is not None
        return found

    @property
    def with_seconds(self) -> tuple[FleetRun, ...]:
        """All other runs."""
        return tuple(run for run in self.runs if run.policy != NEVER)

    def find(self, policy: str, recall: Recall | None = None) -> FleetRun | None:
        """The run of a policy, by any rule of recall where none is named."""
        return next(
            (run for run in self.runs if run.policy == policy and recall in (None, run.recall)),
            None,
        )

    def chosen(self) -> list[FleetRun]:
        """The runs that always send two and those by price, one for each rule of recall."""
        wanted = (self.find(one, recall) for one, recall in product((ALWAYS, PRICED), RECALLS))
        return [run for run in wanted if run is not None]

    def others_later_s(self, run: FleetRun) -> float | None:
        """How much longer the calls that get no second unit wait than without second units."""
        return more(run.others_mean_s, self.never.others_mean_s)

    def others_sooner(self, run: FleetRun) -> bool:
        """Whether the others wait less than without second units, beyond chance."""
        later_s, error_s = self.others_later_s(run), run.others_se_s
        return later_s is not None and error_s is not None and later_s < -SURE * error_s


@dataclass(frozen=True, slots=True)
class FleetRuns:
    """All settings of a folder, and what its manifest notes of the cities."""

    settings: tuple[Setting, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> "FleetRuns":
        """The runs of a folder made by ``ideal fleet simulate``."""
        rows, notes = read_runs(folder)
        days = read_manifest(folder, KIND)["experiment"]["days"]
        with complaints_about(Path(folder) / RUNS):
            return cls.of(rows, notes, days)

    @classmethod
    def of(
        cls, rows: Sequence[Mapping[str, Any]], notes: Sequence[str] = (), days: int = YEAR_DAYS
    ) -> "FleetRuns":
        """The runs of rows as ``runs.json`` has them, with years of so many days."""
        found: dict[tuple[str, int, float | None, float], list[FleetRun]] = {}
        for number, row in enumerate(rows):
            run = built(FleetRun, row, f"run {number}", days=days)
            found.setdefault((run.city, run.units, run.load, run.entitled), []).append(run)
        if not found:
            raise InputError("no runs; let the simulation finish a year")
        return cls(tuple(Setting(*key, tuple(runs)) for key, runs in found.items()), tuple(notes))

    @property
    def main(self) -> Setting:
        """The setting of the headline: the first city's, fewest entitled, middle load."""
        first = self.by_load()[0]
        return first[(len(first) - 1) // 2]

    def by_load(self) -> list[list[Setting]]:
        """Settings that differ by load alone, from the least busy; fewest entitled first."""
        return self._alike(
            lambda one: (one.city, one.units, one.entitled), lambda one: one.never.utilisation
        )

    def by_fleet(self) -> list[list[Setting]]:
        """Settings that differ by the number of units alone, two or more, the same calls."""
        groups = self._alike(
            lambda one: (one.city, one.load, one.entitled), lambda one: float(one.units)
        )
        return [group for group in groups if len(group) > 1]

    def one_more(self) -> list[tuple[Setting, Setting]]:
        """Pairs of settings with the same calls, the latter with one unit more."""
        return [
            (one, other)
            for one, other in product(self.settings, repeat=2)
            if (other.city, other.units, other.entitled) == (one.city, one.units + 1, one.entitled)
            and abs(other.never.calls_a_year / one.never.calls_a_year - 1.0) < _SAME_CALLS
        ]

    def _alike(self, key: Any, order: Any) -> list[list[Setting]]:
        found: dict[Any, list[Setting]] = {}
        for one in self.settings:
            found.setdefault(key(one), []).append(one)
        cities = list(dict.fromkeys(one.city for one in self.settings))
        groups = [sorted(group, key=order) for group in found.values()]
        return sorted(groups, key=lambda group: (cities.index(group[0].city), group[0].entitled))


def more(value: float | None, than: float | None) -> float | None:
    """A difference, None where one of both is not known."""
    return None if value is None or than is None else value - than


def crossing(x: Sequence[float], y: Sequence[float], limit: float = 0.0) -> float | None:
    """Where ``y`` first rises above ``limit``, between points by a straight line; None: nowhere."""
    if y[0] > limit:
        return x[0]
    for (left, low), (right, high) in pairwise(zip(x, y, strict=True)):
        if high > limit:
            return left + (right - left) * (limit - low) / (high - low)
    return None

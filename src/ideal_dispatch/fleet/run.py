"""Experiments of a fleet on the engine: a cell is one year of one scenario under all policies.

So every table that exists has the same years for all of them.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ideal_dispatch.archive import FileKind
from ideal_dispatch.cluster import spread
from ideal_dispatch.dispatch.price import UNCALIBRATED
from ideal_dispatch.dispatch.recall import Recall
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.experiment.engine import (
    Files,
    Run,
    Watch,
    described,
    digest,
    read_manifest,
    unwatched,
)
from ideal_dispatch.files import write_file
from ideal_dispatch.fleet.calls import DAY_S, WARM_UP_DAYS, Calls, draw_calls
from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.experiment import FleetExperiment, FleetScenario, plain
from ideal_dispatch.fleet.log import CALLS, calls_file, log_file
from ideal_dispatch.fleet.policies import PolicyRule, PolicyTable, Rule
from ideal_dispatch.fleet.results import NEVER, RunSummary, summary, year_totals
from ideal_dispatch.fleet.simulation import SecondRule, Simulator
from ideal_dispatch.fleet.units import Log, State
from ideal_dispatch.frames import DataFrame, frame

KIND = FileKind("ideal-dispatch fleet 2", 1, "fleet simulation", "simulate the fleet again")
RUNS, SUMMARIES, LOGS, YEARS = "runs.json", "summary.json", "log", "years"

_WRITTEN_EVERY_S = 60.0  # tables of the years done so far, should the run be interrupted


class FleetYear(NamedTuple):
    """A year of a scenario; its log goes to the folder ``logs``, and nowhere without."""

    scenario: FleetScenario
    seed: int
    year: int
    logs: str = ""

    @property
    def file(self) -> str:
        """Its name in the run's folder."""
        name = f"{self.scenario.name}_seed_{self.seed}_year_{self.year:04d}.json".lstrip("_")
        return f"{YEARS}/{name}"


@dataclass(frozen=True, eq=False)
class Fleets:
    """Every scenario made ready, and the rules that are tried on it: what workers share."""

    cities: Mapping[FleetScenario, FleetCity]
    rules: Mapping[str, Rule]
    runs: Sequence[tuple[str, Recall]]
    days: int
    factors: tuple[float, ...] = UNCALIBRATED

    @cached_property
    def simulators(self) -> dict[FleetScenario, Simulator]:
        """A simulator for each scenario."""
        return {one: Simulator(city, self.factors) for one, city in self.cities.items()}

    @cached_property
    def made(self) -> dict[tuple[FleetScenario, str, Recall], PolicyRule]:
        """Dispatch policies made for a scenario: they keep the paths that they asked for."""
        return {}

    def run(
        self, scenario: FleetScenario, calls: Calls, policy: str, recall: Recall
    ) -> tuple[State, Log]:
        """Calls under one policy."""
        rule, simulator = self.rules[policy], self.simulators[scenario]
        if isinstance(rule, SecondRule):
            return simulator.run(calls, rule.compiled(recall))
        key = scenario, policy, recall
        if key not in self.made:
            if isinstance(rule, PolicyTable):
                self.made[key] = rule.of(simulator, recall)
            else:
                self.made[key] = PolicyRule(simulator.city, rule)
        return simulator.run(calls, self.made[key], recall)

    def year(self, one: FleetYear) -> Files:
        """The totals of one year under every policy, and its logs."""
        simulator = self.simulators[one.scenario]
        city = simulator.city
        days = self.days + WARM_UP_DAYS
        if city.listed is not None:
            days = int(city.listed.at_s[-1] // DAY_S) + 1
        calls = draw_calls(city, one.seed, one.year, days=days)
        runs, files, never = [], {}, None
        for policy, recall in self.runs:
            state, log = self.run(one.scenario, calls, policy, recall)
            totals, deaths = year_totals(simulator, calls, state, log, days, never)
            never = deaths if never is None else never
            runs.append({"policy": policy, "recall": recall, **totals})
            if one.logs:
                name = f"{one.logs}/{plain(policy)}_{plain(recall)}.csv.gz"
                files[name] = log_file(city, calls, log)
        if one.logs:
            files[f"{one.logs}/{CALLS}"] = calls_file(city, calls)
        return {**files, one.file: (json.dumps(runs) + "\n").encode()}


class FleetTables:
    """The tables of the years that are done so far."""

    def __init__(self, fleets: Fleets) -> None:
        self.fleets = fleets
        self.summaries = {
            (scenario, *run): RunSummary() for scenario in fleets.cities for run in fleets.runs
        }

    def add(self, one: FleetYear, content: bytes) -> None:
        """Count a year by the content of its file."""
        for totals in json.loads(content):
            key = one.scenario, totals["policy"], totals["recall"]
            self.summaries[key].add(one.seed, one.year, totals)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each policy of each scenario, over its years and seeds."""
        rows = []
        for (scenario, policy, recall), done in self.summaries.items():
            if done.years:
                city = self.fleets.cities[scenario]
                about = {"city": city.name, "units": city.num_units, "load": scenario.load,
                         "entitled": city.entitled, "policy": policy, "recall": recall}  # fmt: skip
                never = next(key for key in self.summaries if key[:2] == (scenario, NEVER))
                rows.append({**about, **done.row(self.summaries[never])})
        return rows

    def write(self, place: Path) -> None:
        """Write them as they are now."""
        rows = self.rows()
        for name, table in ((RUNS, rows), (SUMMARIES, summary(rows))):
            write_file(place / name, json.dumps(table, ensure_ascii=False, indent=1) + "\n")


def run_fleet(
    experiment: FleetExperiment,
    folder: str | os.PathLike[str],
    *,
    workers: int | None = 1,
    cluster: str | None = None,
    watch: Watch = unwatched,
) -> Path:
    """Simulate an experiment into ``folder``, and return it.

    The same call continues an interrupted run, and the files are the same to the byte
    for any number of ``workers`` (None: one per core) and for a ``cluster``, the address of
    a dask scheduler. Tables of the years that are done are there from the first minute on.
    """
    watch("reading cities", 0.0)
    rules, found = experiment.rules, {name: experiment.city(name) for name in experiment.cities}
    factors = experiment.factors(found.values())
    settings: dict[str, Any] = {
        "experiment": experiment.tables,
        "cities": {
            name: {"name": city.name, "stations": len(city.stations), "units": city.num_units,
                   "hospitals": len(city.hospitals), "cells": len(city.cells),
                   "notes": list(city.notes), "settings": described(city)}
            for name, city in found.items()
        },
        "policies": {name: described(rule) for name, rule in rules.items()},
    }  # fmt: skip
    if experiment.price:
        settings["price"] = digest((experiment.folder / experiment.price).read_bytes())
    with Run.opened(folder, KIND, settings) as run:
        cities = experiment.ready(found, watch)
        run.note(calls_per_day={one.name: city.calls_per_day for one, city in cities.items()})
        fleets = Fleets(cities, rules, experiment.runs, experiment.days, factors)
        logs = {one: LOGS if len(cities) == 1 else f"{LOGS}/{one.name}" for one in cities}
        first = (experiment.seeds[0], 0) if experiment.log else None
        years = [
            FleetYear(one, seed, year, logs[one] if (seed, year) == first else "")
            for year in range(experiment.years) for seed in experiment.seeds for one in cities
        ]  # fmt: skip
        tables, tasks = FleetTables(fleets), {one.file: one for one in years}
        written = time.monotonic()
        cells = run.cells(Fleets.year, fleets, tasks, workers=workers, cluster=cluster)
        for done, name in enumerate(cells, 1):
            try:
                tables.add(tasks[name], (run.folder / name).read_bytes())
            except (ValueError, KeyError, TypeError):
                path = run.folder / name
                raise FileFormatError(f"{path}: damaged; remove it and run again") from None
            watch("simulating", done / len(years))
            if time.monotonic() > written + _WRITTEN_EVERY_S:
                tables.write(run.folder)
                written = time.monotonic()
        tables.write(run.folder)
    return Path(folder)


def read_runs(folder: str | os.PathLike[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of a run, and what was assumed of its cities."""
    manifest, path = read_manifest(folder, KIND), Path(folder) / RUNS
    if not path.exists():
        raise InputError(f"{folder}: {RUNS} is missing; no year is done yet")
    with KIND.complaints(path):
        rows: list[dict[str, Any]] = json.loads(path.read_bytes())
    notes = dict.fromkeys(note for city in manifest["cities"].values() for note in city["notes"])
    return rows, list(notes)


# --- from Python -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class FleetResult:
    """What a policy came to in a fleet, beside "never".

    ``rows`` are over all years, with the keys of ``runs.json``; ``years`` has a row for each
    year and policy.
    """

    rows: Sequence[Mapping[str, Any]]
    years: Sequence[Mapping[str, Any]]

    def to_frame(self) -> DataFrame:
        """The rows as a DataFrame, without the groups of calls."""
        return frame({name: [row[name] for row in self.rows] for name in self.rows[0]
                      if name != "groups"})  # fmt: skip


def simulate_fleet(
    city: FleetCity,
    policy: Rule | str = "survival",
    years: int = 20,
    seed: int = 0,
    recall: Recall = "first arrival",
    *,
    days: int = 365,
    workers: int | None = 1,
) -> FleetResult:
    """Years of a city's fleet under a policy, and the same years without second units.

    ``policy`` is "never", "always", "random" or "survival", a
    :class:`~ideal_dispatch.fleet.simulation.SecondRule` with its threshold, or an object with
    ``name`` and ``decide(situation, rng)`` as in a replay. ``recall`` is "none", "first arrival",
    "worth" or "live". Same seed, same years.
    """
    rule = SecondRule(policy) if isinstance(policy, str) else policy  # type: ignore[arg-type]
    experiment = FleetExperiment(years=years, days=days, seeds=(seed,), recall=(recall,))
    scenario = next(experiment.scenarios())
    runs: list[tuple[str, Recall]] = [(NEVER, "none")]
    runs += [(rule.name, recall)] if rule.name != NEVER else []
    rules: dict[str, Rule] = {NEVER: SecondRule("never"), rule.name: rule}
    fleets = Fleets({scenario: city}, rules, runs, days)
    tables, found = FleetTables(fleets), {}
    tasks = [FleetYear(scenario, seed, year) for year in range(years)]
    for files in spread(Fleets.year, fleets, tasks, workers=workers):
        for one in tasks:
            if one.file in files:
                alone = FleetTables(fleets)
                for counted in (tables, alone):
                    counted.add(one, files[one.file])
                found[one.year] = [{"year": one.year, **row} for row in alone.rows()]
    return FleetResult(tables.rows(), [row for year in sorted(found) for row in found[year]])

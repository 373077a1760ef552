"""Experiments of a fleet, in parallel, that go on where they were interrupted.

A piece of work is one year of one case under all policies: so every table that exists has
the same years for all of them. Workers return what a year came to and the caller's process
writes it, each year to a file of its own, which is either whole or not there.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ideal_dispatch.archive import FileKind
from ideal_dispatch.cluster import spread
from ideal_dispatch.dispatch.recall import Recall
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.files import write_file
from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.experiment import NEVER, Case, FleetExperiment, Rule, with_units
from ideal_dispatch.fleet.load import at_utilisation
from ideal_dispatch.fleet.log import CALLS, first_difference, log_file, read_calls
from ideal_dispatch.fleet.results import Tally, summary
from ideal_dispatch.fleet.simulation import SecondRule
from ideal_dispatch.fleet.years import Fleets, Piece, log_name
from ideal_dispatch.frames import DataFrame, frame
from ideal_dispatch.replay.run_folder import described, digest, locked, taken_up, versions

MANIFEST = "manifest.json"
KIND = FileKind("ideal-dispatch fleet 1", 1, "fleet's manifest", "name another folder")
RUNS = "runs.json"
LOGS, YEARS = "log", "years"

_WRITTEN_EVERY_S = 60.0  # tables of what is done so far, for who looks at them or interrupts

Watch = Callable[[str, float], None]
"""Told the step and the share of it that is done."""


def run_fleet(
    experiment: FleetExperiment,
    folder: str | os.PathLike[str],
    *,
    workers: int | None = 1,
    cluster: str | None = None,
    watch: Watch = lambda step, share: None,
) -> Path:
    """Simulate an experiment into ``folder``, and return it.

    The same call goes on with an interrupted one, and the files are the same to the byte
    for any number of ``workers`` (None: one per core) and for a ``cluster``, the address of
    a dask scheduler. Tables of the years that are done are there from the first minute on.
    """
    if workers is not None and workers < 1:
        raise InputError(f"workers {workers}: at least one is needed")
    place = Path(folder)
    with locked(place):
        fleets = _opened(place, experiment, watch)
        pieces = [
            Piece(case, seed, year, experiment.log and (seed, year) == (experiment.seeds[0], 0))
            for year in range(experiment.years) for seed in experiment.seeds
            for case in fleets.cities
        ]  # fmt: skip
        tables = Tables(fleets)
        missing = [piece for piece in pieces if not tables.taken(place / YEARS, piece)]
        done = len(pieces) - len(missing)
        written = time.monotonic()
        work = spread(Fleets.year, fleets, missing, workers=workers, cluster=cluster)
        with closing(work):  # type: ignore[type-var]
            for one in work:
                for name, content in one.logs.items():
                    write_file(_logs(place, experiment, one.piece.case) / name, content)
                write_file(place / YEARS / one.piece.file, json.dumps(one.runs) + "\n")
                tables.add(one.piece, one.runs)
                done += 1
                watch("simulating", done / len(pieces))
                if time.monotonic() > written + _WRITTEN_EVERY_S:
                    tables.write(place)
                    written = time.monotonic()
        tables.write(place)
    return place


class Tables:
    """The tables of the years that are done so far."""

    def __init__(self, fleets: Fleets) -> None:
        self.fleets = fleets
        self.tallies = {
            (case, *run): Tally() for case in fleets.cities for run in fleets.runs
        }  # fmt: skip

    def taken(self, folder: Path, piece: Piece) -> bool:
        """Take up a year that was done before; False where it was not."""
        path = folder / piece.file
        if not path.exists():
            return False
        try:
            self.add(piece, json.loads(path.read_bytes()))
        except (ValueError, KeyError, TypeError):
            raise FileFormatError(f"{path}: damaged; remove it, and it is made anew") from None
        return True

    def add(self, piece: Piece, runs: Sequence[Mapping[str, Any]]) -> None:
        """Count a year."""
        for one in runs:
            key = piece.case, one["policy"], one["recall"]
            self.tallies[key].add(piece.seed, piece.year, one)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each policy of each case, over its years and seeds."""
        rows = []
        for (case, policy, recall), tally in self.tallies.items():
            if tally.years:
                city = self.fleets.cities[case]
                about = {"city": city.name, "units": city.num_units, "load": case.load,
                         "entitled": city.entitled, "policy": policy, "recall": recall}  # fmt: skip
                never = next(key for key in self.tallies if key[:2] == (case, NEVER))
                rows.append({**about, **tally.row(self.tallies[never])})
        return rows

    def write(self, place: Path) -> None:
        """Write them as they are now."""
        rows = self.rows()
        for name, table in ((RUNS, rows), ("summary.json", summary(rows))):
            write_file(place / name, json.dumps(table, ensure_ascii=False, indent=1) + "\n")


def _logs(place: Path, experiment: FleetExperiment, case: Case) -> Path:
    """The folder of a case's logs; where there is only one case, that of all logs."""
    alone = len(list(experiment.cases())) == 1
    return place / LOGS if alone else place / LOGS / case.name


def _opened(place: Path, experiment: FleetExperiment, watch: Watch) -> Fleets:
    """Begin in an empty folder, or take up what is there; every case made ready."""
    rules = experiment.rules
    found = {}
    for k, name in enumerate(experiment.cities):
        watch("reading cities", k / len(experiment.cities))
        found[name] = experiment.city(name)
    watch("reading cities", 1.0)
    tables = experiment.tables
    files = {"beside": str(experiment.folder.resolve()), "cities": tables.pop("cities")}
    settings: dict[str, Any] = {
        "format": KIND.format,
        "experiment": tables,
        "cities": {name: _about(city) for name, city in found.items()},
        "policies": {name: described(rule) for name, rule in rules.items()},
        "versions": versions(),
    }
    factors, desks = experiment.factors(found.values()), experiment.desks
    if desks:
        settings["desks"] = {name: described(desk) for name, desk in desks.items()}
    if experiment.price:
        settings["price"] = digest((experiment.folder / experiment.price).read_bytes())
    settings = json.loads(json.dumps(settings))
    known = taken_up(place, MANIFEST, KIND, settings, "simulation")
    per_day = None if known is None else known["calls_per_day"]
    cities = ready(experiment, found, per_day, watch)
    if known is None:
        settings["files"] = files  # they may move: what they say of the cities is compared
        settings["calls_per_day"] = {case.name: city.calls_per_day for case, city in cities.items()}
        write_file(place / MANIFEST, json.dumps(settings, ensure_ascii=False, indent=1) + "\n")
    for folder in (place / YEARS, *(_logs(place, experiment, case) for case in cities)):
        if folder.name == YEARS or experiment.log:
            folder.mkdir(parents=True, exist_ok=True)
    return Fleets(cities, rules, experiment.runs, experiment.days, factors, desks)


def _about(city: FleetCity) -> dict[str, Any]:
    """A city in the manifest."""
    told = described(city)
    counted = {"stations": len(city.stations), "units": city.num_units,
               "hospitals": len(city.hospitals), "cells": len(city.cells)}  # fmt: skip
    return {"name": city.name, **counted, "notes": list(city.notes), "settings": told}


def ready(
    experiment: FleetExperiment,
    found: Mapping[str, FleetCity],
    per_day: Mapping[str, float] | None = None,
    watch: Watch = lambda step, share: None,
) -> dict[Case, FleetCity]:
    """The city of every case: its load first, then its fleet, then who is entitled.

    ``per_day`` are calls a day that were found before.
    """
    loaded: dict[tuple[str, float | None], FleetCity] = {
        (name, None): city for name, city in found.items()
    }
    cases = list(experiment.cases())
    cities = {}
    for k, case in enumerate(cases):
        watch("setting loads", k / len(cases))
        key = case.city, case.load
        if case.load is not None and key not in loaded:
            city = found[case.city]
            loaded[key] = (
                at_utilisation(city, case.load, seed=experiment.seeds[0]) if per_day is None
                else city.changed(calls_per_day=per_day[case.name])
            )  # fmt: skip
        city = loaded[key]
        if case.units is not None:
            city = with_units(city, case.units)
        cities[case] = city if case.entitled is None else city.changed(entitled=case.entitled)
    watch("setting loads", 1.0)
    return cities


def read_manifest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What the manifest of a run says."""
    path = Path(folder) / MANIFEST
    if not path.exists():
        raise InputError(f"{folder}: no simulation of a fleet there, {MANIFEST} is missing")
    with KIND.complaints(path):
        return KIND.checked(json.loads(path.read_bytes()))


def read_runs(folder: str | os.PathLike[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of a run, and what was assumed of its cities."""
    manifest, path = read_manifest(folder), Path(folder) / RUNS
    if not path.exists():
        raise InputError(f"{folder}: {RUNS} is missing; no year is done yet")
    with KIND.complaints(path):
        rows: list[dict[str, Any]] = json.loads(path.read_bytes())
    notes = dict.fromkeys(note for city in manifest["cities"].values() for note in city["notes"])
    return rows, list(notes)


def again(folder: str | os.PathLike[str], *, watch: Watch = lambda step, share: None) -> list[str]:
    """Simulate the calls of a run's logs again; what differs from the logs, a line each."""
    place, told = Path(folder), read_manifest(folder)
    with KIND.complaints(place / MANIFEST):
        files = told["files"]
        tables = told["experiment"] | {"cities": files["cities"]}
        experiment = FleetExperiment.of(tables, Path(files["beside"]))
    if not experiment.log:
        raise InputError(f"{place}: it was simulated with log = false; there is nothing to compare")
    found = {name: experiment.city(name) for name in experiment.cities}
    cities = ready(experiment, found, told["calls_per_day"])
    fleets = Fleets(
        cities, experiment.rules, experiment.runs, experiment.days,
        experiment.factors(found.values()), experiment.desks,
    )  # fmt: skip
    differ = []
    for k, (case, city) in enumerate(cities.items()):
        logs = _logs(place, experiment, case)
        calls = read_calls(logs / CALLS, city)
        for policy, recall in fleets.runs:
            path = logs / log_name(policy, recall)
            now = log_file(city, calls, fleets.run(case, calls, policy, recall)[1])
            if what := first_difference(path.read_bytes(), now):
                differ.append(f"{path.relative_to(place)}: {what}")
        watch("simulating again", (k + 1) / len(cities))
    return differ


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
        """The rows as a DataFrame; what is told of groups of calls is left out."""
        return frame({name: [row[name] for row in self.rows] for name in self.rows[0]
                      if name != "groups"})  # fmt: skip


def simulate_fleet(
    city: FleetCity,
    policy: Rule | str = "priced",
    years: int = 20,
    seed: int = 0,
    recall: Recall = "first arrival",
    *,
    days: int = 365,
    workers: int | None = 1,
) -> FleetResult:
    """Years of a city's fleet under a policy, and the same years without second units.

    ``policy`` is "never", "always", "random", "fixed" or "priced", a
    :class:`~ideal_dispatch.fleet.simulation.SecondRule` with its limit, or an object with
    ``name`` and ``choose(view)``. ``recall`` is "none", "first arrival", "worth" or
    "live". Same seed, same years.
    """
    rule = SecondRule(policy) if isinstance(policy, str) else policy  # type: ignore[arg-type]
    experiment = FleetExperiment(years=years, days=days, seeds=(seed,), recall=(recall,))
    case = next(experiment.cases())
    runs: list[tuple[str, Recall]] = [(NEVER, "none")]
    runs += [(rule.name, recall)] if rule.name != NEVER else []
    fleets = Fleets({case: city}, {NEVER: SecondRule("never"), rule.name: rule}, runs, days)
    tables, found = Tables(fleets), {}
    pieces = [Piece(case, seed, year, logged=False) for year in range(years)]
    for one in spread(Fleets.year, fleets, pieces, workers=workers):
        tables.add(one.piece, one.runs)
        alone = Tables(fleets)
        alone.add(one.piece, one.runs)
        found[one.piece.year] = [{"year": one.piece.year, **row} for row in alone.rows()]
    return FleetResult(tables.rows(), [row for year in sorted(found) for row in found[year]])

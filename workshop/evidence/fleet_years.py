"""The years of a folder of ``ideal fleet simulate``, counted anew with today's formulas."""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from ideal_dispatch.dispatch.recall import Recall
from ideal_dispatch.evaluation.fleet_runs import FleetRuns
from ideal_dispatch.experiment.engine import read_manifest
from ideal_dispatch.fleet.experiment import FleetExperiment
from ideal_dispatch.fleet.results import NEVER, RunSummary
from ideal_dispatch.fleet.run import KIND, FleetYear

Run = tuple[str, Recall]


def counted(folder: Path) -> FleetRuns:
    """The runs of all years that are done, whatever its ``runs.json`` says."""
    manifest = read_manifest(folder, KIND)
    notes = dict.fromkeys(note for city in manifest["cities"].values() for note in city["notes"])
    rows: list[dict[str, Any]] = []
    for about, tallies in tallied(folder):
        never = tallies[NEVER, "none"]
        rows += [
            {**about, "policy": policy, "recall": recall, **tally.row(never)}
            for (policy, recall), tally in tallies.items()
            if tally.years
        ]
    return FleetRuns.of(rows, list(notes), manifest["experiment"]["days"])


def tallied(folder: Path) -> Iterator[tuple[dict[str, Any], dict[Run, RunSummary]]]:
    """Case by case, what it is of, and the years of every rule that are done."""
    manifest = read_manifest(folder, KIND)
    names: dict[str, Any] = {name: {} for name in manifest["cities"]}  # no tables are needed
    experiment = FleetExperiment.of(manifest["experiment"] | {"cities": names})
    for case in experiment.scenarios():
        city = manifest["cities"][case.city]
        about = {
            "city": city["name"], "units": case.units or city["units"], "load": case.load,
            "entitled": case.entitled or city["settings"]["entitled"],
        }  # fmt: skip
        tallies = {run: RunSummary() for run in experiment.runs}
        for seed, year in product(experiment.seeds, range(experiment.years)):
            path = folder / FleetYear(case, seed, year).file
            if path.exists():
                for one in json.loads(path.read_bytes()):
                    tallies[one["policy"], one["recall"]].add(seed, year, one)
        yield about, tallies

"""How volatile an experiment's traffic is: its training days, under two simple rules alone.

``python -m workshop.evidence.regime EXPERIMENT.toml`` drives every call of the training days
from every depot and prints what the region rule and the router's first choice make of it,
beside what the paper met in Hong Kong. Simulated traffic is tuned by this table, before any
policy is looked at; test days are not touched.
"""

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.situation import Assignment
from ideal_dispatch.evaluation.table import Cell, Column, Table
from ideal_dispatch.replay.drive import DriveError, World, drive
from ideal_dispatch.replay.experiment import Experiment
from workshop.evidence.pages import markdown

TARGETS = {
    "region's depot best, %": (50.0, 60.0),
    "router's first choice best, %": (80.0, 88.0),
    "its mean regret, s": (4.0, 7.0),
    "its 99 % regret, s": (90.0, 150.0),
    "its mean drive, s": (500.0, 700.0),
}
"""From the paper: 49.7 % and 84.1 %, 5.2 s and 121 s, drives of 596 s."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("experiment", type=Path)
    Console(soft_wrap=True).print(
        markdown(measured(Experiment.load(parser.parse_args().experiment)))
    )


def measured(experiment: Experiment) -> Table:
    """A row for each figure: the target, and what it is in each world."""
    by_world = {world: figures(experiment, world) for world in experiment.worlds}
    rows: list[tuple[Cell, ...]] = [
        (name, f"{low:g} … {high:g}", *(found[name] for found in by_world.values()))
        for name, (low, high) in TARGETS.items()
    ]
    columns = (Column("figure"), Column("target"), *(Column(str(world), 1) for world in by_world))
    return Table("regime", f"{experiment.name}: traffic of its training days", columns, tuple(rows))


def figures(experiment: Experiment, world: World) -> dict[str, float]:
    """The figures of :data:`TARGETS` in one world."""
    ground = experiment.ground()
    traffic, region = ground.traffic(experiment), np.asarray(ground.region)
    quoted, driven, home = [], [], []
    for call in ground.calls(experiment, experiment.learning_days):
        quotes = [traffic.quote(depot.node, call.node, call.at) for depot in ground.depots]
        ways = [Assignment(number, quote.path) for number, quote in enumerate(quotes)]
        try:
            drives = [drive(traffic, ground.network, w, call.node, call.at, world) for w in ways]
        except DriveError:  # it would end after the recorded time
            continue
        quoted.append([quote.duration_s for quote in quotes])
        driven.append([one.total_s for one in drives])
        home.append(region[call.node])
    took_s, every = np.array(driven), np.arange(len(driven))
    late_s = took_s - took_s.min(axis=1, keepdims=True)
    first = np.argmin(quoted, axis=1)
    regret_s: FloatArray = late_s[every, first]
    values = (
        100 * np.mean(late_s[every, home] <= 0.0), 100 * np.mean(regret_s <= 0.0), regret_s.mean(),
        np.quantile(regret_s, 0.99), took_s[every, first].mean(),
    )  # fmt: skip
    return dict(zip(TARGETS, map(float, values), strict=True))


if __name__ == "__main__":
    main()

"""How much results hang on what was fixed: windows, demand, prefix, dimension, radius and gap.

``python -m workshop.evidence.sensitivity experiments/port_almery.toml -o out/sensitivity``, with
``--demand 0.8=FILE`` for each recording of the city's evenings at another demand.

Training days alone, cross-fitted, with fewer calls than the experiment. Every variant is
compared with interval-selective in the same world at exactly the same volume, so that a
harder or an easier world shows in the router's mean and not in the difference.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from ideal_dispatch import __version__
from ideal_dispatch.evaluation.metrics import Interval, day_t_interval
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.strategies import matched_arrival_s
from ideal_dispatch.evaluation.table import Column, Table
from ideal_dispatch.files import write_file
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.experiment import Experiment
from ideal_dispatch.replay.study import TRAINING, run_experiment
from workshop.evidence.pages import FOLDER, csv_rows, markdown, write_csv

SHARES = (0.25, 0.5)
WHOLE = 10_000  # segments: all of any path
LEAD_S = 600.0
QUANTILE = {"trained": "practical", "radius": "calibrated"}

BASE: dict[str, dict[str, Any]] = {
    "router": {"kind": "router"},
    "interval": {"kind": "interval"},
    "paper": {"kind": "paper-ideal"},
    "ideal": {"kind": "ideal", "method": "multistart"},
}
OF_POLICIES: dict[str, dict[str, dict[str, Any]]] = {
    "prefix q (5)": {
        name: {"kind": "paper-ideal", "prefix": q}
        for name, q in (("q = 0", 0), ("q = 1", 1), ("q = 3", 3), ("q = 10", 10),
                        ("whole path", WHOLE))
    },
    "radius of the printed form (Algorithm 1, mean absolute)": {
        "Algorithm 1, quantile": {"kind": "paper-ideal", "radius": "calibrated"},
        "practical, mean absolute": {"kind": "paper-ideal", "trained": "practical"},
        "practical, quantile": {"kind": "paper-ideal", **QUANTILE},
    },
    "gap of the printed form (Algorithm 2)": {
        "many starts": {"kind": "paper-ideal", "method": "multistart"},
        "certified": {"kind": "paper-ideal", "method": "certified", "time_limit_s": 5.0},
        "certified; practical, quantile": {
            "kind": "paper-ideal", "method": "certified", "time_limit_s": 5.0, **QUANTILE
        },
    },
    "trigger of ours (expected gain)": {
        "gap by Algorithm 2": {"kind": "ideal", "decide_by": "gap", "method": "dca"},
        "gap by many starts": {"kind": "ideal", "decide_by": "gap", "method": "multistart"},
        "both": {"kind": "ideal", "decide_by": "both", "method": "multistart"},
    },
}  # fmt: skip
"""Variants of policies in one and the same world: what is varied (and its usual value)."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much smaller than the experiment a run is."""

    per_day: int = 40
    days: int = 4
    trips_per_day: int = 200
    paper_epochs: int = 24


def small(experiment: Experiment, size: Size, world: str) -> Experiment:
    """The experiment with fewer days, calls and trips, in one world, under the base policies."""
    days = min(experiment.training_days, experiment.warm_up_days + size.days)
    return replace(
        experiment,
        training_days=days,
        folds=2,
        worlds=(World(world),),
        calls=replace(experiment.calls, per_day=size.per_day),
        past=replace(experiment.past, trips_per_day=size.trips_per_day, places=10, every_s=900.0),
        paper_training={
            **experiment.paper_training,
            "epochs": size.paper_epochs,
            "patience": size.paper_epochs,
        },
        policies=BASE,
    )


def worlds_of(
    base: Experiment, demands: Mapping[str, Path]
) -> Iterator[tuple[str, str, Experiment]]:
    """Variants that change the world or what is learned: a run each."""
    for scale, recording in demands.items():
        calls = replace(base.calls, lead_s=LEAD_S)  # an evening begins without a past
        traffic = str(recording.resolve())
        made = replace(
            base, calls=calls, city=replace(base.city, traffic=traffic),
            training_days=base.training_days - 1, folds=3,  # the last of five evenings is nobody's
        )  # fmt: skip
        yield "demand of other evenings (1)", scale, made
    router = base.router
    for window_s in (120.0, 600.0):
        made = replace(base, router=replace(router, window_s=window_s))
        yield f"router's window ({router.window_s:g} s)", f"{window_s:g} s", made
    for forward_s in (60.0, 300.0):
        made = replace(base, router=replace(router, forward_s=forward_s))
        yield f"world's forward pooling ({router.forward_s:g} s)", f"{forward_s:g} s", made
    for memory_s in (1800.0, 7200.0):
        made = replace(base, router=replace(router, memory_s=memory_s))
        yield f"memory of the router's ranges ({router.memory_s:g} s)", f"{memory_s:g} s", made
    for size in (8, 32):
        made = replace(base, training=_sized(base.training, size),
                       paper_training=_sized(base.paper_training, size))  # fmt: skip
        yield "dimension d (16)", f"{size}", made


def _sized(training: Mapping[str, Any], dimension: int) -> dict[str, Any]:
    shape = {**training.get("architecture", {}), "dimension": dimension}
    return {**training, "architecture": shape}


def measure(
    experiment: Experiment,
    folder: Path,
    world: str,
    console: Console,
    workers: int | None = None,
    demands: Mapping[str, Path] = {},
) -> Table:
    """Run all variants, or read those that are there, and tabulate them."""
    usual = experiment.policies
    every = dict(usual) | {n: t for group in OF_POLICIES.values() for n, t in group.items()}
    rows = []

    def run(name: str, what: Experiment) -> Outcomes:
        console.print(f"running {name}")
        run_experiment(what, folder / name, test=False, workers=workers)
        return Outcomes.load(folder / name / world / TRAINING)

    base = run("base", replace(experiment, policies=every))
    rows += [("as fixed", "", name, *_compared(base, name, world)) for name in ("paper", "ideal")]
    for what, group in OF_POLICIES.items():
        of = "ideal" if what.startswith("trigger") else "paper"
        rows += [(what, name, of, *_compared(base, name, world)) for name in group]
    for what, value, other in worlds_of(experiment, demands):
        found = run(f"{what.partition(' (')[0]} {value}".replace(" ", "-"), other)
        rows += [(what, value, name, *_compared(found, name, world)) for name in ("paper", "ideal")]
    return Table(
        "sensitivity",
        f"Sensitivity of {experiment.name} in {world} traffic, training days: {len(base):,} "
        f"calls on {len(base.days)} days",
        (Column("varied (usual)"), Column("to"), Column("policy"), Column("router mean s", 2),
         *(Column(f"s against interval, +{100 * share:.0f} %", 2, signed=True)
           for share in SHARES)),
        tuple(rows),
        note="Seconds saved against interval-selective at exactly the same volume, with Student's "
        "95 % interval of the days' means; few days and calls, so only large moves mean "
        "something.",
    )  # fmt: skip


def _compared(outcomes: Outcomes, name: str, world: str) -> tuple[float, Interval, Interval]:
    alone = float(outcomes.policy("router").drives[world].primary_s.mean())
    policy, rival = outcomes.policy(name), outcomes.policy("interval")
    first, second = (
        day_t_interval(
            matched_arrival_s(rival, share, world) - matched_arrival_s(policy, share, world),
            outcomes.day,
        )
        for share in SHARES
    )
    return alone, first, second


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("experiment", type=Path, help="a file of `ideal replay`")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--world", type=World, default=World.EXPERIENCED)
    parser.add_argument("--per-day", type=int, default=Size().per_day)
    parser.add_argument("--days", type=int, default=Size().days)
    parser.add_argument("--workers", type=int)
    parser.add_argument(
        "--demand",
        action="append",
        default=[],
        metavar="SCALE=FILE",
        help="evenings of the same city with so many times the traffic",
    )
    parser.add_argument("--docs", type=Path, default=FOLDER, help="folder of the pages")
    given = parser.parse_args()
    size = Size(given.per_day, given.days)
    experiment = small(Experiment.load(given.experiment), size, given.world)
    demands = {scale: Path(file) for scale, _, file in (one.partition("=") for one in given.demand)}
    table = measure(
        experiment, given.output, given.world, Console(stderr=True), given.workers, demands
    )
    write_page(table, given.docs, f"ideal-dispatch {__version__}")


def write_page(table: Table, folder: Path, version: str) -> None:
    """The page of the sensitivity, and its table as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "sensitivity.csv", *csv_rows((), table))
    blocks = [
        "# Sensitivity",
        f"*Made by `make sensitivity`, {version}.*",
        "How much do results hang on what was fixed beforehand? Training days alone, "
        "cross-fitted, with fewer calls than the experiment.",
        markdown(table),
        table.note,
        "The table as CSV: [sensitivity.csv](sensitivity.csv).",
    ]
    write_file(folder / "sensitivity.md", "\n\n".join(blocks) + "\n")


if __name__ == "__main__":
    main()

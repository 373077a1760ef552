"""What is learned from real trips: docs/evidence/travel_times.md.

The protocol was fixed before the test trips were scored. `make evidence` trains,
scores and writes it all again.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.city_trips import PAPER_TRIPS
from benchmarks.manhattan_trips import manhattan
from ideal_dispatch import __version__
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.evaluation.table import Column, Table
from ideal_dispatch.files import write_file
from ideal_dispatch.learning import Split, TrainingRun, TrainingSettings, TrainParams, split, train
from ideal_dispatch.learning.assessment import local_scale
from ideal_dispatch.learning.baselines import fit_baselines
from ideal_dispatch.learning.scores import paired_interval, scores
from ideal_dispatch.learning.trip_table import TripTable
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records import Trips
from workshop.evidence.pages import FOLDER, csv_rows, markdown, write_csv

SEEDS = (0, 1, 2)
LOCAL_TRIPS = 200
DIVIDE_LAT = 40.7644  # Columbus Circle, 59th Street: south of it is trained on, north is scored
COLUMNS = (
    Column("prediction"), Column("validation MAE s"), Column("test MAE s"), Column("MAPE %"),
    Column("median s", 0), Column("P90 s", 0),
)  # fmt: skip
PROTOCOL = (
    "**Question.** Does learning through shortest paths, from trips whose routes were never seen, "
    "predict new trips better than what an analyst would try first?",
    "**Data.** Taxi trips in Manhattan (NYC TLC open data) on the OpenStreetMap network of the "
    "island: end points, hour, weekday and duration; no route, no odometer, no weather, no date. "
    "Cleaning, in this order: a duration is given; both ends are within 150 m of a node; 60 to "
    "3,600 s; different nodes; straight-line speed between 1 and 100 km/h.",
    "**Protocol.** Trips are split 70/10/20 at random with seed 0 (their dates are unknown, so "
    "they cannot be split by day). Everything is fitted on the first part. Settings of ours and "
    "of the baselines were chosen on the second. The third is scored once for each table. "
    "Gradient boosting sees the free-flow time, the length, number and classes of the roads of "
    "the free-flow path, hour and weekday, and, with location, the coordinates of both ends. Our "
    "models have the defaults of `ideal train`, seed 0; two further seeds show the scatter. "
    "Differences in MAE of up to about 5 s are within the chance of which trips were tested.",
)

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Row:
    """One line of a table: a prediction of the test trips."""

    name: str
    predicted_s: FloatArray
    validation_mae_s: float


@dataclass(frozen=True)
class TravelTimes:
    """What the page says: a sentence on the trips, a table for each question, and two findings.

    ``tables`` are by name: all trips, as few as the paper has, carried to another
    place. ``carried`` says how the last one was made.
    """

    trips: str
    tables: Mapping[str, Table]
    seeds: Sequence[str]
    against: Sequence[str]
    radius: str
    carried: str

    def write(self, folder: Path, version: str) -> None:
        """Write the page and its tables as one CSV file."""
        every, few, carried = self.tables.values()
        blocks = [
            "# Travel times learned from real trips",
            f"*Made by `make evidence`, {version}.*",
            *PROTOCOL,
            "## All trips",
            self.trips,
            markdown(every),
            "\n".join(self.seeds),
            "Difference in test MAE, 95 % paired bootstrap interval (below zero: IDEAL is better):",
            "\n".join(self.against),
            "## The radius",
            self.radius,
            f"## At the paper's size, {PAPER_TRIPS:,} trips",
            markdown(few),
            "## Carried to another place",
            self.carried,
            markdown(carried),
            "The tables as CSV: [travel_times.csv](travel_times.csv).",
        ]
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / "travel_times.md", "\n\n".join(blocks) + "\n")
        header: list[str] = []
        rows: list[list[str]] = []
        for name, table in self.tables.items():
            header, more = csv_rows([name], table)
            rows += more
        write_csv(folder / "travel_times.csv", ["trips", *header], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path, help="the folder with the Manhattan files")
    parser.add_argument("--docs", type=Path, default=FOLDER, help="folder of the pages")
    given = parser.parse_args()
    measure(*manhattan(given.data)).write(given.docs, f"ideal-dispatch {__version__}")


def measure(network: RoadNetwork, trips: Trips) -> TravelTimes:
    """Train, score and compare."""
    parts = split(trips, seed=0)
    rows = _baselines(network, trips, parts)
    runs: dict[str, list[TrainingRun]] = {}
    for features in ("attributes", "location"):
        runs[features] = [_run(network, trips, parts, features, seed) for seed in SEEDS]
        rows += [_row(f"IDEAL, {features}", runs[features][0], parts)]
    seeds = []
    for features, found in runs.items():
        maes = [scores(trips.observed_s[parts.test], run.predicted_s[parts.test]).mae_s
                for run in found]  # fmt: skip
        seeds.append(
            f"Other seeds of IDEAL, {features}: {', '.join(f'{mae:.1f}' for mae in maes[1:])} s."
        )
    few = _fewer(parts)
    small = _baselines(network, trips, few)
    for features in ("attributes", "location"):
        small.append(_row(f"IDEAL, {features}", _run(network, trips, few, features, 0), few))
    carried, there = _transfer(network, trips)
    return TravelTimes(
        f"{len(trips):,} trips after cleaning: {parts.train.size:,} to learn from, "
        f"{parts.validation.size:,} to stop and calibrate, {parts.test.size:,} to test "
        f"(mean {trips.observed_s[parts.test].mean():.0f} s).",
        {
            "all": _table(trips, parts, rows, "Error on test trips"),
            "as many as the paper has": _table(trips, few, small, "Error on test trips, few trips"),
            "carried north": there,
        },
        seeds,
        _against(trips, parts, rows),
        _radius(runs["location"][0]),
        carried,
    )


def _run(network: RoadNetwork, trips: Trips, parts: Split, features: str, seed: int) -> TrainingRun:
    params = replace(TrainParams(), seed=seed).with_architecture(features=features)
    return train(network, trips, TrainingSettings(params), parts=parts)


def _row(name: str, run: TrainingRun, parts: Split) -> Row:
    held_out = scores(run.data.trips.observed_s[parts.validation],
                      run.predicted_s[parts.validation])  # fmt: skip
    return Row(name, run.predicted_s[parts.test], held_out.mae_s)


def _baselines(network: RoadNetwork, trips: Trips, parts: Split) -> list[Row]:
    validation = trips.select(parts.validation)
    held_out = TripTable.of(network, validation)
    test = TripTable.of(network, trips.select(parts.test))
    return [
        Row(
            fitted.name,
            fitted.predict(test),
            scores(held_out.observed_s, fitted.predict(held_out)).mae_s,
        )
        for fitted in fit_baselines(network, trips.select(parts.train), validation)
    ]


def _table(trips: Trips, parts: Split, rows: Sequence[Row], title: str) -> Table:
    cells = []
    for row in rows:
        found = scores(trips.observed_s[parts.test], row.predicted_s)
        cells.append((row.name, row.validation_mae_s, found.mae_s, found.mape_percent,
                      found.median_s, found.p90_s))  # fmt: skip
    return Table("travel_times", title, COLUMNS, tuple(cells))


def _against(trips: Trips, parts: Split, rows: Sequence[Row]) -> list[str]:
    """Paired intervals of each model against the boosting that knows as much."""
    named = {row.name: row.predicted_s for row in rows}
    observed = trips.observed_s[parts.test]
    lines = []
    for model, other in (
        ("IDEAL, attributes", "gradient boosting without location"),
        ("IDEAL, location", "gradient boosting with location"),
        ("IDEAL, attributes", "free flow × hour of week"),
        ("IDEAL, location", "free flow × hour of week"),
    ):
        low, high = paired_interval(observed, named[model], named[other])
        lines.append(f"- {model} − {other}: {low:+.1f} … {high:+.1f} s")
    return lines


def _radius(run: TrainingRun) -> str:
    rule, parts = run.model.radius_rule, run.split
    zero = (run.radii.upper[parts.train] == 0).mean()
    return (
        f"Location model, seed 0: {rule.loss} loss, conformal scaling to {rule.level:.0%}. Covered "
        f"on {parts.test.size:,} test trips: {run.coverage(parts.test):.1%}. Target radii are zero "
        f"for {zero:.0%} of the training trips. Effective rank of the set "
        f"{run.shape.effective_rank:.1f} of {run.shape.dimension}."
    )


def _fewer(parts: Split) -> Split:
    rng = np.random.default_rng(0)
    train_rows = np.sort(rng.permutation(parts.train)[: int(PAPER_TRIPS * 7 / 8)])
    held_out = np.sort(rng.permutation(parts.validation)[: PAPER_TRIPS - train_rows.size])
    return Split(train_rows, held_out, parts.test)


def _transfer(network: RoadNetwork, trips: Trips) -> tuple[str, Table]:
    """Attributes alone, learned south of 59th Street and scored north of it."""
    lat = np.array([network.lat[trips.origin], network.lat[trips.destination]])
    south, north = (np.flatnonzero((side).all(axis=0)) for side in (lat < DIVIDE_LAT,
                                                                    lat >= DIVIDE_LAT))  # fmt: skip
    rng = np.random.default_rng(0)
    order, there = rng.permutation(south), rng.permutation(north)
    local, test = np.sort(there[:LOCAL_TRIPS]), np.sort(there[LOCAL_TRIPS:])
    cut = int(0.875 * order.size)
    parts = Split(np.sort(order[:cut]), np.sort(order[cut:]), test)
    run = _run(network, trips, parts, "attributes", 0)
    observed, predicted = trips.observed_s, run.predicted_s
    scale = local_scale(observed[local], predicted[local])
    rows = [Row("IDEAL, attributes, as trained", predicted[test], _mae(run, parts))]
    rows.append(Row("IDEAL, attributes, rescaled", scale * predicted[test], _mae(run, parts)))
    rows += _baselines(network, trips, parts)
    constant = next(row for row in rows if row.name == "free flow × constant")
    free_flow = run.data.free_flow_s
    own = local_scale(observed[local], free_flow[local])
    rows.append(replace(constant, name="free flow × constant, of local trips",
                        predicted_s=own * free_flow[test]))  # fmt: skip
    said = (
        f"Learned from {parts.train.size:,} trips within the part south of 59th Street, scored on "
        f"{test.size:,} trips within the part north of it; {local.size} other trips from there "
        f"give the local scale ({scale:.2f}). The validation column is of southern trips."
    )
    return said, _table(trips, parts, rows, "Error on trips north of 59th Street")


def _mae(run: TrainingRun, parts: Split) -> float:
    rows = parts.validation
    return scores(run.data.trips.observed_s[rows], run.predicted_s[rows]).mae_s


if __name__ == "__main__":
    main()

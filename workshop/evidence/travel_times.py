"""What is learned from real trips: docs/evidence/travel_times.md.

The protocol was fixed before the test trips were scored. `make evidence` trains,
scores and writes it all again.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from benchmarks.city_trips import PAPER_TRIPS
from benchmarks.manhattan_trips import manhattan
from ideal_dispatch import __version__
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.files import write_file
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.model_directory import MANIFEST
from ideal_dispatch.learning import Split, TrainedModel, TrainParams, fit, split
from ideal_dispatch.learning.assessment import local_scale
from ideal_dispatch.learning.baselines import fit_baselines
from ideal_dispatch.learning.encoders import export
from ideal_dispatch.learning.scores import paired_interval, scores
from ideal_dispatch.learning.training import learn, one_thread
from ideal_dispatch.learning.training_data import TrainingData
from ideal_dispatch.learning.trip_table import TripTable
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records import Trips
from ideal_dispatch.report import Column, Table
from workshop.evidence.pages import FOLDER, csv_rows, markdown, write_csv

SEEDS = (0, 1, 2)
AIM_PERCENT = 5.0
LOCAL_TRIPS = 200
DIVIDE_LAT = 40.7644  # Columbus Circle, 59th Street: south of it is trained on, north is scored
COLUMNS = (
    Column("prediction"), Column("validation MAE s"), Column("test MAE s"), Column("MAPE %"),
    Column("median s", 0), Column("P90 s", 0),
)  # fmt: skip
AGAINST = (
    Column("model"), Column("seed"), Column("test MAE s"), Column("difference s", signed=True),
    Column("95 % interval"), Column("%", signed=True),
)  # fmt: skip
Combine = Literal["none", "average", "distil"]
COMBINED: tuple[Combine, ...] = ("none", "distil")
FORMS = tuple(
    (features, combine) for features in ("attributes", "location") for combine in COMBINED
)
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
    "the free-flow path, hour and weekday, and, with location, the coordinates of both ends. "
    "Attributes have the paper's 20 columns and the junctions at both ends of a road, location has "
    "the place and heading of a road as well. Models are those of `ideal train`, as they are by "
    "default and with `--combine distil`, each with three seeds; tables have the means over the "
    "seeds.",
    "Prototypes of this recipe had seen the errors of three candidates on these test trips. Since "
    "then, seven variants were compared on trips held out from the others, and none on the test "
    "trips.",
    "**Aim**, set beforehand: at least 5 % below gradient boosting that knows as much, by every "
    "seed, with all trips and with as few as the paper has.",
)

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Row:
    """One line of a table: predictions of the test trips, one for each seed."""

    name: str
    predicted_s: Sequence[FloatArray]
    validation_mae_s: float


@dataclass(frozen=True)
class Comparison:
    """One size of training: the errors, and how far ours are from boosting that knows as much."""

    table: Table
    against: Table

    @property
    def verdict(self) -> str:
        """Which models meet the aim by every seed, and which do not."""
        found: dict[str, list[float]] = {}
        for row in self.against.rows:
            found.setdefault(str(row[0]), []).append(float(str(row[-1])))
        met = [name for name, percent in found.items() if max(percent) <= -AIM_PERCENT]
        missed = [name for name in found if name not in met]
        return f"Aim met by: {'; '.join(met) or 'none'}. Missed by: {'; '.join(missed) or 'none'}."


@dataclass(frozen=True)
class TravelTimes:
    """What the page says: a sentence on the trips, the tables, and two findings.

    ``few`` is at as few trips as the paper has; ``carried`` says how the table
    ``there`` of another place was made.
    """

    trips: str
    every: Comparison
    few: Comparison
    there: Table
    radius: str
    carried: str

    def write(self, folder: Path, version: str) -> None:
        """Write the page and its tables as one CSV file."""
        blocks = [
            "# Travel times learned from real trips",
            f"*Made by `make evidence`, {version}.*",
            *PROTOCOL,
            "## All trips",
            self.trips,
            markdown(self.every.table),
            markdown(self.every.against),
            self.every.verdict,
            f"## At the paper's size, {PAPER_TRIPS:,} trips",
            markdown(self.few.table),
            markdown(self.few.against),
            self.few.verdict,
            "## The radius",
            self.radius,
            "## Carried to another place",
            self.carried,
            markdown(self.there),
            "The tables as CSV: [travel_times.csv](travel_times.csv).",
        ]
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / "travel_times.md", "\n\n".join(blocks) + "\n")
        header: list[str] = []
        rows: list[list[str]] = []
        for name, table in (
            ("all", self.every.table),
            ("as many as the paper has", self.few.table),
            ("carried north", self.there),
        ):
            header, more = csv_rows([name], table)
            rows += more
        write_csv(folder / "travel_times.csv", ["trips", *header], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path, help="the folder with the Manhattan files")
    parser.add_argument("--docs", type=Path, default=FOLDER, help="folder of the pages")
    parser.add_argument("--keep", type=Path, help="folder of finished models, to go on from")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        kept = given.keep or Path(temporary)
        found = measure(*manhattan(given.data), kept)
    found.write(given.docs, f"ideal-dispatch {__version__}")


def measure(network: RoadNetwork, trips: Trips, kept: Path) -> TravelTimes:
    """Train, score and compare; finished models are in ``kept`` and not trained again."""
    parts = split(trips, seed=0)
    few = _fewer(parts)
    every = _compared(network, trips, parts, kept / "all", "Error on test trips")
    at_paper = _compared(network, trips, few, kept / "few", "Error on test trips, few trips")
    carried, there = _transfer(network, trips, kept / "carried")
    return TravelTimes(
        f"{len(trips):,} trips after cleaning: {parts.train.size:,} to learn from, "
        f"{parts.validation.size:,} to choose and calibrate, {parts.test.size:,} to test "
        f"(mean {trips.observed_s[parts.test].mean():.0f} s).",
        every, at_paper, there, _radius(fit(network, trips, parts=parts)), carried,
    )  # fmt: skip


def _compared(
    network: RoadNetwork, trips: Trips, parts: Split, kept: Path, title: str
) -> Comparison:
    rows = _baselines(network, trips, parts)
    for features, combine in FORMS:
        models = [_model(network, trips, parts, features, combine, s, kept) for s in SEEDS]
        held_out, test = ([_predicted_s(model, network, trips.select(rows)) for model in models]
                          for rows in (parts.validation, parts.test))  # fmt: skip
        observed_s = trips.observed_s[parts.validation]
        error_s = np.mean([scores(observed_s, one).mae_s for one in held_out])
        rows.append(Row(_name(features, combine), test, float(error_s)))
    return Comparison(_table(trips, parts, rows, title), _against(trips, parts, rows))


def _name(features: str, combine: str) -> str:
    return f"IDEAL, {features}{', distilled' if combine == 'distil' else ''}"


def _model(
    network: RoadNetwork, trips: Trips, parts: Split, features: str, combine: Combine, seed: int,
    kept: Path,
) -> Model:  # fmt: skip
    """A model of travel times, without a radius."""
    folder = kept / f"{features}-{combine}-{seed}"
    if not (folder / MANIFEST).exists():
        params = TrainParams(seed=seed, combine=combine).with_architecture(features=features)
        with one_thread():
            data = TrainingData.prepare(network, trips, parts, params)
            export(learn(data, params).network, data).save(folder)
    return Model.load(folder)


def _predicted_s(model: Model, network: RoadNetwork, trips: Trips) -> FloatArray:
    rows, group = np.unique(trips.contexts, axis=0, return_inverse=True)
    seconds = np.empty(len(trips))
    for number, row in enumerate(rows):
        own = np.flatnonzero(group.reshape(-1) == number)
        times_s = model.forecast(row, network).nominal_times
        paths = network.shortest_paths(times_s, trips.origin[own], trips.destination[own])
        seconds[own] = [path.time_s(times_s) for path in paths]
    return seconds + model.trip_constant_s


def _baselines(network: RoadNetwork, trips: Trips, parts: Split) -> list[Row]:
    validation = trips.select(parts.validation)
    held_out = TripTable.of(network, validation)
    test = TripTable.of(network, trips.select(parts.test))
    return [
        Row(
            fitted.name,
            [fitted.predict(test)],
            scores(held_out.observed_s, fitted.predict(held_out)).mae_s,
        )
        for fitted in fit_baselines(network, trips.select(parts.train), validation)
    ]


def _table(trips: Trips, parts: Split, rows: Sequence[Row], title: str) -> Table:
    cells: list[tuple[str | float, ...]] = []
    for row in rows:
        found = [scores(trips.observed_s[parts.test], one) for one in row.predicted_s]
        names = ("mae_s", "mape_percent", "median_s", "p90_s")
        means = [float(np.mean([getattr(one, name) for one in found])) for name in names]
        cells.append((row.name, row.validation_mae_s, *means))
    return Table("travel_times", title, COLUMNS, tuple(cells))


def _against(trips: Trips, parts: Split, rows: Sequence[Row]) -> Table:
    """Each model beside the boosting that knows as much, seed by seed."""
    named, observed = {row.name: row.predicted_s for row in rows}, trips.observed_s[parts.test]
    cells = []
    for features, combine in FORMS:
        (other,) = named[
            f"gradient boosting with{'' if features == 'location' else 'out'} location"
        ]
        theirs_s = scores(observed, other).mae_s
        for seed, own in zip(SEEDS, named[_name(features, combine)], strict=True):
            mae_s = scores(observed, own).mae_s
            low, high = paired_interval(observed, own, other)
            percent = 100.0 * (mae_s / theirs_s - 1.0)
            cells.append((_name(features, combine), f"{seed}", mae_s, mae_s - theirs_s,
                          f"{low:+.1f} … {high:+.1f}".replace("-", "−"), percent))  # fmt: skip
    return Table("against", "Beside gradient boosting that knows as much: below zero, IDEAL is "
                 "better; 95 % paired bootstrap interval", AGAINST, tuple(cells))  # fmt: skip


def _radius(run: TrainedModel) -> str:
    rule, parts = run.model.radius_rule, run.split
    promised = run.model.details["radius"]["promised"]
    zero = (run.radii.upper[parts.train] == 0).mean()
    beyond = np.isinf(run.radii.targets[parts.validation]).mean()
    scaled = "not scaled" if promised is None else f"conformal scaling to {promised:.0%}"
    return (
        f"Location model, seed 0: {rule.loss} loss at {rule.level:.0%}, {scaled}; {beyond:.0%} of "
        f"the held-out trips are beyond what physical bounds allow. Covered on "
        f"{parts.test.size:,} test trips: {run.coverage(parts.test):.1%}. Target radii are zero "
        f"for {zero:.0%} of the training trips. Effective rank of the set "
        f"{run.shape.effective_rank:.1f} of {run.shape.dimension}."
    )


def _fewer(parts: Split) -> Split:
    rng = np.random.default_rng(0)
    train_rows = np.sort(rng.permutation(parts.train)[: int(PAPER_TRIPS * 7 / 8)])
    held_out = np.sort(rng.permutation(parts.validation)[: PAPER_TRIPS - train_rows.size])
    return Split(train_rows, held_out, parts.test)


def _transfer(network: RoadNetwork, trips: Trips, kept: Path) -> tuple[str, Table]:
    """Attributes alone, learned south of 59th Street and scored north of it."""
    lat = np.array([network.lat[trips.origin], network.lat[trips.destination]])
    south, north = (np.flatnonzero((side).all(axis=0)) for side in (lat < DIVIDE_LAT,
                                                                    lat >= DIVIDE_LAT))  # fmt: skip
    rng = np.random.default_rng(0)
    order, there = rng.permutation(south), rng.permutation(north)
    local, test = np.sort(there[:LOCAL_TRIPS]), np.sort(there[LOCAL_TRIPS:])
    cut = int(0.875 * order.size)
    parts = Split(np.sort(order[:cut]), np.sort(order[cut:]), test)
    observed, rows, scales = trips.observed_s, [], []
    for combine in COMBINED:
        model = _model(network, trips, parts, "attributes", combine, 0, kept)
        predicted, constant_s = _predicted_s(model, network, trips), model.trip_constant_s
        scales.append(local_scale(observed[local] - constant_s, predicted[local] - constant_s))
        rescaled = constant_s + scales[-1] * (predicted - constant_s)
        error_s = scores(observed[parts.validation], predicted[parts.validation]).mae_s
        for words, said_s in (("as trained", predicted), ("rescaled", rescaled)):
            rows.append(Row(f"{_name('attributes', combine)}, {words}", [said_s[test]], error_s))
    rows += _baselines(network, trips, parts)
    constant = next(row for row in rows if row.name == "free flow × constant")
    free_flow = TripTable.of(network, trips).free_flow_s
    own = local_scale(observed[local], free_flow[local])
    rows.append(replace(constant, name="free flow × constant, of local trips",
                        predicted_s=[own * free_flow[test]]))  # fmt: skip
    said = (
        f"Learned from {parts.train.size:,} trips within the part south of 59th Street, scored on "
        f"{test.size:,} trips within the part north of it; {local.size} other trips from there "
        f"give the local scale ({' and '.join(f'{scale:.2f}' for scale in scales)}); our models "
        "have seed 0. The validation column is of southern trips."
    )
    return said, _table(trips, parts, rows, "Error on trips north of 59th Street")


if __name__ == "__main__":
    main()

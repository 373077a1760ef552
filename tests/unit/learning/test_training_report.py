"""The training report: true numbers, a figure and words for each, honest where data is thin."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.forecast import Architecture
from ideal_dispatch.learning import (
    RadiusParams,
    Split,
    TrainedModel,
    TrainParams,
    fit,
)
from ideal_dispatch.learning.baselines import (
    FittedBaseline,
    boosting,
    constant,
    hour_of_week,
    linear,
)
from ideal_dispatch.learning.training_report import (
    TrainingReport,
    compare,
    error_by,
    reliability,
    shared_part,
    slowest_hour,
    typical_context,
)
from ideal_dispatch.learning.trip_table import TripTable
from tests.planted import planted_trips

SMALL = TrainParams(
    architecture=Architecture("attributes", dimension=4, width=16), epochs=4, batch_size=16
)


@pytest.fixture(scope="module")
def run(grid: RoadNetwork) -> TrainedModel:
    return fit(grid, planted_trips(grid, 260, seed=1), params=SMALL)


@pytest.fixture(scope="module")
def baselines(run: TrainedModel) -> list[FittedBaseline]:
    trips = run.data.trips.select(run.split.train)
    chosen = (constant(), hour_of_week(), linear(), boosting(trees=20))
    return [one.fit(TripTable.of(run.data.network, trips)) for one in chosen]


def test_the_page_has_all_parts_and_every_figure_its_words(
    run: TrainedModel, baselines: Sequence[FittedBaseline]
) -> None:
    report = TrainingReport.of(run, baselines)
    page = report.page()
    assert len(page.sections) == 5
    assert all(section.parts for section in page.sections)
    assert all(len(figure.caption) > 100 for figure in page.figures.values())
    assert f"at {slowest_hour(run)[1]}:00" in page.figures["speeds"].caption
    scores = page.tables["scores"]
    assert [row[0] for row in scores.rows] == ["IDEAL", *(one.name for one in baselines)]
    own = compare(run, baselines)[0].scores
    assert scores.rows[0][1:] == (own.mae_s, own.mape_percent, own.median_s, own.p90_s, None)
    assert page.numbers[0][1] == f"{own.mae_s:.1f} s"
    assert report.html() == report.html()


def test_numbers_are_json_and_those_of_the_page(
    run: TrainedModel, baselines: Sequence[FittedBaseline]
) -> None:
    facts = TrainingReport.of(run, baselines).as_dict()
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    test = run.split.test
    observed = run.data.trips.observed_s[test]
    assert facts["scores"][0]["mae_s"] == pytest.approx(
        np.abs(observed - run.predicted_s[test]).mean()
    )
    simplest = facts["scores"][1]
    low, high = simplest["beyond_s"]
    assert low <= simplest["mae_s"] - facts["scores"][0]["mae_s"] <= high
    assert "beyond_s" not in facts["scores"][0]


def test_the_slowest_hour_of_the_planted_rush_is_in_it(run: TrainedModel) -> None:
    row, hour = slowest_hour(run)
    assert hour is not None
    assert 16 <= hour <= 20
    columns = run.model.encoding.columns
    assert row[columns.index("hour")] == hour
    typical = typical_context(run)
    assert np.isnan(typical[:5]).all()  # no weather was known
    assert typical[6:13].sum() == typical[13:25].sum() == 1.0
    assert typical[columns.index("holiday")] == 0.0


# --- radius by level ----------------------------------------------------------------


def _with_radii(run: TrainedModel, targets: Any, predicted: float = 0.1) -> TrainedModel:
    """The same run as if its trips had these target radii, and one predicted radius for all."""
    rule = replace(run.model.radius_rule, constant=predicted, scale=1.0)
    return replace(
        run,
        radius_rule=rule,
        radii=replace(
            run.radii, upper=np.asarray(targets, float), greatest=np.full(len(targets), np.inf)
        ),
        predicted_radii=np.full(len(targets), predicted),
    )


def test_reliability_of_exchangeable_trips_stays_in_its_band(run: TrainedModel) -> None:
    count = len(run.data.trips)
    inside, levels = 0, 0
    for seed in range(40):
        found = reliability(_with_radii(run, np.random.default_rng(seed).exponential(1, count)))
        assert (np.diff(found.covered) >= 0).all()
        assert (found.low <= found.high).all()
        inside += int(((found.low <= found.covered) & (found.covered <= found.high)).sum())
        levels += found.level.size
    assert 0.93 < inside / levels < 1.0


def test_reliability_by_hand(run: TrainedModel) -> None:
    targets = np.zeros(len(run.data.trips))
    targets[run.split.validation] = np.arange(run.split.validation.size)
    targets[run.split.test] = np.linspace(0, run.split.validation.size - 1, run.split.test.size)
    found = reliability(_with_radii(run, targets))
    assert found.calibration == run.split.validation.size
    assert found.level[-1] <= found.calibration / (found.calibration + 1)
    assert np.abs(found.covered - found.level).max() < 0.1
    quick = reliability(_with_radii(run, np.zeros(targets.size)))
    assert (quick.covered == 1.0).all()
    never = np.where(targets > 0, np.inf, 0.0)
    assert reliability(_with_radii(run, never)).level.size < found.level.size


def test_a_radius_that_breaks_its_promise_is_told(
    run: TrainedModel, baselines: Sequence[FittedBaseline]
) -> None:
    targets = np.full(len(run.data.trips), 0.05)
    targets[run.split.test] = 0.2
    broken = _with_radii(run, targets)
    lines = TrainingReport.of(broken, baselines).warnings
    assert any("0.0 % of the test trips where 80 % were promised" in line for line in lines)
    assert any(f"{run.split.test.size} test trips are few" in line for line in lines)


def test_an_error_that_rose_after_its_best_epoch_is_told(
    run: TrainedModel, baselines: Sequence[FittedBaseline]
) -> None:
    """Nothing stopped the training, and the page does not say so."""
    errors = (60.0, 53.2, 55.8)
    epoch = run.history[0]
    history = tuple(replace(epoch, epoch=n, validation_mae_s=e) for n, e in enumerate(errors, 1))
    report = TrainingReport.of(replace(run, history=history), baselines)
    assert any("from 53.2 s in epoch 2 to 55.8 s in the last" in line for line in report.warnings)
    assert "choose when to stop" not in report.html()
    level = TrainingReport.of(replace(run, history=history[:2]), baselines)
    assert not any("in the last" in line for line in level.warnings)


def test_a_collapsed_radius_is_a_warning_on_the_page(grid: RoadNetwork) -> None:
    trips = planted_trips(grid, 80, seed=2)
    radius = RadiusParams(loss="mean_absolute", coverage=None)
    run = fit(grid, trips, params=replace(SMALL, epochs=2), radius=radius)
    run = replace(run, warnings=("the radius has collapsed: <b>",))
    simplest = constant().fit(TripTable.of(grid, trips.select(run.split.train)))
    html = TrainingReport.of(run, [simplest]).html()
    assert "<li>the radius has collapsed: &lt;b&gt;</li>" in html


# --- what simultaneous trips share --------------------------------------------------


def test_a_planted_shared_part_is_found(run: TrainedModel) -> None:
    rng = np.random.default_rng(3)
    count = len(run.data.trips)
    hour = rng.integers(0, 40, count)
    at = np.datetime64("2024-03-04", "s") + (3600 * hour).astype("m8[s]")

    def with_noise(shared: float) -> TrainedModel:
        noise = shared * rng.normal(size=40)[hour] + np.sqrt(1 - shared**2) * rng.normal(size=count)
        trips = replace(run.data.trips, at=at, observed_s=run.predicted_s * np.exp(0.2 * noise))
        everything = Split(run.split.train, run.split.validation, np.arange(count))
        return replace(run, data=replace(run.data, trips=trips), split=everything)

    much, none = shared_part(with_noise(0.8)), shared_part(with_noise(0.0))
    assert much is not None
    assert none is not None
    assert much.low < 0.64 < much.high
    assert much.low > 0.2
    assert none.low < 0.0 < none.high
    assert none.pairs == sum(n * (n - 1) // 2 for n in np.bincount(hour))


# --- errors by group, and thin data -------------------------------------------------


def test_error_by_group_by_hand() -> None:
    groups = np.zeros((12, 3))
    groups[:6, 0] = groups[6:10, 1] = 1.0
    groups[:, 2] = 0.5
    errors, observed = np.arange(12.0), np.full(12, 10.0)
    seconds, half = error_by(groups, errors, np.ones(12))
    assert seconds[0] == 2.5
    assert np.isnan(seconds[1])
    assert np.isnan(half[1])
    assert seconds[2] == pytest.approx(5.5)
    assert half[0] == pytest.approx(1.96 * errors[:6].std() / np.sqrt(6))
    assert error_by(groups, errors, observed)[0][0] == pytest.approx(0.25)


def test_a_network_without_coordinates_or_hours(grid: RoadNetwork) -> None:
    bare = RoadNetwork.from_arrays(
        grid.tail, grid.head, grid.length_m, road_class=grid.road_class, speed_kmh=grid.speed_kmh
    )
    trips = planted_trips(bare, 60, seed=4)
    contexts = np.array(trips.contexts)
    contexts[:, :25] = np.nan
    trips = replace(trips, contexts=contexts, at=None)
    run = fit(
        bare,
        trips,
        params=replace(SMALL, epochs=1),
        parts=Split(*np.split(np.arange(60), [40, 60])),
    )
    report = TrainingReport.of(run, [])
    assert set(report.page().figures) == {"errors-by-length", "training", "radius", "shape"}
    assert any("held-out trips" in line for line in report.warnings)
    assert slowest_hour(run)[1] is None
    assert shared_part(run) is None

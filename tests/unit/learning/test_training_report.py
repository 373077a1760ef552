"""The training report: true numbers, a figure and words for each, honest where data is thin."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.forecast import Architecture
from ideal_dispatch.learning import Split, TrainedModel, TrainParams, fit
from ideal_dispatch.learning.baselines import (
    FittedBaseline,
    TripTable,
    boosting,
    constant,
    hour_of_week,
)
from ideal_dispatch.learning.training_report import (
    TrainingReport,
    error_by,
    reliability,
    slowest_hour,
)
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
    chosen = (constant(), hour_of_week(), boosting(trees=20))
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
    own = run.scores
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
    assert np.isnan(row[:5]).all()  # no weather was known
    assert row[6:13].sum() == row[13:25].sum() == 1.0
    assert row[columns.index("holiday")] == 0.0


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
    for seed in range(20):
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


def test_a_radius_that_breaks_its_promise_is_a_warning(
    run: TrainedModel, baselines: Sequence[FittedBaseline]
) -> None:
    targets = np.full(len(run.data.trips), 0.05)
    before = TrainingReport.of(_with_radii(run, targets), baselines).warnings
    targets[run.split.test] = 0.2
    broken = TrainingReport.of(_with_radii(run, targets), baselines).warnings
    assert any("promised" in line for line in broken)
    assert not any("promised" in line for line in before)
    assert any("few" in line for line in broken), "52 test trips"


def test_an_error_that_rose_after_its_best_epoch_is_a_warning(
    run: TrainedModel, baselines: Sequence[FittedBaseline]
) -> None:
    """Nothing stopped the training, and the page does not say so."""
    errors = (60.0, 53.2, 55.8)
    epoch = run.history[0]
    history = tuple(replace(epoch, epoch=n, validation_mae_s=e) for n, e in enumerate(errors, 1))
    report = TrainingReport.of(replace(run, history=history, kept_epoch=3), baselines)
    assert any("epoch 2" in line for line in report.warnings)
    html = report.html()
    assert "held out for the radius" in html
    assert "weights of epoch 3 of 3" in html
    level = TrainingReport.of(replace(run, history=history[:2], kept_epoch=2), baselines)
    assert not any("epoch" in line for line in level.warnings)


def test_a_warning_of_the_training_is_on_the_page(run: TrainedModel) -> None:
    html = TrainingReport.of(replace(run, warnings=("collapsed: <b>",)), []).html()
    assert "<li>collapsed: &lt;b&gt;</li>" in html


# --- errors by group, and thin data -------------------------------------------------


def test_error_by_group_by_hand() -> None:
    groups = np.zeros((12, 3))
    groups[:6, 0] = groups[6:10, 1] = 1.0
    groups[:, 2] = 0.5
    errors = np.arange(12.0)
    seconds, half = error_by(groups, errors)
    assert seconds[0] == 2.5
    assert np.isnan(seconds[1])
    assert np.isnan(half[1])
    assert seconds[2] == pytest.approx(5.5)
    assert half[0] == pytest.approx(1.96 * errors[:6].std() / np.sqrt(6))


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
    assert set(report.page().figures) == {"training", "radius", "shape"}
    assert any("held-out trips" in line for line in report.warnings)
    assert slowest_hour(run)[1] is None

"""Our form of the policy: who, whether, and from what it knows."""

import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import Model, RoadNetwork, optimistic_gap
from ideal_dispatch.dispatch import Decision, Situation
from ideal_dispatch.dispatch.candidate import outlook_of, overlap, recentred
from ideal_dispatch.dispatch.policies import Ideal
from ideal_dispatch.dispatch.survival import CURVES
from ideal_dispatch.dispatch.threshold import CapacityCost, ClinicalThreshold
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.response_time import ResponseModel
from tests.contracts.policy import told
from tests.unit.dispatch.worlds import TIMES, random_model, situation

QUICK: tuple[Any, ...] = ("other-depot", "alternative")
ALL: tuple[Any, ...] = (*QUICK, "gap-path")


@pytest.fixture(scope="module")
def model(grid: RoadNetwork) -> Model:
    return random_model(grid)


def decided(call: Situation, **changes: Any) -> Decision:
    given: dict[str, Any] = {"time_limit_s": None}
    return Ideal(**given | changes).decide(call, np.random.default_rng(0))


# --- what a second is worth -----------------------------------------------------


def test_without_a_log_the_spreads_are_published_ones(grid: RoadNetwork, model: Model) -> None:
    call = situation(grid, 65, (1, 1))
    made = decided(call, seconds=("other-depot",))
    assert made.worth is not None
    assert (made.worth.times_from, made.worth.spread_from) == ("quotes", "published spreads")
    forecast = model.forecast(call.context, grid)
    own = decided(replace(call, forecast=forecast), seconds=("other-depot",))
    assert own.log_facts()["times_from"] == "forecast"


@pytest.mark.parametrize(
    ("drive", "warned"), [("", False), ("its own", False), ("free flow × hour", True)]
)
def test_response_times_of_other_drives_are_warned_about(
    grid: RoadNetwork, model: Model, tmp_path: Path, drive: str, warned: bool
) -> None:
    file = tmp_path / "response_times.json"
    replace(TIMES, drive=model.checksum if drive == "its own" else drive).save(file)
    ResponseModel.load(file)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ResponseModel.load(file, model.checksum)
    assert len(told) == warned
    if warned:
        words = rf"times.json: fitted on drives by {drive}, not by this model .*; fit response t"
        assert re.search(words, str(told[0].message))


def test_survival_is_by_the_curve_of_the_threshold(grid: RoadNetwork) -> None:
    call = situation(grid, 65)
    rule = ClinicalThreshold(CURVES["de-maio-2003"], CapacityCost(0.02))
    made = decided(call, responses=TIMES, seconds=QUICK, threshold=rule)
    usual = decided(call, responses=TIMES, seconds=QUICK)
    assert made.worth is not None
    assert usual.worth is not None
    assert (made.worth.curve.name, usual.worth.curve.name) == ("de-maio-2003", "waalewijn-2001")
    assert made.threshold_s == pytest.approx(rule.seconds(made.worth.primary_s, 4), rel=1e-6)
    assert 0.0 < made.worth.survival_gain < usual.worth.survival_gain


# --- the second's way -----------------------------------------------------------


def test_the_second_comes_from_another_depot_where_one_has_a_unit(grid: RoadNetwork) -> None:
    both = decided(situation(grid, 65, (2, 2)), responses=TIMES)
    assert both.log_facts()["second"] == "other depot"
    alone = decided(situation(grid, 65, (2,)), responses=TIMES, overlap_limit=1.0)
    assert alone.log_facts()["second"] == "alternative"


def test_nearly_the_same_road_is_left_to_the_other_depot(grid: RoadNetwork, model: Model) -> None:
    call = situation(grid, 65, (2, 2))
    strict = decided(call, model=model, responses=TIMES, seconds=ALL, overlap_limit=0.0)
    assert strict.second is not None
    if strict.log_facts()["second"] != "other depot":
        assert strict.log_facts()["overlap"] == 0.0
    alone = situation(grid, 65, (2,))
    assert call.stations[0].alternative is not None
    shared = overlap(grid, call.quote(0).path, call.stations[0].alternative.path)
    assert decided(alone, responses=TIMES, seconds=QUICK, overlap_limit=shared).second is not None
    if shared > 0:
        lonely = decided(alone, responses=TIMES, seconds=QUICK, overlap_limit=shared - 1e-6)
        assert lonely.second is None
        assert lonely.score_s == 0.0


# --- the gap --------------------------------------------------------------------


def test_the_gap_is_certified_around_the_routers_times(grid: RoadNetwork, model: Model) -> None:
    call = situation(grid, 65, (2, 1))
    made = decided(call, model=model)
    seen = outlook_of(call, model, path=made.primary.path, centre="router")
    assert call.router_times_s is not None
    np.testing.assert_allclose(seen.scenarios.nominal_times, call.router_times_s)
    depots = [call.stations[n].depot for n in call.second_stations(made.primary.station)]
    question = (grid, seen.scenarios, depots, 65, made.primary.path)
    gap = optimistic_gap(*question)
    gap.verify(*question)
    assert made.log_facts()["gap_lower_s"] == pytest.approx(gap.lower_s, abs=1e-3)
    assert made.log_facts()["gap_status"] == "exact"
    assert made.log_facts()["gap_upper_s"] == pytest.approx(gap.upper_s, abs=1e-3)
    assert made.outlook is not None
    assert made.gap is not None
    made.gap.verify(grid, made.outlook.scenarios, *question[2:])


def test_reporting_the_gap_changes_no_decision(grid: RoadNetwork, model: Model) -> None:
    for node in (17, 65, 100):
        call = situation(grid, node)
        full = decided(call, model=model, responses=TIMES, seconds=QUICK)
        quick = decided(call, model=model, responses=TIMES, seconds=QUICK, report_gap=False)
        assert "gap_lower_s" in full.log_facts()
        assert "gap_lower_s" not in quick.log_facts()
        assert quick.score_s == full.score_s
        assert told(quick) == told(replace(full, outlook=None, gap=None))


def test_a_search_without_time_is_said_to_be_open(grid: RoadNetwork) -> None:
    call = situation(grid, 65)
    wide = random_model(grid, radius=2.0)
    made = decided(call, model=wide, responses=TIMES, time_limit_s=0.0)
    assert made.log_facts()["gap_status"] == "open"
    assert made.log_facts()["gap_upper_s"] > made.log_facts()["gap_lower_s"]


def test_what_the_forecast_is_unsure_of_is_logged(grid: RoadNetwork, model: Model) -> None:
    elsewhere = replace(model, network_checksum="another")
    made = decided(situation(grid, 65), model=elsewhere)
    assert made.log_facts()["transferred"] is True
    assert "(no trips)" in made.log_facts()["unusual"]


def test_recentred_embeddings_keep_their_directions() -> None:
    rng = np.random.default_rng(0)
    embeddings, times = rng.normal(size=(6, 3)), rng.uniform(1, 9, 6)
    embeddings[2], times[4] = 0.0, 0.0
    moved = recentred(embeddings, times)
    np.testing.assert_allclose((moved**2).sum(axis=1), times)
    np.testing.assert_allclose(np.cross(moved, embeddings), 0.0, atol=1e-12)
    assert (np.einsum("ij,ij->i", moved, embeddings) >= 0).all()
    assert np.isfinite(moved).all()


# --- odd settings ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seconds": ("gap-path",)}, "policy ideal needs a trained model"),
        ({"seconds": ()}, "choose of other-depot, alternative, gap-path"),
        ({"seconds": ("helicopter",)}, "seconds .'helicopter'.: choose of"),
        ({"overlap_limit": 1.5}, "overlap_limit 1.5: a share of 0 to 1"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Ideal(**settings)

"""Our form of the policy: who, whether, and from what it knows."""

import math
import re
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import Model, RoadNetwork, optimistic_gap
from ideal_dispatch.dispatch import Decision, Situation
from ideal_dispatch.dispatch.candidate import outlook_of, overlap, recentred, routed, together
from ideal_dispatch.dispatch.policies import Ideal
from ideal_dispatch.dispatch.survival import CURVES
from ideal_dispatch.dispatch.threshold import ALWAYS, CapacityCost, ClinicalThreshold
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.response_time import Effects, ResponseModel, ResponsePair
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


def test_the_gain_is_of_responses_where_a_log_was_fitted(grid: RoadNetwork) -> None:
    call = situation(grid, 65, (1, 1))
    made = decided(call, responses=TIMES, seconds=("other-depot",))
    first, worth = made.primary.station, made.worth
    assert worth is not None
    one, two = (
        TIMES.of(call.quote(n).duration_s, station=f"D{n}", hour=call.context.at.hour, quoted=True)
        for n in (first, 1 - first)
    )
    assert one.mean_s < two.mean_s, "the primary is the least expected response"
    drives = [(call.quote(n).path, call.quote(n).duration_s) for n in (first, 1 - first)]
    pair = ResponsePair(one, two, together(grid, *drives[0], *drives[1]))
    assert worth.mean_s == pytest.approx(float(pair.mean_s))
    assert worth.spread_s == pytest.approx(float(pair.deviation_s))
    assert made.score_s == pytest.approx(float(pair.gain_s))
    assert worth.second_first == pytest.approx(float(pair.second_first))
    assert worth.primary_s == made.primary_s == pytest.approx(float(one.mean_s))
    direct = pair.survival_gain(CURVES["waalewijn-2001"].probability)
    assert worth.survival_gain == pytest.approx(float(direct))
    assert worth.spread_from == "900 responses of a log"


def test_the_kind_of_a_unit_has_its_own_turnout(grid: RoadNetwork) -> None:
    call = situation(grid, 65, (1, 1))
    times = ResponseModel(Effects(60.0, 0.0, kind={"medic": 0.5}))
    first = decided(call, responses=times, seconds=("other-depot",)).primary.station
    station = call.stations[first]
    medic = replace(station, depot=replace(station.depot, kind="Medic"))
    stations = tuple(medic if n == first else one for n, one in enumerate(call.stations))
    plain, quick = (
        decided(one, responses=times, seconds=("other-depot",)).primary_s
        for one in (call, replace(call, stations=stations))
    )
    assert plain is not None
    assert quick is not None
    assert plain - quick == pytest.approx(30.0)


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


def test_turnout_may_choose_another_primary(grid: RoadNetwork) -> None:
    """A crew that leaves at once beats one that is a little nearer."""
    changed = 0
    for node in range(0, grid.num_nodes, 7):
        call = situation(grid, node)
        slow = ResponseModel(Effects(60.0, 0.3, station={f"D{call.fastest}": 4.0}))
        made = decided(call, responses=slow, seconds=("other-depot",))
        ahead_s = call.quote(1 - call.fastest).duration_s - call.quote(call.fastest).duration_s
        if abs(ahead_s - 180.0 * math.exp(0.045)) > 1.0:  # 240 s of turnout against 60 s
            assert (made.primary.station != call.fastest) == (ahead_s < 180.0 * math.exp(0.045))
            changed += made.primary.station != call.fastest
    assert changed > 0


def test_own_times_are_scaled_and_a_routers_are_not(grid: RoadNetwork, model: Model) -> None:
    call = situation(grid, 65, (1, 1))
    quoted_s = decided(call, responses=TIMES, seconds=("other-depot",)).primary_s
    own = replace(call, forecast=model.forecast(call.context, grid))
    learned_s = decided(own, responses=TIMES, seconds=("other-depot",)).primary_s
    assert quoted_s is not None
    assert learned_s is not None
    assert learned_s < quoted_s


def test_what_the_primary_has_driven_already_counts(grid: RoadNetwork) -> None:
    call = situation(grid, 65, (2, 2))
    sent = replace(call, sent=routed(call, call.fastest))
    gains = [
        decided(replace(sent, sent_ago_s=ago_s), responses=TIMES, seconds=("other-depot",)).score_s
        for ago_s in (0.0, 30.0, 60.0)
    ]
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] < gains[0]


def test_a_unit_on_the_road_needs_no_turnout(grid: RoadNetwork) -> None:
    call, alike = situation(grid, 65, (1, 1)), ResponseModel(Effects(60.0, 0.0))
    here = call.stations[call.fastest]
    road = replace(here, depot=replace(here.depot, on_road=True))
    stations = tuple(road if one is here else one for one in call.stations)
    at_station, on_road = (
        decided(one, responses=alike, seconds=("other-depot",)).primary_s
        for one in (call, replace(call, stations=stations))
    )
    assert at_station is not None
    assert on_road is not None
    assert at_station - on_road == pytest.approx(60.0 - 10.0)


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


def test_the_best_of_all_ways_that_are_different_enough(grid: RoadNetwork, model: Model) -> None:
    kinds: set[str] = set()
    for node, units in product(range(2, grid.num_nodes, 6), ((2, 2), (2,))):
        call = situation(grid, node, units)
        whole = decided(call, model=model, responses=TIMES, seconds=ALL)
        kinds |= {one.candidate.source for one in whole.considered}
        single = [decided(call, model=model, responses=TIMES, seconds=(kind,))
                  for kind in ALL]  # fmt: skip
        assert whole.score_s == pytest.approx(max(one.score_s for one in single))
        for one in (whole, *single[1:]):
            if one.second is not None and one.log_facts()["second"] != "other depot":
                shared = overlap(grid, one.primary.path, one.second.path)
                assert shared <= 0.5
                own = set(one.second.path.edges.tolist()) - set(one.primary.path.edges.tolist())
                assert own <= set(one.second.prefix)
    assert kinds == {"other depot", "alternative", "gap path"}


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


def test_a_way_no_router_quoted_is_expected_by_edge_times(grid: RoadNetwork, model: Model) -> None:
    for node in range(grid.num_nodes):
        call = situation(grid, node, (2, 2))
        made = decided(call, model=model, responses=TIMES, seconds=("gap-path",))
        if made.second is None:
            continue
        assert call.router_times_s is not None
        expected = made.second.path.time_s(call.router_times_s)
        assert made.log_facts()["second_s"] == pytest.approx(expected, abs=1e-3)
        silent = decided(
            replace(call, router_times_s=None), model=model, responses=TIMES, seconds=("gap-path",)
        )
        assert silent.log_facts()["centre"] == "forecast"
        if silent.second is not None:
            nominal = model.forecast(call.context, grid, silent.primary.path).nominal_times
            first_s = call.quote(silent.primary.station).duration_s
            ratio = first_s / silent.primary.path.time_s(nominal)
            expected = ratio * silent.second.path.time_s(nominal)
            assert silent.log_facts()["second_s"] == pytest.approx(expected, abs=1e-2)
            return
    pytest.fail("no call had a gap path")


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


def test_dual_is_the_same_policy_that_always_sends(grid: RoadNetwork) -> None:
    call = situation(grid, 65)
    single = decided(call, responses=TIMES, seconds=QUICK)
    dual = decided(call, responses=TIMES, seconds=QUICK, threshold=ALWAYS)
    assert dual.send_second
    assert dual.score_s == single.score_s


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

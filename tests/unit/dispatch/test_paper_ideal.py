"""The printed policy does what is printed."""

import numpy as np
import pytest

from ideal_dispatch import Model, RoadNetwork, optimistic_gap
from ideal_dispatch.dispatch.candidate import situation_steps
from ideal_dispatch.dispatch.policies import PaperIdeal
from ideal_dispatch.dispatch.survival import CURVES
from ideal_dispatch.dispatch.threshold import CapacityCost, ClinicalThreshold
from ideal_dispatch.errors import InputError
from tests.unit.dispatch.worlds import random_model, situation


@pytest.fixture(scope="module")
def model(grid: RoadNetwork) -> Model:
    return random_model(grid, radius=0.3)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("node", [17, 40, 65, 88])
def test_primary_gap_and_second_are_as_printed(grid: RoadNetwork, model: Model, node: int) -> None:
    call = situation(grid, node)
    decided = PaperIdeal(model).decide(call, rng(3))
    router = min(call.available, key=lambda number: call.quote(number).duration_s)
    assert decided.primary.station == router
    assert decided.primary.path == call.quote(router).path
    assert decided.primary.follow == 0  # adaptive
    seed = int(rng(3).integers(2**31))
    scenarios = model.scenario_set(call.context, grid)
    depots = [station.depot for station in call.stations]
    gap = optimistic_gap(
        grid, scenarios, depots, node, decided.primary.path, method="dca", seed=seed
    )
    assert decided.score_s == gap.lower_s
    assert decided.outlook is not None
    steps = situation_steps(call, decided.outlook, decided.primary, rng(3))
    assert steps[-1].gap_s == gap.lower_s
    assert decided.second is not None
    assert decided.second.path == gap.secondary
    assert decided.second.follow == min(5, len(gap.secondary))
    times = scenarios.times(gap.metric)
    by_hand = decided.primary.path.time_s(times) - gap.secondary.time_s(times)
    assert decided.score_s == pytest.approx(by_hand)


def test_the_prefix_is_no_longer_than_the_path(grid: RoadNetwork, model: Model) -> None:
    call = situation(grid, 17)
    for prefix in (0, 1, 3, 500):
        second = PaperIdeal(model, prefix=prefix).decide(call, rng()).second
        assert second is not None
        assert second.follow == min(prefix, len(second.path))
    with pytest.raises(InputError, match="prefix -1: zero segments or more"):
        PaperIdeal(model, prefix=-1)


def test_the_threshold_is_taken_at_the_models_nominal_time(grid: RoadNetwork, model: Model) -> None:
    call = situation(grid, 65, (2, 3))
    rule = ClinicalThreshold(CURVES["waalewijn-2001"], CapacityCost(0.01, full_units=10))
    decided = PaperIdeal(model, rule).decide(call, rng())
    nominal = model.forecast(call.context, grid).nominal_times
    nominal_s = decided.primary.path.time_s(nominal)
    assert decided.threshold_s == pytest.approx(rule.seconds(nominal_s, 5))
    assert decided.log_facts()["primary_s"] == pytest.approx(nominal_s, abs=1e-3)
    assert nominal_s != pytest.approx(call.quote(decided.primary.station).duration_s, rel=0.01)


def test_the_primarys_depot_needs_a_second_unit(grid: RoadNetwork, model: Model) -> None:
    policy, apart = PaperIdeal(model), 0
    for node in range(1, grid.num_nodes, 7):
        full = policy.decide(situation(grid, node, (2, 2)), rng())
        lone = policy.decide(situation(grid, node, (1, 1)), rng())
        assert full.second is not None
        assert lone.second is not None
        assert lone.second.station != lone.primary.station
        apart += full.second.station == full.primary.station
    assert apart > 0  # so that the rule had something to do

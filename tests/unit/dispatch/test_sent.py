"""An ambulance that the agency has already sent is the primary of every policy."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ideal_dispatch import Path, RoadNetwork
from ideal_dispatch.dispatch import Assignment, Policy, Readiness, Situation, observe
from ideal_dispatch.dispatch.baselines import (
    IntervalPolicy,
    RegionPolicy,
    RouterDual,
    RouterPolicy,
)
from ideal_dispatch.dispatch.candidate import sent_candidate
from ideal_dispatch.dispatch.controls import GapTriggeredOtherDepot, RouterAlternativePolicy
from ideal_dispatch.dispatch.decision import log_details
from ideal_dispatch.dispatch.ideal import Ideal
from ideal_dispatch.dispatch.paper_ideal import NominalGap, PaperIdeal
from ideal_dispatch.errors import InputError
from tests.unit.dispatch.worlds import GAIN, depots, random_drift, random_model, situation, world

NODE = 65


def another_path(call: Situation, station: int) -> Path:
    """A way from the station that no router would choose."""
    quote = call.quote(station)
    rough = call.network.length_m.copy()
    rough[quote.path.edges] *= 20.0
    path = call.network.shortest_path(rough, quote.path.origin, quote.path.destination)
    assert path != quote.path
    return path


def sent(call: Situation, station: int, path: Path | None = None) -> Situation:
    return replace(call, sent=Assignment(station, path or call.quote(station).path))


@pytest.fixture
def call(grid: RoadNetwork) -> Situation:
    return situation(grid, NODE, (1, 1, 1))


def test_every_policy_takes_it_as_the_primary(grid: RoadNetwork, call: Situation) -> None:
    model = random_model(grid)
    policies: list[Policy] = [
        Ideal(model, GAIN, random_drift(grid), time_limit_s=None),
        Ideal(model, time_limit_s=None),
        Ideal(None, GAIN, report_gap=False),
        PaperIdeal(model), NominalGap(model), RegionPolicy(), RouterPolicy(), RouterDual(),
        IntervalPolicy(), RouterAlternativePolicy(), GapTriggeredOtherDepot(model),
    ]  # fmt: skip
    slowest = max(call.available, key=lambda n: call.quote(n).duration_s)
    for given in (sent(call, slowest), sent(call, slowest, another_path(call, slowest))):
        for policy in policies:
            made = policy.decide(given, np.random.default_rng(0))
            assert made.primary == given.sent, policy.name
            if made.second is not None:
                assert call.stations[made.second.station].units > 0


def test_a_quoted_path_is_expected_as_quoted(call: Situation) -> None:
    for station in call.available:
        way = sent_candidate(sent(call, station), Assignment(station, call.quote(station).path))
        quote = call.quote(station)
        assert way.drive_s == quote.duration_s
        assert way.above_s == quote.pessimistic_s - quote.duration_s


def test_a_path_of_its_own_is_expected_by_the_routers_edge_times(call: Situation) -> None:
    path = another_path(call, 0)
    assert call.router_times_s is not None
    way = sent_candidate(call, Assignment(0, path))
    assert way.drive_s == path.time_s(call.router_times_s)
    quote = call.quote(0)
    wider = way.drive_s / quote.duration_s
    assert way.below_s == pytest.approx(wider * (quote.duration_s - quote.optimistic_s))


def test_without_edge_times_the_forecast_is_scaled_to_the_quote(
    grid: RoadNetwork, call: Situation
) -> None:
    model = random_model(grid)
    path, quote = another_path(call, 0), call.quote(0)
    given = sent(replace(call, router_times_s=None), 0, path)
    made = Ideal(model, GAIN, time_limit_s=None).decide(given, np.random.default_rng(0))
    nominal = model.forecast(call.context, grid, path).nominal_times
    expected = path.time_s(nominal) * quote.duration_s / quote.path.time_s(nominal)
    assert log_details(made)["primary_s"] == pytest.approx(expected, abs=1e-3)
    bare = Ideal(None, GAIN, report_gap=False).decide(given, np.random.default_rng(0))
    free = grid.free_flow_times_s
    expected = path.time_s(free) * quote.duration_s / quote.path.time_s(free)
    assert log_details(bare)["primary_s"] == pytest.approx(expected, abs=1e-3)


def test_the_drift_of_its_own_path_counts(grid: RoadNetwork, call: Situation) -> None:
    drift, path = random_drift(grid), another_path(call, 0)
    edge_drift_s = drift.edge_drift_s(call.context, grid)
    assert call.router_times_s is not None
    way = sent_candidate(call, Assignment(0, path), edge_drift_s)
    expected = path.time_s(call.router_times_s) + path.time_s(edge_drift_s)
    assert way.drive_s == pytest.approx(max(expected, 0.0))


def test_a_depot_whose_last_unit_was_sent_is_still_asked_about(grid: RoadNetwork) -> None:
    at = situation(grid, NODE).incident.at
    path = situation(grid, NODE).quote(0).path
    call = observe(
        world(grid), grid, situation(grid, NODE).incident, world(grid).recording.context(at),
        Readiness(depots(2), (0, 1), sent=Assignment(0, path)),
    )  # fmt: skip
    assert call.stations[0].quote is not None
    assert call.available == (1,)
    assert call.free_units == 2
    assert call.second_stations(0) == (1,)
    made = Ideal(None, GAIN, report_gap=False).decide(call, np.random.default_rng(0))
    assert made.second is not None
    assert made.second.station == 1


def test_units_of_its_depot_are_those_that_are_left(call: Situation) -> None:
    assert 0 not in call.second_stations(0)
    assert 0 in sent(call, 0).second_stations(0)
    assert sent(call, 0).free_units == call.free_units + 1


def test_nobody_else_is_free(grid: RoadNetwork, call: Situation) -> None:
    stations = tuple(replace(one, units=0) for one in call.stations)
    alone = replace(call, stations=stations, sent=Assignment(1, call.quote(1).path))
    for policy in (Ideal(random_model(grid), GAIN), PaperIdeal(random_model(grid)), RouterDual()):
        made = policy.decide(alone, np.random.default_rng(0))
        assert made.second is None
        assert not made.send_second
        assert "no other unit on another road" in made.reason
    with pytest.raises(InputError, match="no depot has a free unit and a route to it"):
        replace(alone, sent=None)


def test_a_router_that_finds_no_way_for_it(call: Situation) -> None:
    lost = replace(call.stations[0], units=0, quote=None, alternative=None)
    path = call.quote(0).path
    given = replace(
        call, stations=(lost, *call.stations[1:]), router_times_s=None, sent=Assignment(0, path)
    )
    way = sent_candidate(given, Assignment(0, path))
    assert way.drive_s == path.time_s(call.network.free_flow_times_s)
    assert math.isnan(way.above_s)
    made = Ideal(None, GAIN, report_gap=False).decide(given, np.random.default_rng(0))
    assert log_details(made)["first_above_s"] is None


def test_a_path_that_cannot_be_its_own_is_refused(call: Situation) -> None:
    with pytest.raises(InputError, match="already sent is of station 7, none of 3"):
        sent(call, 7, call.quote(0).path)
    with pytest.raises(InputError, match="already sent starts at node 11, not at node 0"):
        sent(call, 0, call.quote(1).path)
    wrong_end = call.network.path(call.quote(0).path.edges[:-1])
    with pytest.raises(InputError, match="already sent ends at node"):
        sent(call, 0, wrong_end)

"""An ambulance that the agency has already sent is the primary of every policy."""

from dataclasses import replace

import numpy as np
import pytest

from ideal_dispatch import Path, RoadNetwork
from ideal_dispatch.dispatch import Assignment, Policy, Readiness, Situation, observe
from ideal_dispatch.dispatch.candidate import candidate
from ideal_dispatch.dispatch.policies import (
    Ideal,
    IntervalPolicy,
    PaperIdeal,
    RegionPolicy,
    RouterDual,
    RouterPolicy,
)
from ideal_dispatch.errors import InputError
from tests.unit.dispatch.worlds import TIMES, depots, random_model, situation, world
from workshop.policies import GapOtherDepot, GapScored, NominalGap, RouterAlternative

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
        Ideal(model, TIMES, time_limit_s=None),
        Ideal(None, TIMES, report_gap=False),
        PaperIdeal(model), NominalGap(model), RegionPolicy(), RouterPolicy(), RouterDual(),
        IntervalPolicy(), RouterAlternative(), GapOtherDepot(model), GapScored(model),
    ]  # fmt: skip
    slowest = max(call.available, key=lambda n: call.quote(n).duration_s)
    for given in (sent(call, slowest), sent(call, slowest, another_path(call, slowest))):
        for policy in policies:
            made = policy.decide(given, np.random.default_rng(0))
            assert made.primary == given.sent, policy.name
            if made.second is not None:
                assert call.stations[made.second.station].units > 0


def test_the_range_of_its_path_is_that_of_the_quote_scaled(call: Situation) -> None:
    policy, rng, path = IntervalPolicy(), np.random.default_rng(0), another_path(call, 0)
    quote = call.quote(0)
    least_s = min(call.quote(number).optimistic_s for number in (1, 2))
    quoted_s = policy.decide(sent(call, 0), rng).score_s
    assert quoted_s == pytest.approx(quote.pessimistic_s - least_s)
    assert call.router_times_s is not None
    slow_s = path.time_s(call.router_times_s) * quote.pessimistic_s / quote.duration_s
    assert policy.decide(sent(call, 0, path), rng).score_s == pytest.approx(slow_s - least_s)


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
    made = Ideal(None, TIMES, report_gap=False).decide(call, np.random.default_rng(0))
    assert made.second is not None
    assert made.second.station == 1


def test_nobody_else_is_free(grid: RoadNetwork, call: Situation) -> None:
    stations = tuple(replace(one, units=0) for one in call.stations)
    alone = replace(call, stations=stations, sent=Assignment(1, call.quote(1).path))
    for policy in (Ideal(random_model(grid), TIMES), PaperIdeal(random_model(grid)), RouterDual()):
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
    way = candidate(given, "", Assignment(0, path))
    assert way.drive_s == path.time_s(call.network.free_flow_times_s)
    made = IntervalPolicy().decide(given, np.random.default_rng(0))
    assert made.second is not None
    other = call.quote(made.second.station).optimistic_s
    assert made.score_s == pytest.approx(way.drive_s - other)


def test_a_path_that_cannot_be_its_own_is_refused(call: Situation) -> None:
    with pytest.raises(InputError, match="already sent is of station 7, none of 3"):
        sent(call, 7, call.quote(0).path)
    with pytest.raises(InputError, match="already sent starts at node 11, not at node 0"):
        sent(call, 0, call.quote(1).path)
    wrong_end = call.network.path(call.quote(0).path.edges[:-1])
    with pytest.raises(InputError, match="already sent ends at node"):
        sent(call, 0, wrong_end)

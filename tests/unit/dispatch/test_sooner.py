"""Another free unit that is expected before the primary that was sent."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.cities import (
    TRAINING_DAYS,
    harbour_city,
    harbour_traffic,
)
from ideal_dispatch.dispatch import Decision, Incident, Readiness, Situation, observe
from ideal_dispatch.dispatch.candidate import (
    LEAST_SOONER_S,
    LEAST_SURE,
    SecondKind,
    candidate,
    routed,
)
from ideal_dispatch.dispatch.policies import Ideal
from ideal_dispatch.errors import InputError
from ideal_dispatch.replay.drive import World, drive
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from tests.unit.dispatch.worlds import (
    TIMES,
    depots,
    moment,
    random_model,
    situation,
    world,
)

QUICK: tuple[SecondKind, ...] = ("other-depot", "alternative")


def sent_from(network: RoadNetwork, station: int, node: int = 14, units: Any = (2, 2)) -> Situation:
    """A call to which an ambulance of a station was sent already."""
    call, at = situation(network, node, (2,) * len(units)), moment(network)
    return observe(
        world(network), network, call.incident, world(network).recording.context(at),
        Readiness(depots(len(units)), units, sent=routed(call, station)),
    )  # fmt: skip


def decided(call: Situation, **changes: Any) -> Decision:
    policy = Ideal(**{"responses": TIMES, "seconds": QUICK, **changes})
    return policy.decide(call, np.random.default_rng(0))


def test_a_unit_that_is_sooner_is_named_with_its_lead(grid: RoadNetwork) -> None:
    call = sent_from(grid, 1, node=14, units=(2, 1))  # far from D1, near D0
    made = decided(call)
    assert made.sooner is not None
    assert (made.sooner.depot, made.sooner.unit) == ("D0", None)
    assert made.sooner.seconds > LEAST_SOONER_S
    assert made.sooner.probability >= LEAST_SURE
    assert made.primary.station == 1, "it is said beside the advice, and changes nothing"
    assert made.second is not None


def test_the_lead_is_the_difference_of_the_arrivals(grid: RoadNetwork) -> None:
    call = sent_from(grid, 1, node=14)
    made = decided(call)
    assert made.sooner is not None
    one = candidate(call, "", routed(call, 1))
    first = call.arrival(1, one.drive_s, TIMES, first=True)
    other = call.arrival(0, call.quote(0).duration_s, TIMES)
    lead_s = first.expected_s - other.expected_s
    assert made.sooner.seconds == pytest.approx(lead_s, abs=0.06)


def test_the_primary_has_been_driving_for_a_while(grid: RoadNetwork) -> None:
    call = sent_from(grid, 1, node=14)
    lead = decided(call).sooner
    assert lead is not None
    later = decided(replace(call, sent_ago_s=10.0)).sooner
    assert later is not None
    assert later.seconds < lead.seconds
    assert later.probability < lead.probability
    assert decided(replace(call, sent_ago_s=lead.seconds + 60.0)).sooner is None


@pytest.mark.parametrize("changes", [{}, {"seconds": ("alternative",)}])
def test_it_needs_no_second_of_another_depot(grid: RoadNetwork, changes: Any) -> None:
    made = decided(sent_from(grid, 1, node=14), **changes)
    assert made.sooner is not None


def test_it_is_of_the_same_times_as_the_gain(grid: RoadNetwork) -> None:
    call, model = sent_from(grid, 1, node=14), random_model(grid)
    plain = decided(call).sooner
    forecast = Ideal(model, time_limit_s=None).decide(call, np.random.default_rng(0)).sooner
    assert plain is not None
    assert forecast is not None
    assert plain.seconds != forecast.seconds


def test_nobody_is_named_where_nobody_is_sooner(grid: RoadNetwork) -> None:
    for node in range(2, grid.num_nodes, 13):
        assert decided(situation(grid, node)).sooner is None, "the router chose the soonest"
    assert decided(sent_from(grid, 0, node=14)).sooner is None
    assert decided(sent_from(grid, 1, node=14, units=(0, 2))).sooner is None, "none is free there"


def test_the_margin_is_a_setting(grid: RoadNetwork) -> None:
    call = sent_from(grid, 1, node=14)
    lead = decided(call).sooner
    assert lead is not None
    assert decided(call, sooner_s=lead.seconds - 1.0).sooner == lead
    assert decided(call, sooner_s=lead.seconds + 1.0).sooner is None
    with pytest.raises(InputError, match="sooner_s -1.0: zero seconds or more"):
        Ideal(responses=TIMES, seconds=QUICK, sooner_s=-1.0)


def test_an_unsure_lead_is_not_named(grid: RoadNetwork) -> None:
    call = sent_from(grid, 1, node=14)
    wide = replace(TIMES, slack_s=2000.0)
    assert decided(call, responses=wide).sooner is None


def test_what_is_said_comes_true() -> None:
    """On training days of the embedded city, whichever depot sent: who is named arrives first."""
    city = harbour_city()
    recording = harbour_traffic(city)
    streets = ReplayedTraffic(recording)
    policy = Ideal(responses=city.responses, seconds=QUICK)
    rng = np.random.default_rng(3)
    right: list[bool] = []
    stretches = [recording.stretches[day[0]] for day in recording.days[:TRAINING_DAYS]]
    while len(right) < 40:
        stretch = stretches[int(rng.integers(len(stretches)))]
        at = stretch.start + timedelta(seconds=3600.0 + float(rng.uniform(0.0, 1200.0)))
        call = Incident("call", int(rng.integers(city.network.num_nodes)), at)
        context, sent = recording.context(at), int(rng.integers(2))
        ready = Readiness(city.depots)
        seen = observe(streets, city.network, call, context, ready, alternatives=False)
        ready = replace(ready, sent=routed(seen, sent))
        seen = observe(streets, city.network, call, context, ready, alternatives=False)
        if policy.decide(seen, rng).sooner is not None:
            took_s = [
                sum(
                    drive(
                        streets, city.network, routed(seen, n), call.node, at, World.EXPERIENCED
                    ).seconds
                )
                for n in (sent, 1 - sent)
            ]
            right.append(took_s[0] > took_s[1])
    assert np.mean(right) >= 0.9

"""What every policy keeps.

A test class inherits this and gives a fixture ``policy`` for ``network``. It
is asked about calls of :mod:`tests.unit.dispatch.worlds`.
"""

import json
import math
import pickle
from collections.abc import Iterator

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch import Assignment, Decision, Policy, Situation
from tests.unit.dispatch.worlds import NODES, poisoned, situation

UNITS = ((1,), (2,), (1, 1), (2, 1), (1, 2), (2, 2), (0, 2), (2, 0), (1, 0, 1), (2, 1, 3, 1))


class PolicyContract:
    """A policy decides about any call that somebody can reach."""

    @pytest.fixture
    def policy(self) -> Policy:
        raise NotImplementedError

    @pytest.fixture
    def network(self, grid: RoadNetwork) -> RoadNetwork:
        return grid

    def test_it_is_a_policy(self, policy: Policy) -> None:
        assert isinstance(policy, Policy)
        assert policy.name

    def test_the_same_call_has_the_same_decision(
        self, policy: Policy, network: RoadNetwork
    ) -> None:
        copy = pickle.loads(pickle.dumps(policy))  # as another process has it
        for node in (30, 77):
            call = situation(network, node)
            first, again, other = (
                told(asked.decide(call, np.random.default_rng(5)))
                for asked in (policy, policy, copy)
            )
            assert first == again == other

    def test_only_who_is_free_goes(self, policy: Policy, network: RoadNetwork) -> None:
        for call, decision in self.decisions(policy, network):
            free = [station.units for station in call.stations]
            for one in self.assigned(decision):
                free[one.station] -= 1
            assert min(free) >= 0, call.incident

    def test_ways_lead_from_a_depot_to_the_incident(
        self, policy: Policy, network: RoadNetwork
    ) -> None:
        for call, decision in self.decisions(policy, network):
            for one in self.assigned(decision):
                assert one.path.origin == call.stations[one.station].depot.node
                assert one.path.destination == call.incident.node
                assert network.path(one.path.edges, one.path.origin) == one.path  # edges connect
                assert 0 <= one.follow <= len(one.path)

    def test_numbers_can_be_logged(self, policy: Policy, network: RoadNetwork) -> None:
        for _, decision in self.decisions(policy, network):
            assert math.isfinite(decision.score_s)
            assert decision.threshold_s < math.inf
            assert decision.policy == policy.name
            assert decision.reason
            json.dumps(decision.log_facts(), allow_nan=False)

    def test_a_lone_unit_goes_alone(self, policy: Policy, network: RoadNetwork) -> None:
        decision = policy.decide(situation(network, 40, (0, 1)), np.random.default_rng(0))
        assert decision.primary.station == 1
        assert decision.second is None
        assert not decision.send_second

    def test_the_situation_stays_as_it_is(self, policy: Policy, network: RoadNetwork) -> None:
        call = situation(network, 65, (2, 2, 2))
        before = pickle.dumps([call.stations, call.incident, call.region, call.router_times_s])
        policy.decide(call, np.random.default_rng(0))
        after = pickle.dumps([call.stations, call.incident, call.region, call.router_times_s])
        assert after == before

    def test_what_happens_later_changes_nothing(self, policy: Policy, network: RoadNetwork) -> None:
        calls = [
            situation(network, 65, (2, 2, 1), minutes=60, traffic=traffic)
            for traffic in (None, poisoned(network, 60))
        ]
        known, spoilt = (told(policy.decide(call, np.random.default_rng(1))) for call in calls)
        assert known == spoilt

    def test_an_incident_at_a_depot(self, policy: Policy, network: RoadNetwork) -> None:
        for units in ((1, 1), (2, 2), (2, 1, 1)):
            decision = policy.decide(situation(network, NODES[0], units), np.random.default_rng(0))
            assert decision.primary.station == 0
            assert len(decision.primary.path) == 0

    @staticmethod
    def decisions(policy: Policy, network: RoadNetwork) -> Iterator[tuple[Situation, Decision]]:
        for number, units in enumerate(UNITS):
            for node in (0, 17, 65, 103):
                call = situation(network, node, units, minutes=40 + number)
                yield call, policy.decide(call, np.random.default_rng(number))

    @staticmethod
    def assigned(decision: Decision) -> list[Assignment]:
        return [one for one in (decision.primary, decision.second) if one is not None]


def told(decision: Decision) -> str:
    """All that a decision says, as text."""
    ways = [
        None if one is None else (one.station, one.follow, one.path.edges.tolist())
        for one in (decision.primary, decision.second)
    ]
    numbers = decision.score_s, decision.threshold_s, decision.reason, decision.log_facts()
    return json.dumps([decision.policy, ways, *numbers])

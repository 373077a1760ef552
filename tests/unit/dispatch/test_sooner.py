"""Another free unit that is expected before the primary that was sent."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch import Decision, Readiness, Situation, observe
from ideal_dispatch.dispatch.candidate import (
    SecondKind,
    routed,
)
from ideal_dispatch.dispatch.policies import Ideal
from ideal_dispatch.errors import InputError
from tests.unit.dispatch.worlds import (
    TIMES,
    depots,
    moment,
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

"""Every policy keeps the contract of policies."""

from collections.abc import Callable
from typing import Any

import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch import Policy
from ideal_dispatch.dispatch.policies import (
    Ideal,
    IntervalPolicy,
    PaperIdeal,
    RandomTrigger,
    RegionPolicy,
    RouterDual,
    RouterPolicy,
)
from tests.contracts.policy import PolicyContract
from tests.unit.dispatch.worlds import TIMES, fleet_threshold, random_model
from workshop.policies import (
    GapOtherDepot,
    GapScored,
    NominalGap,
    QuoteDifference,
    RouterAlternative,
)

QUICK: Any = ("other-depot", "alternative")
POLICIES: dict[str, Callable[[RoadNetwork], Policy]] = {
    "region": lambda network: RegionPolicy(),
    "router": lambda network: RouterPolicy(),
    "router-dual": lambda network: RouterDual(),
    "interval": lambda network: IntervalPolicy(),
    "interval, priced": lambda network: IntervalPolicy(threshold=fleet_threshold(network)),
    "random": lambda network: RandomTrigger(),
    "paper": lambda network: PaperIdeal(random_model(network)),
    "ideal": lambda network: Ideal(random_model(network), TIMES, time_limit_s=None),
    "ideal by the forecast": lambda network: Ideal(
        random_model(network), centre="forecast", time_limit_s=None
    ),
    "ideal without a model": lambda network: Ideal(responses=TIMES, seconds=QUICK),
    "ideal, priced": lambda network: Ideal(seconds=QUICK, threshold=fleet_threshold(network)),
    "quote-difference": lambda network: QuoteDifference(),
    "router-alternative": lambda network: RouterAlternative(),
    "gap-other-depot": lambda network: GapOtherDepot(random_model(network), time_limit_s=None),
    "gap-scored": lambda network: GapScored(random_model(network), by="both", time_limit_s=None),
    "nominal-gap": lambda network: NominalGap(random_model(network)),
}


class TestPolicies(PolicyContract):
    @pytest.fixture(params=POLICIES)
    def policy(self, request: pytest.FixtureRequest, grid: RoadNetwork) -> Policy:
        return POLICIES[request.param](grid)

"""Every policy keeps the contract of policies."""

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


class TestRegion(PolicyContract):
    @pytest.fixture
    def policy(self) -> Policy:
        return RegionPolicy()


class TestRouter(PolicyContract):
    @pytest.fixture
    def policy(self) -> Policy:
        return RouterPolicy()


class TestRouterDual(PolicyContract):
    @pytest.fixture
    def policy(self) -> Policy:
        return RouterDual()


class TestInterval(PolicyContract):
    @pytest.fixture
    def policy(self) -> Policy:
        return IntervalPolicy()


class TestQuoteDifference(PolicyContract):
    @pytest.fixture
    def policy(self) -> Policy:
        return QuoteDifference()


class TestRandomTrigger(PolicyContract):
    @pytest.fixture
    def policy(self) -> Policy:
        return RandomTrigger()


class TestRouterAlternative(PolicyContract):
    @pytest.fixture
    def policy(self) -> Policy:
        return RouterAlternative()


class TestGapOtherDepot(PolicyContract):
    @pytest.fixture
    def policy(self, grid: RoadNetwork) -> Policy:
        return GapOtherDepot(random_model(grid), time_limit_s=None)


class TestGapScored(PolicyContract):
    @pytest.fixture
    def policy(self, grid: RoadNetwork) -> Policy:
        return GapScored(random_model(grid), by="both", time_limit_s=None)


class TestNominalGap(PolicyContract):
    @pytest.fixture
    def policy(self, grid: RoadNetwork) -> Policy:
        return NominalGap(random_model(grid))


class TestPaperIdeal(PolicyContract):
    @pytest.fixture
    def policy(self, grid: RoadNetwork) -> Policy:
        return PaperIdeal(random_model(grid))


class TestIdeal(PolicyContract):
    @pytest.fixture
    def policy(self, grid: RoadNetwork) -> Policy:
        return Ideal(random_model(grid), TIMES, time_limit_s=None)


class TestIdealByTheForecastAlone(PolicyContract):
    @pytest.fixture
    def policy(self, grid: RoadNetwork) -> Policy:
        return Ideal(random_model(grid), centre="forecast", time_limit_s=None)


class TestIdealWithoutModel(PolicyContract):
    @pytest.fixture
    def policy(self) -> Policy:
        return Ideal(responses=TIMES, seconds=("other-depot", "alternative"))


class TestIdealByThePriceOfAUnit(PolicyContract):
    @pytest.fixture
    def policy(self, grid: RoadNetwork) -> Policy:
        return Ideal(seconds=("other-depot", "alternative"), threshold=fleet_threshold(grid))


class TestIntervalByThePriceOfAUnit(PolicyContract):
    @pytest.fixture
    def policy(self, grid: RoadNetwork) -> Policy:
        return IntervalPolicy(threshold=fleet_threshold(grid))

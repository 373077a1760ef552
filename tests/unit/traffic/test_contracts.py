"""Worlds of our own keep the contract of every traffic source."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.traffic.recording import counted_by
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.synthetic import SyntheticParams, synthetic_traffic
from tests.contracts.traffic_source import ReplayedTrafficContract
from tests.unit.traffic.small import CALENDAR, START, recording


class TestReplayedTraffic(ReplayedTrafficContract):
    @pytest.fixture
    def source(self, grid: RoadNetwork) -> ReplayedTraffic:
        return ReplayedTraffic(recording(grid))

    @pytest.fixture
    def at(self) -> datetime:
        return START + timedelta(days=1, minutes=40, seconds=30)


class TestDerivedTruth(TestReplayedTraffic):
    """What met those who entered, from what was seen when they left."""

    @pytest.fixture
    def source(self, grid: RoadNetwork) -> ReplayedTraffic:
        made = recording(grid)
        stretches = tuple(
            replace(one, truth=counted_by("entry", one.codes, grid, made.bin_s))
            for one in made.stretches
        )
        return ReplayedTraffic(replace(made, stretches=stretches))


class TestSyntheticTraffic(ReplayedTrafficContract):
    """A world with a truth of its own."""

    @pytest.fixture
    def source(self, grid: RoadNetwork) -> ReplayedTraffic:
        params = SyntheticParams(days=2, hours=((7, 9),))
        return ReplayedTraffic(synthetic_traffic(grid, CALENDAR, params))

    @pytest.fixture
    def at(self) -> datetime:
        return datetime.fromisoformat("2023-05-09T07:40:30+08:00")

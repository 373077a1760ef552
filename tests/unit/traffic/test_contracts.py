"""Worlds of our own keep the contract of every traffic source."""

from datetime import datetime, timedelta

import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.traffic.recorded import RecordedWorld
from tests.contracts.traffic_source import TrafficWorldContract
from tests.unit.traffic.small import START, recording


class TestRecordedWorld(TrafficWorldContract):
    @pytest.fixture
    def source(self, grid: RoadNetwork) -> RecordedWorld:
        return RecordedWorld(recording(grid))

    @pytest.fixture
    def at(self) -> datetime:
        return START + timedelta(days=1, minutes=40, seconds=30)

"""A router of somebody else in recorded traffic: its quotes are checked, the truth is recorded."""

import pickle
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.traffic.recorded import RecordedWorld
from ideal_dispatch.traffic.routed_world import RoutedWorld
from ideal_dispatch.traffic.source import RouteQuote
from tests.unit.traffic.small import recording


@dataclass(frozen=True, eq=False)
class Doubled:
    """Says twice as much as another router."""

    other: RecordedWorld
    fault: Any = None

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        if isinstance(self.fault, Exception):
            raise self.fault
        said = self.other.quote(origin if self.fault != "start" else origin + 1, destination, at)
        return None if self.fault == "none" else replace(said, duration_s=2 * said.duration_s)  # type: ignore[return-value]


@pytest.fixture(scope="module")
def recorded(grid: RoadNetwork) -> RecordedWorld:
    return RecordedWorld(recording(grid))


def test_quotes_are_the_sources_and_the_truth_is_recorded(recorded: RecordedWorld) -> None:
    world, at = RoutedWorld(recorded, Doubled(recorded)), recorded.recording.starts[0]
    assert world.quote(0, 30, at).duration_s == 2 * recorded.quote(0, 30, at).duration_s
    assert world.realised(7, at) == recorded.realised(7, at)
    assert (world.realised_times(at) == recorded.realised_times(at)).all()
    assert not hasattr(world, "router_times")
    again = pickle.loads(pickle.dumps(world))
    assert again.quote(0, 30, at).duration_s == world.quote(0, 30, at).duration_s
    assert hasattr(RoutedWorld(recorded, recorded), "router_times")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("none", r"traffic source Doubled: quote\(\) gives None; a RouteQuote is needed"),
        ("start", "traffic source Doubled: asked from 0 to 30, it gives"),
        (KeyError("x"), "traffic source Doubled: KeyError: 'x'"),
        (InputError("no traffic today"), "no traffic today"),
    ],
)
def test_what_nobody_could_drive(recorded: RecordedWorld, fault: Any, message: str) -> None:
    world = RoutedWorld(recorded, Doubled(recorded, fault))
    with pytest.raises(InputError, match=message):
        world.quote(0, 30, recorded.recording.starts[0])

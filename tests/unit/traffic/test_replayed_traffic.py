"""A router of somebody else in recorded traffic: its answers are checked, the truth is recorded."""

import pickle
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError, PluginError
from ideal_dispatch.network import Path
from ideal_dispatch.traffic.recorded_router import RecordedRouter
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.source import RouteQuote
from tests.unit.traffic.small import recording


@dataclass(frozen=True, eq=False)
class Doubled:
    """Says twice as much as another router."""

    other: RecordedRouter
    fault: Any = None

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        if isinstance(self.fault, Exception):
            raise self.fault
        said = self.other.quote(origin if self.fault != "start" else origin + 1, destination, at)
        return None if self.fault == "none" else replace(said, duration_s=2 * said.duration_s)  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Says:
    """Gives what it was made with, right or wrong."""

    other: RecordedRouter
    answer: Any

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        return replace(self.other.quote(origin, destination, at), duration_s=self.answer)

    def router_times(self, at: datetime) -> Any:
        return self.answer

    def alternative(self, avoid: Path, at: datetime) -> Any:
        return self.answer

    def way_on(self, node: int, destination: int, at: datetime) -> Any:
        return self.answer


@pytest.fixture(scope="module")
def recorded(grid: RoadNetwork) -> RecordedRouter:
    return RecordedRouter(recording(grid))


def test_quotes_are_the_sources_and_the_truth_is_recorded(recorded: RecordedRouter) -> None:
    made, at = recorded.recording, recorded.recording.starts[0]
    traffic, own = ReplayedTraffic(made, source=Doubled(recorded)), ReplayedTraffic(made)
    assert traffic.quote(0, 30, at).duration_s == 2 * recorded.quote(0, 30, at).duration_s
    assert traffic.realised(7, at) == own.realised(7, at)
    assert (traffic.realised_times(at) == own.realised_times(at)).all()
    assert not hasattr(traffic, "router_times")
    again = pickle.loads(pickle.dumps(traffic))
    assert again.quote(0, 30, at).duration_s == traffic.quote(0, 30, at).duration_s
    wrapped = ReplayedTraffic(made, source=recorded)
    assert (wrapped.router_times(at) == recorded.router_times(at)).all()
    path = recorded.quote(0, 30, at).path
    assert wrapped.alternative(path, at) == recorded.alternative(path, at)
    assert wrapped.way_on(0, 30, at) == recorded.way_on(0, 30, at)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("none", "cannot be used: None; a RouteQuote is needed"),
        ("start", "cannot be used: asked from 0 to 30, it gives"),
        (KeyError("x"), r"^traffic source Doubled: KeyError: 'x' \(test_replayed_traffic.py, line"),
    ],
)
def test_a_bug_of_the_source_is_named(recorded: RecordedRouter, fault: Any, message: str) -> None:
    traffic = ReplayedTraffic(recorded.recording, source=Doubled(recorded, fault))
    with pytest.raises(PluginError, match=message):
        traffic.quote(0, 30, recorded.recording.starts[0])


def test_no_answer_is_no_bug(recorded: RecordedRouter) -> None:
    source = Doubled(recorded, InputError("no traffic today"))
    traffic = ReplayedTraffic(recorded.recording, source=source)
    with pytest.raises(InputError, match="^no traffic today$"):
        traffic.quote(0, 30, recorded.recording.starts[0])


@pytest.mark.parametrize("answer", [[[1, 2]], np.ones((1, 2)), "soon", None, [np.nan]])
def test_answers_of_another_type_are_one_line(recorded: RecordedRouter, answer: Any) -> None:
    traffic = ReplayedTraffic(recorded.recording, source=Says(recorded, answer))
    at = recorded.recording.starts[0]
    path = recorded.quote(0, 30, at).path
    for ask in (lambda: traffic.quote(0, 30, at), lambda: traffic.router_times(at)):
        with pytest.raises((PluginError, InputError), match="^(traffic source Says|quote): .*"):
            ask()
    if answer is None:
        assert traffic.alternative(path, at) is None
    else:
        with pytest.raises(PluginError, match="traffic source Says: alternative.. gives what"):
            traffic.alternative(path, at)


@pytest.mark.parametrize(
    "answer", [None, (7,), (0.5, 1.0, 2.0), (-1, 1.0, 2.0), (5, 1.0, 2.0), (0, 1, np.nan)]
)
def test_a_way_on_that_nobody_can_drive(recorded: RecordedRouter, answer: Any) -> None:
    traffic = ReplayedTraffic(recorded.recording, source=Says(recorded, answer))
    with pytest.raises(PluginError, match="traffic source Says: way_on.. gives what cannot be"):
        traffic.way_on(0, 30, recorded.recording.starts[0])

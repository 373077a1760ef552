"""A hand-made town, tiny policies and small replays that the replay tests share."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path as FilePath

import numpy as np

from ideal_dispatch import RoadNetwork
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch import Assignment, Decision, Incident, Situation
from ideal_dispatch.network import Depot
from ideal_dispatch.replay import Replay, run_replay, sample_incidents
from ideal_dispatch.replay.run import Report
from ideal_dispatch.traffic.recorded_router import RouterParams
from ideal_dispatch.traffic.recording import RecordedTraffic, Stretch, encode
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.source import RouteQuote
from tests.unit.traffic.small import CALENDAR, START, recording

CALL = START + timedelta(days=1, minutes=40, seconds=30)


def diamond() -> RoadNetwork:
    """0 → 1 → 3 by edges 0 and 1, 0 → 2 → 3 by edges 2 and 3, 1 → 2 by edge 4, 3 → 0 by edge 5."""
    return RoadNetwork.from_arrays([0, 1, 0, 2, 1, 3], [1, 3, 2, 3, 2, 0], np.full(6, 100.0))


class ScriptedSource:
    """A router whose edge times change at given seconds after ``START``; it only quotes."""

    def __init__(self, network: RoadNetwork, script: dict[float, list[float]]) -> None:
        self.network, self.script = network, script
        self.asked: list[tuple[int, int, float]] = []

    def times(self, at: datetime) -> FloatArray:
        now = (at - START).total_seconds()
        return np.array([times for since, times in self.script.items() if since <= now][-1])

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        self.asked.append((origin, destination, (at - START).total_seconds()))
        times = self.times(at)
        path = self.network.shortest_path(times, origin, destination)
        first = float(times[path.edges[0]]) if len(path) else 0.0
        return RouteQuote(path, path.time_s(times), first, np.nan, np.nan, at, 0.0)


class ScriptedWorld(ScriptedSource):
    """The same with a truth of its own, edge times told."""

    def __init__(
        self, network: RoadNetwork, script: dict[float, list[float]], truth: list[float]
    ) -> None:
        super().__init__(network, script)
        self.truth = truth

    def router_times(self, at: datetime) -> FloatArray:
        return self.times(at)

    def realised(self, edge: int, at: datetime) -> float:
        return self.truth[edge]


class OnlyQuotes:
    """A recorded world that has to be asked for every junction anew."""

    def __init__(self, world: ReplayedTraffic) -> None:
        self.world = world

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        return self.world.quote(origin, destination, at)

    def realised(self, edge: int, at: datetime) -> float:
        return self.world.realised(edge, at)

    def router_times(self, at: datetime) -> FloatArray:
        return self.world.router_times(at)


def recorded(
    network: RoadNetwork, times_s: FloatArray, bin_s: int = 60, params: RouterParams | None = None
) -> ReplayedTraffic:
    """A world of one stretch with these times per bin, nothing pooled unless told."""
    stretch = Stretch(START, encode(times_s, network), np.zeros((1, 5)))
    made = RecordedTraffic(network, CALENDAR, bin_s, (stretch,), {"engine": "test"})
    return ReplayedTraffic(made, params or RouterParams(bin_s, 0.001, 600.0, bin_s))


@dataclass(frozen=True)
class Chancy:
    """The fastest first; the other depot's second keeps to some edges, by a random score."""

    name: str = "chancy"
    follow: int = 3

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        first = situation.fastest
        others = situation.others(first)
        second = None
        if others:
            station = situation.stations[others[0]]
            told = station.alternative or situation.quote(others[0])
            second = Assignment(others[0], told.path, self.follow)
        primary = Assignment(first, situation.quote(first).path)
        return Decision(self.name, primary, second, rng.random(), 0.5, "by chance")


def depots(network: RoadNetwork) -> list[Depot]:
    return [Depot("Low", 0), Depot("High", network.num_nodes - 1)]


def small_replay(
    network: RoadNetwork, folder: FilePath, per_day: int = 24, workers: int = 1,
    report: Report | None = None,
) -> FilePath:  # fmt: skip
    """Three days, three chunks of incidents."""
    made = recording(network)
    calls = sample_incidents(made, np.ones(network.num_nodes), per_day, seed=5)
    region = np.arange(network.num_nodes, dtype=np.int32) % 2
    replay = Replay(ReplayedTraffic(made), depots(network), [Chancy()], region=region, seed=3)
    return run_replay(replay, calls, folder, workers=workers, report=report)


def call(at: datetime = CALL) -> Incident:
    return Incident("one", 65, at)

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch import Assignment, Decision, Incident, Policy, Situation
from ideal_dispatch.dispatch.policies import RegionPolicy, RouterPolicy
from ideal_dispatch.errors import IdealError, PolicyError
from ideal_dispatch.evaluation.call_maps import words
from ideal_dispatch.network import Depot
from ideal_dispatch.replay import Replay, World, drive
from ideal_dispatch.replay.log import drive_key, line_text
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from tests.unit.replay.small import CALL, Chancy, call, depots, recorded
from tests.unit.traffic.small import START, recording


def simulated(
    world: ReplayedTraffic,
    incident: Incident,
    places: Sequence[Depot],
    policies: Sequence[Policy],
    units: Sequence[int] | None = None,
    region: int | None = None,
    seed: int = 0,
    how: World = World.EXPERIENCED,
) -> dict[str, Any]:
    here = None if region is None else np.full(world.network.num_nodes, region, np.int32)
    return Replay(world, places, policies, units, here, seed, how).entry(incident)


def _entry(
    network: RoadNetwork, *policies: Policy, world: ReplayedTraffic | None = None, **options: Any
) -> dict[str, Any]:
    world = world or ReplayedTraffic(recording(network))
    told = simulated(world, call(), depots(network), policies or (Chancy(),), **options)
    entry: dict[str, Any] = json.loads(line_text(told))
    return entry


@pytest.mark.parametrize("how", World)
def test_every_candidate_drives_in_the_same_world(grid: RoadNetwork, how: World) -> None:
    world = ReplayedTraffic(recording(grid))
    entry = _entry(grid, Chancy(), Chancy("long", follow=99), Chancy("free", follow=0), how=how)
    assert {"s0", "s1"} < set(entry["drives"])
    assert len(entry["drives"]) == 4, "both stations, two prefixes"
    for key, told in entry["drives"].items():
        path = grid.path(told["path"])
        assignment = Assignment(told["station"], path, told["follow"])
        assert drive_key(assignment) == key
        again = drive(world, grid, assignment, call().node, CALL, how)
        assert told[how]["edges"] == again.edges.tolist()
        assert told[how]["seconds"] == pytest.approx(again.seconds, abs=0.0005)
        assert told[how]["expected_s"] == pytest.approx(again.expected_s, abs=0.0005)
    for decision in entry["decisions"].values():
        assert decision["primary"] in entry["drives"]
        assert decision["second"] in entry["drives"]


@pytest.mark.parametrize("how", World)
def test_hindsight_is_never_later_than_a_drive(grid: RoadNetwork, how: World) -> None:
    world = ReplayedTraffic(recording(grid))
    for node in range(5, 115, 11):
        calls = Incident(f"to {node}", node, CALL)
        told = simulated(world, calls, depots(grid), (Chancy(), Chancy("q", 99)), how=how)
        best = sum(told["hindsight"][how]["seconds"])
        arrivals = [sum(one[how]["seconds"]) for one in told["drives"].values()]
        assert best <= min(arrivals) + 0.01  # rounding, half a millisecond an edge


def test_where_streets_are_not_fifo_the_best_drive_is_the_hindsight() -> None:
    town = RoadNetwork.from_arrays([0, 0, 1], [1, 1, 2], [500, 610, 100])
    times = np.tile([50.0, 61.0, 100.0], (10, 1))
    times[1:, 2] = 10.0
    world = recorded(town, times)
    slow = Assignment(0, town.path([1, 2]), 2)
    incident = Incident("a", 2, START)

    def answer(situation: Situation, rng: np.random.Generator) -> Decision:
        return Decision("told", slow, None, 0.0, 0.0, "knows the street")

    told = simulated(world, incident, [Depot("D", 0)], [Told(answer)])
    assert told["drives"]["s0"][World.EXPERIENCED]["edges"] == [0, 2]
    assert told["hindsight"][World.EXPERIENCED]["edges"] == [1, 2]


def test_the_line_is_as_agreed(grid: RoadNetwork) -> None:
    entry = _entry(grid, units=[1, 2], region=1)
    assert list(entry) == ["incident", "region", "stations", "decisions", "drives", "hindsight"]
    assert entry["incident"] == {
        "name": "one", "node": 65, "at": "2023-05-09T22:40:30+00:00", "day": "2023-05-10",
    }  # fmt: skip
    assert entry["region"] == 1
    assert list(entry["stations"][0]) == ["depot", "node", "units", "quote", "alternative"]
    quote = entry["stations"][1]["quote"]
    assert list(quote) == ["duration_s", "optimistic_s", "pessimistic_s", "edges"]
    decision = entry["decisions"]["chancy"]
    assert list(decision) == ["primary", "second", "score_s", "threshold_s", "reason", "details"]
    for driven in entry["drives"].values():
        assert list(driven) == ["station", "path", "follow", "experienced"]
        assert list(driven["experienced"]) == ["edges", "seconds", "expected_s"]
    assert list(entry["hindsight"]) == ["experienced"]
    assert list(entry["hindsight"]["experienced"]) == ["station", "edges", "seconds"]


def test_another_policy_or_incident_changes_no_draw(grid: RoadNetwork) -> None:
    alone = _entry(grid, Chancy("b"))
    beside = _entry(grid, Chancy("a"), Chancy("b"))
    assert beside["decisions"]["b"] == alone["decisions"]["b"]
    assert beside["decisions"]["a"]["score_s"] != beside["decisions"]["b"]["score_s"]


def test_a_station_without_units_takes_no_part(grid: RoadNetwork) -> None:
    entry = _entry(grid, units=[0, 1])
    assert list(entry["drives"]) == ["s1"]
    assert entry["stations"][0]["quote"] is None
    assert entry["decisions"]["chancy"]["second"] is None
    assert entry["hindsight"]["experienced"]["station"] == 1


def test_a_unit_on_the_road_is_an_origin_for_every_policy(grid: RoadNetwork) -> None:
    world, plain = ReplayedTraffic(recording(grid)), _entry(grid, RouterPolicy())
    near = int(grid.tail[np.flatnonzero(grid.head == call().node)[0]])
    road = replace(call(), on_road=(Depot("A7", near, True, "medic"),))
    policies = RouterPolicy(), RegionPolicy(), Chancy()
    entry = simulated(world, road, depots(grid), policies, region=1)
    assert entry["stations"][:2] == plain["stations"]
    unit = entry["stations"][2]
    assert (unit["depot"], unit["on_road"], unit["kind"]) == ("A7", True, "medic")
    assert unit["units"] == 1
    assert entry["decisions"]["router"]["primary"] == "s2"
    assert entry["decisions"]["region"]["primary"] == "s1", "territories are of depots"
    assert entry["drives"]["s0"] == plain["drives"]["s0"], "the depots drive as before"
    assert entry["hindsight"]["experienced"]["station"] == 2
    assert "from A7, on the road: promised" in words(entry, "router", World.EXPERIENCED)


def test_no_policy_sees_the_future(grid: RoadNetwork) -> None:
    made = recording(grid)
    stretch, present = made.find(CALL)
    poisoned = []
    for number, one in enumerate(made.stretches):
        codes = one.codes.copy()
        known = len(codes) if number < stretch else present if number == stretch else 0
        codes[known:] = 111  # five times free flow
        poisoned.append(replace(one, codes=codes, truth=codes))
    other = ReplayedTraffic(replace(made, stretches=tuple(poisoned)))
    seen: list[tuple[Any, ...]] = []

    def look(situation: Situation, rng: np.random.Generator) -> Decision:
        times = situation.router_times_s
        assert times is not None
        seen.append((repr(situation.stations), repr(situation.context), times.tobytes()))
        return Decision(
            "told", Assignment(0, situation.quote(0).path), None, rng.random(), 0, str(times.sum())
        )

    clean = _entry(grid, Told(look), Chancy())
    poison = _entry(grid, Told(look), Chancy(), world=other)
    assert seen[0] == seen[1]
    for part in ("incident", "stations", "decisions"):
        assert poison[part] == clean[part]
    for key, driven in poison["drives"].items():
        slow, usual = (one["experienced"]["seconds"] for one in (driven, clean["drives"][key]))
        assert sum(slow) > 1.5 * sum(usual)


def test_an_incident_at_a_depot(grid: RoadNetwork) -> None:
    world = ReplayedTraffic(recording(grid))
    told = simulated(world, Incident("here", 0, CALL), depots(grid), [Chancy()])
    assert told["drives"]["s0"][World.EXPERIENCED]["edges"] == []
    assert told["hindsight"][World.EXPERIENCED] == {"station": 0, "edges": [], "seconds": []}
    assert told["stations"][0]["quote"]["duration_s"] == 0.0


# --- policies that break the contract -------------------------------------------------


@dataclass(frozen=True)
class Told:
    """A policy that answers what it is told to."""

    answer: Any
    name: str = "told"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        decision: Decision = self.answer(situation, rng)
        return decision


@pytest.mark.parametrize(
    ("changes", "units", "message"),
    [
        ({"policy": "other"}, (2, 2), "it decided in the name of other"),
        ({"station": 7}, (2, 2), "it sends from station 7, which is not available"),
        ({"station": 1}, (2, 2), r"does not lead from depot High \(node 119\) to the incident"),
        ({"twice": True}, (1, 2), r"two ambulances from depot Low \(node 0\), where 1 is free"),
    ],
)
def test_decisions_that_nobody_can_drive(
    grid: RoadNetwork, changes: dict[str, Any], units: tuple[int, int], message: str
) -> None:
    def answer(situation: Situation, rng: np.random.Generator) -> Decision:
        primary = Assignment(changes.get("station", 0), situation.quote(0).path)
        second = primary if changes.get("twice") else None
        return Decision(changes.get("policy", "told"), primary, second, 0.0, 0.0, "")

    with pytest.raises(PolicyError, match=f"policy told, incident one: .*{message}"):
        _entry(grid, Told(answer), units=units)


def test_a_fault_of_a_policy_has_its_line(grid: RoadNetwork) -> None:
    def answer(situation: Situation, rng: np.random.Generator) -> Decision:
        raise KeyError("oops")

    line = answer.__code__.co_firstlineno + 1
    with pytest.raises(PolicyError, match=rf"KeyError: 'oops' \(test_simulation.py, line {line}\)"):
        _entry(grid, Told(answer))


def test_a_second_from_the_same_depot_needs_two_units(grid: RoadNetwork) -> None:
    def answer(situation: Situation, rng: np.random.Generator) -> Decision:
        station = situation.stations[0]
        assert station.alternative is not None
        first, other = Assignment(0, situation.quote(0).path), station.alternative.path
        return Decision("told", first, Assignment(0, other, len(other)), 1.0, -math.inf, "")

    entry = _entry(grid, Told(answer), units=(2, 0))
    decision = entry["decisions"]["told"]
    assert decision["second"].startswith("s0+")
    assert decision["threshold_s"] is None, "always"
    assert (
        entry["drives"][decision["second"]]["experienced"]["edges"]
        == (entry["stations"][0]["alternative"]["edges"])
    )


def test_a_call_near_the_end_says_so(grid: RoadNetwork) -> None:
    late = Incident("late", 65, START + timedelta(minutes=119, seconds=55))
    with pytest.raises(IdealError, match="is not in the recording"):
        simulated(ReplayedTraffic(recording(grid)), late, depots(grid), [Chancy()])

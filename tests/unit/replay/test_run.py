import json
import math
import shutil
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.dispatch import Decision, Incident, Situation
from ideal_dispatch.errors import (
    InputError,
    PluginError,
    PolicyError,
    UnreachableError,
)
from ideal_dispatch.experiment.engine import read_manifest
from ideal_dispatch.network import Depot
from ideal_dispatch.replay import Replay, World, read_log, run_replay
from ideal_dispatch.replay.log import LOG
from ideal_dispatch.replay.run import INCIDENTS_PER_CHUNK, KIND
from ideal_dispatch.traffic.recorded_router import RecordedRouter
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.source import RouteQuote
from tests.unit.experiment.test_engine import contents
from tests.unit.replay.small import CALL, Chancy, depots, small_replay
from tests.unit.traffic.small import START, recording


@pytest.fixture(scope="module")
def whole(grid: RoadNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run by one worker."""
    return small_replay(grid, tmp_path_factory.mktemp("whole") / "run")


def test_a_run_is_a_manifest_and_a_log(grid: RoadNetwork, whole: Path) -> None:
    assert list(contents(whole)) == ["incidents.jsonl", "manifest.json"]
    manifest = json.loads((whole / "manifest.json").read_bytes())
    made = recording(grid)
    assert manifest["network"] == grid.checksum
    assert manifest["recording"] == made.checksum
    assert manifest["router"]["window_s"] == 300.0
    assert manifest["policies"] == {"chancy": {"type": "Chancy", "name": "chancy", "follow": 3}}
    assert manifest["depots"][1] == {"name": "High", "node": 119, "units": 2}
    assert manifest["incidents"]["count"] == manifest["replayed"] == 72 > 2 * INCIDENTS_PER_CHUNK
    assert (manifest["seed"], manifest["dropped"]) == (3, [])
    entries = list(read_log(whole / "incidents.jsonl"))
    assert len({entry["incident"]["name"] for entry in entries}) == 72
    assert all(entry["region"] == entry["incident"]["node"] % 2 for entry in entries)


def test_two_workers_write_the_same_bytes(grid: RoadNetwork, whole: Path, tmp_path: Path) -> None:
    assert contents(small_replay(grid, tmp_path / "two", workers=2)) == contents(whole)


# --- interruptions --------------------------------------------------------------------


def test_an_interrupted_run_goes_on_to_the_same_bytes(
    grid: RoadNetwork, whole: Path, tmp_path: Path
) -> None:
    def interrupt(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        small_replay(grid, tmp_path / "run", report=interrupt)
    assert len(list((tmp_path / "run" / "chunks").iterdir())) == 1
    assert not (tmp_path / "run" / LOG).exists()
    assert contents(small_replay(grid, tmp_path / "run", workers=2)) == contents(whole)


def test_a_run_killed_in_its_last_steps(grid: RoadNetwork, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    del manifest["replayed"], manifest["dropped"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "chunks").mkdir()
    (folder / "chunks" / ".0123456789abcdef.part").write_bytes(b"half")
    (folder / ".0123456789abcdef.part").write_bytes(b"half")
    assert contents(small_replay(grid, folder)) == contents(whole)


def test_a_finished_run_is_not_repeated(grid: RoadNetwork, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    (folder / "incidents.jsonl").write_text("left alone")
    small_replay(grid, folder)
    assert (folder / "incidents.jsonl").read_text() == "left alone"


def test_progress_is_told(grid: RoadNetwork, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    calls = [Incident(f"{i:02d}", i, CALL) for i in range(40)]
    _replay(grid, calls, tmp_path / "run", report=lambda *now: told.append(now))
    assert told == [(32, 40), (40, 40)]


# --- what is left out, and what is refused --------------------------------------------


def _replay(town: RoadNetwork, calls: list[Incident], folder: Path, **options: Any) -> Path:
    how = {name: options.pop(name) for name in ("workers", "report") if name in options}
    given: dict[str, Any] = {"depots": depots(town), "policies": [Chancy()]}
    given["traffic"] = ReplayedTraffic(recording(town))
    return run_replay(Replay(**(given | options)), calls, folder, **how)


class Broken:
    """A router with a bug that shows on the way, and an attribute that no process can be sent."""

    def __init__(self, router: RecordedRouter) -> None:
        self.router, self.lock = router, Lock()

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        if at > CALL:
            raise ZeroDivisionError("too late")
        return self.router.quote(origin, destination, at)


def test_a_bug_of_a_traffic_source_ends_the_replay(grid: RoadNetwork, tmp_path: Path) -> None:
    made = recording(grid)
    broken = ReplayedTraffic(made, source=Broken(RecordedRouter(made)))
    message = r"^traffic source Broken: ZeroDivisionError: too late \(test_run.py, line \d+\)$"
    with pytest.raises(PluginError, match=message):
        _replay(grid, [Incident("a", 37, CALL)], tmp_path / "run", traffic=broken)


def test_a_source_that_no_worker_can_be_sent_is_one_line(grid: RoadNetwork, tmp_path: Path) -> None:
    made = recording(grid)
    local = ReplayedTraffic(made, source=Broken(RecordedRouter(made)))
    calls = [Incident(f"{i:02d}", i, CALL) for i in range(40)]
    with pytest.raises(InputError, match="^traffic source Broken cannot be sent to other process"):
        _replay(grid, calls, tmp_path / "run", traffic=local, workers=2)


def test_trips_that_leave_the_recorded_time_are_counted(grid: RoadNetwork, tmp_path: Path) -> None:
    late = START + timedelta(minutes=119, seconds=50)
    calls = [Incident("early", 60, START), Incident("late", 60, late), Incident("day 2", 60, CALL)]
    run = _replay(grid, calls, tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_bytes())
    assert manifest["replayed"] == 2
    assert [one["name"] for one in manifest["dropped"]] == ["late"]
    assert "is not in the recording" in manifest["dropped"][0]["reason"]
    logged = [entry["incident"]["name"] for entry in read_log(run / "incidents.jsonl")]
    assert logged == ["early", "day 2"]


def test_a_policy_that_cannot_answer_leaves_the_call_out_for_all(
    grid: RoadNetwork, tmp_path: Path
) -> None:
    class Choosy(Chancy):
        def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
            if situation.incident.node == 7:
                raise UnreachableError("not to node 7")
            return super().decide(situation, rng)

    calls = [Incident("a", 6, CALL), Incident("b", 7, CALL)]
    run = _replay(grid, calls, tmp_path / "run", policies=[Chancy(), Choosy("choosy")])
    manifest = json.loads((run / "manifest.json").read_bytes())
    assert manifest["dropped"] == [{"name": "b", "reason": "not to node 7"}]
    for _ in range(2):  # also where the finished run is found again
        with pytest.raises(InputError, match="none of 1 incidents .* the first: not to node 7"):
            _replay(grid, calls[1:], tmp_path / "none", policies=[Choosy()])


def test_a_policy_that_breaks_its_contract_ends_the_run(grid: RoadNetwork, tmp_path: Path) -> None:
    class Liar(Chancy):
        def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
            decision = super().decide(situation, rng)
            return Decision("somebody", decision.primary, None, 0.0, 0.0, "")

    with pytest.raises(PolicyError, match="policy chancy, incident a: it decided in the name of"):
        _replay(grid, [Incident("a", 6, CALL)], tmp_path / "run", policies=[Liar()])


@pytest.mark.parametrize("score", [math.nan, "much", None])
def test_a_policy_that_fails_at_one_call_ends_the_run(
    grid: RoadNetwork, tmp_path: Path, score: Any
) -> None:
    class Faulty(Chancy):
        def decide(self, situation: Situation, rng: np.random.Generator) -> Any:
            made = super().decide(situation, rng)
            return (
                made if situation.incident.name == "a" else score and replace(made, score_s=score)
            )

    calls = [Incident("a", 6, CALL), Incident("b", 7, CALL)]
    with pytest.raises(
        PolicyError, match=r"^policy faulty, incident b: .* \(test_run.py, line \d+\)$"
    ):
        _replay(grid, calls, tmp_path / "run", policies=[Chancy(), Faulty("faulty")])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depots": []}, "at least one depot"),
        ({"policies": []}, "at least one depot"),
        ({"policies": [Chancy(), Chancy(follow=1)]}, "policy chancy is there twice"),
        ({"depots": [Depot("A", 1), Depot("A", 2)]}, "depot A is there twice"),
        ({"depots": [Depot("A", 120)]}, r"depot A \(node 120\) is not on the network \(0 … 119\)"),
        ({"units": [1]}, "units"),
        ({"units": [0, 0]}, "and one above zero"),
        ({"units": [-1, 3]}, "one number of zero or more"),
        ({"region": np.zeros(3)}, "region: expected 120 values, got 3"),
        ({"region": np.full(120, 2)}, "region: every node needs one of 2 numbers from 0"),
        ({"seed": -1}, "seed -1: zero or more is needed"),
        ({"workers": 0}, "workers 0"),
        ({"world": "B"}, "world 'B'"),
        ({"units": []}, r"units \[\]: one number of zero or more is needed for each of 2"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_folder(
    grid: RoadNetwork, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        _replay(grid, [Incident("a", 6, CALL)], tmp_path / "run", **options)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_calls_are_checked_before_anything_is_written(grid: RoadNetwork, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="incident a: 500 is not a node"):
        _replay(grid, [Incident("a", 500, CALL)], tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "differs"),
    [({"seed": 4}, "seed"), ({"policies": [Chancy(follow=1)]}, "policies"),
     ({"units": [1, 2]}, "depots"), ({"world": World.INSTANTANEOUS}, "world"),
     ({"region": np.zeros(120, np.int32)}, "region")],
)  # fmt: skip
def test_the_folder_of_another_run(
    grid: RoadNetwork, tmp_path: Path, options: dict[str, Any], differs: str
) -> None:
    calls = [Incident("a", 6, CALL)]
    _replay(grid, calls, tmp_path / "run")
    with pytest.raises(InputError, match=rf"holds another replay \(not the same {differs}\)"):
        _replay(grid, calls, tmp_path / "run", **options)
    with pytest.raises(InputError, match="not the same incidents"):
        _replay(grid, [Incident("a", 7, CALL)], tmp_path / "run")


def test_units_as_people_give_them(grid: RoadNetwork) -> None:
    traffic = ReplayedTraffic(recording(grid))
    made = Replay(traffic, depots(grid), [Chancy()], np.array([1, 3]))  # type: ignore[arg-type]
    assert (made.units, made.world) == ((1, 3), World.EXPERIENCED)
    assert Replay(traffic, depots(grid), [Chancy()]).units == (2, 2)


def test_the_log_says_its_world(grid: RoadNetwork, tmp_path: Path) -> None:
    calls = [Incident("a", 6, CALL)]
    for world in World:
        run = _replay(grid, calls, tmp_path / world, world=world)
        (entry,) = read_log(run / LOG)
        assert list(entry["hindsight"]) == [world]
        assert all(world in driven for driven in entry["drives"].values())
        assert read_manifest(run, KIND)["world"] == world

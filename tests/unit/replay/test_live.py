"""Live drives against stand-ins of the routers, by a clock that waits for nobody."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.cli.replay import replay
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.replay_report import caveats
from ideal_dispatch.experiment.engine import read_manifest
from ideal_dispatch.network import Depot
from ideal_dispatch.outside_service import RequestBudget
from ideal_dispatch.replay import Replay, run_live, run_replay
from ideal_dispatch.replay.experiment import Experiment
from ideal_dispatch.replay.live import LiveClock, LiveSummary
from ideal_dispatch.replay.log import LOG, read_log
from ideal_dispatch.replay.run import KIND
from ideal_dispatch.replay.study import run_experiment
from ideal_dispatch.traffic.replayed_traffic import PresentTraffic
from ideal_dispatch.traffic.source import RouteQuote
from tests.conftest import ROOT
from tests.stand_in import Answer, serve
from tests.unit.dispatch.worlds import TIMES, random_model
from tests.unit.replay.small import Chancy, ScriptedSource
from tests.unit.traffic import google_stand_in, valhalla_stand_in
from tests.unit.traffic.small import CALENDAR
from tests.unit.traffic.valhalla_stand_in import ValhallaTown

NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)
SOURCE = "tests.unit.replay.test_live:Scripted"
TEXT = """
name = "live town"
seed = 5
[city]
network = "town.network"
depots = "depots.csv"
[calls]
contested = 3.0
[live]
{router}
calls = 6
every_s = 60
time_zone = "Asia/Hong_Kong"
country = "HK"
[policies.router-dual]
kind = "router-dual"
[policies.interval]
kind = "interval"
[policies.hybrid]
kind = "tests.unit.replay.small:Chancy"
"""


@dataclass
class FastClock(LiveClock):
    """Time passes when nobody is left to be waited for."""

    time: datetime = NOW
    waited: list[datetime] = field(default_factory=list)
    at_wait: Callable[["FastClock"], None] = lambda clock: None

    def now(self) -> datetime:
        return self.time

    def wait(self, answers: Collection[Future[Any]], until: datetime | None) -> None:
        if answers:
            wait(answers)
            return
        assert until is not None
        self.time = max(self.time, until)
        self.waited.append(self.time)
        self.at_wait(self)


@pytest.fixture
def grid(grid: RoadNetwork) -> RoadNetwork:
    """Streets about as long as they are drawn, so that every route of a router fits them."""
    return replace(grid, length_m=np.minimum(grid.length_m, 125.0))


@pytest.fixture
def place(grid: RoadNetwork, tmp_path: Path) -> Path:
    grid.save(tmp_path / "town.network")
    rows = [f"{name},{grid.lon[node]},{grid.lat[node]}" for name, node in (("W", 0), ("E", 119))]
    (tmp_path / "depots.csv").write_text("\n".join(["name,lon,lat", *rows]))
    (tmp_path / "key.txt").write_text(google_stand_in.KEY + "\n")
    return tmp_path


def town(network: RoadNetwork) -> ValhallaTown:
    noise = np.random.default_rng(4).uniform(1.0, 3.0, network.num_edges)
    return ValhallaTown(network, network.length_m * 3.6 / 50.0 * noise)


def valhalla(url: str) -> str:
    return f'kind = "valhalla"\nurl = "{url}"'


def experiment(place: Path, router: str, *changes: tuple[str, str]) -> Experiment:
    text = TEXT.format(router=router)
    for before, after in changes:
        assert text.count(before) == 1
        text = text.replace(before, after)
    (place / "live.toml").write_text(text)
    return Experiment.load(place / "live.toml")


def lines(found: LiveSummary) -> list[dict[str, Any]]:
    return list(read_log(found.folder / LOG))


def test_valhalla_is_asked_at_every_junction_when_it_is_reached(
    grid: RoadNetwork, place: Path
) -> None:
    streets, clock = town(grid), FastClock()
    with serve(streets.answer) as server:
        found = run_live(experiment(place, valhalla(server.url)), place / "run", 9000, clock=clock)
    entries = lines(found)
    assert (found.driven, found.undriven, found.dropped, found.stopped) == (6, 0, [], "")
    assert found.requests == len(server.asked) == (place / "run/requests.count").stat().st_size
    moments = [datetime.fromisoformat(entry["incident"]["at"]) for entry in entries]
    assert moments == [NOW + timedelta(minutes=number) for number in range(6)]
    expected = 0
    ends = []
    for entry in entries:
        at = datetime.fromisoformat(entry["incident"]["at"])
        assert set(entry["drives"]) >= {"s0", "s1"}
        assert any("+" in key for key in entry["drives"])
        for driven in entry["drives"].values():
            way = driven["instantaneous"]
            fixed = driven["follow"]
            np.testing.assert_array_equal(way["edges"][:fixed], driven["path"][:fixed])
            # each junction is one question, each prescribed segment two; the first was known
            rest = len(way["edges"]) - fixed
            last = fixed == len(way["edges"])
            expected += rest + 2 * fixed - last - (fixed == 0)
            ends += [at + timedelta(seconds=s) for s in np.cumsum(way["seconds"])[:-1]]
        quickest = min(sum(one["instantaneous"]["seconds"]) for one in entry["drives"].values())
        assert sum(entry["hindsight"]["instantaneous"]["seconds"]) == pytest.approx(quickest)
        assert set(entry["decisions"]) == {"router-dual", "interval", "hybrid"}
    assert found.requests == expected + 2 * len(entries)  # and a quote of each depot at the call
    # no junction was asked about before it was reached
    waited = np.array([moment.timestamp() for moment in clock.waited])
    reached = np.array([moment.timestamp() for moment in ends])
    assert np.abs(reached[:, None] - waited[None]).min(axis=1).max() < 0.01
    assert clock.time > NOW + timedelta(minutes=5)
    again = run_live(experiment(place, valhalla(server.url)), place / "run", 9000, clock=clock)
    assert (again.driven, again.requests) == (6, found.requests)


def test_the_same_answers_give_the_same_log_and_a_report_reads_it(
    grid: RoadNetwork, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = []
    with serve(town(grid).answer) as server:
        for name in ("one", "two"):
            made = experiment(place, valhalla(server.url))
            found = run_live(made, place / name, 9000, clock=FastClock())
            logs.append((found.folder / LOG).read_bytes())
    assert logs[0] == logs[1]
    outcomes = Outcomes.load(found.folder)
    assert outcomes.title == "live town, live days"
    assert outcomes.world == "instantaneous"
    assert set(outcomes.best_s) == {"paper", "common", "hindsight"}
    assert read_manifest(found.folder, KIND)["live"]["engine"] == "Valhalla"
    assert not (found.folder / "chunks").exists()
    capsys.readouterr()


def test_google_is_asked_for_ranges_at_the_call_alone(grid: RoadNetwork, place: Path) -> None:
    streets, clock = google_stand_in.town(grid), FastClock()
    streets.now = clock.now
    with serve(streets.answer) as server:
        router = f'kind = "google"\nkey_file = "key.txt"\nurl = "{server.url}"'
        found = run_live(experiment(place, router), place / "run", 9000, clock=clock)
    bodies = [json.loads(asked.body) for asked in server.asked]
    models = [body["trafficModel"] for body in bodies]
    assert models.count("PESSIMISTIC") == models.count("OPTIMISTIC") == 2 * found.driven == 12
    assert not any("departureTime" in body for body in bodies)  # always about now
    assert found.requests == len(bodies)
    assert lines(found)[0]["stations"][0]["quote"]["pessimistic_s"] > 0
    written = "".join(file.read_text() for file in (place / "run").rglob("*") if file.is_file())
    assert google_stand_in.KEY not in written


def test_a_call_that_the_router_fails_is_left_out_with_its_reason(
    grid: RoadNetwork, place: Path
) -> None:
    streets, clock = town(grid), FastClock()
    gone = {"from": NOW + timedelta(seconds=90), "until": NOW + timedelta(seconds=150)}

    def answer(asked: Any) -> Answer:
        if gone["from"] <= clock.time < gone["until"]:
            return valhalla_stand_in.error(442)  # the road is closed
        return streets.answer(asked)

    with serve(answer) as server:
        found = run_live(experiment(place, valhalla(server.url)), place / "run", 9000, clock=clock)
    names = [one["name"] for one in found.dropped]
    assert names[:2] == ["live-0001", "live-0002"]
    assert found.driven == 6 - len(names) == len(lines(found)) > 0
    assert found.undriven == 0
    assert "ends at node" in found.dropped[0]["reason"]
    assert "Valhalla finds no way" in found.dropped[0]["reason"]
    assert read_manifest(found.folder, KIND)["dropped"] == list(found.dropped)


def test_the_budget_is_never_exceeded_and_the_rest_is_driven_later(
    grid: RoadNetwork, place: Path
) -> None:
    with serve(town(grid).answer) as server:
        made = experiment(place, valhalla(server.url))
        whole = run_live(made, place / "whole", 9000, clock=FastClock())
        server.asked.clear()
        most = whole.requests * 4 // 5
        clock = FastClock()
        part = run_live(made, place / "run", most, clock=clock)
        assert part.requests == len(server.asked) == most
        assert 0 < part.driven < 6
        assert part.undriven == 6 - part.driven
        assert f"would exceed the budget of {most} requests" in part.stopped
        outcomes = Outcomes.load(part.folder)  # what is driven can be reported
        assert len(outcomes) == part.driven
        told = f"The run is not finished: of 6 calls, {part.driven} are in it."
        assert told in caveats(Judged(outcomes))
        assert read_manifest(part.folder, KIND)["replayed"] is None
        again = run_live(made, place / "run", most, clock=clock)
        assert (again.requests, len(server.asked)) == (most, most)
        rest = run_live(made, place / "run", 9000, clock=clock)
    assert (rest.driven, rest.undriven, rest.stopped) == (6, 0, "")
    assert rest.void > 0
    assert [one["incident"]["name"] for one in lines(rest)] == [
        f"live-{n:04d}" for n in range(1, 7)
    ]
    kept = {line["incident"]["name"]: line for line in lines(whole)}
    assert lines(rest)[0] == kept["live-0001"]


def test_killed_and_taken_up(grid: RoadNetwork, place: Path) -> None:
    script = f"""
import os, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.unit.replay.test_live import *
def die(clock):
    if len(clock.waited) == 120:
        os.kill(os.getpid(), signal.SIGKILL)
run_live(Experiment.load({str(place / "live.toml")!r}), {str(place / "run")!r}, 9000,
         clock=FastClock(at_wait=die))
"""
    with serve(town(grid).answer) as server:
        made = experiment(place, valhalla(server.url))
        died = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True)
        assert died.returncode == -signal.SIGKILL, died.stderr.decode()
        sent = len(server.asked)
        finished = {
            file.name: file.read_bytes() for file in (place / "run").rglob("chunks/*.jsonl")
        }
        assert 0 < len(finished) < 6
        assert (place / "run/requests.count").stat().st_size == sent
        found = run_live(made, place / "run", 9000, clock=FastClock(NOW + timedelta(hours=1)))
    assert found.requests == len(server.asked)
    assert (found.driven, found.undriven) == (6, 0)
    assert 0 < found.void <= 6 - len(finished)
    log = (found.folder / LOG).read_bytes()
    assert all(line in log for line in finished.values())
    days = [datetime.fromisoformat(one["incident"]["at"]) for one in lines(found)]
    assert sum(moment >= NOW + timedelta(hours=1) for moment in days) == 6 - len(finished)


class Scripted(ScriptedSource):
    """A router of one's own: free flow, and a plan that changes after five minutes."""

    def __init__(self, network: RoadNetwork, slower: float = 2.0) -> None:
        usual = network.free_flow_times_s
        super().__init__(network, {})
        self.tables = usual, slower * usual

    def times(self, at: datetime) -> Any:
        return self.tables[at >= NOW + timedelta(minutes=5)]


class Wrong(Scripted):
    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        raise ZeroDivisionError("oops")


def test_a_router_of_ones_own_has_its_questions_counted(place: Path) -> None:
    router = f'kind = "{SOURCE}"\noptions = {{slower = 3.0}}'
    found = run_live(experiment(place, router), place / "run", 9000, clock=FastClock())
    assert found.driven == 6
    junctions = sum(
        len(driven["instantaneous"]["edges"])
        for entry in lines(found)
        for driven in entry["drives"].values()
    )
    assert found.requests >= junctions
    few = run_live(experiment(place, router), place / "few", 20, clock=FastClock())
    assert (few.requests, few.driven) == (20, 0)
    wrong = router.replace("Scripted", "Wrong")
    with pytest.raises(Exception, match="traffic source Wrong: ZeroDivisionError: oops"):
        run_live(experiment(place, wrong), place / "wrong", 9000, clock=FastClock())


def test_policies_decide_by_a_model_that_is_given(grid: RoadNetwork, place: Path) -> None:
    random_model(grid).save(place / "model")
    TIMES.save(place / "times.json")
    parts = ('country = "HK"', 'country = "HK"\nmodel = "model"\nresponses = "times.json"')
    own = ('kind = "interval"', 'kind = "ideal"\nmethod = "multistart"')
    paper = ("[policies.hybrid]", '[policies.paper]\nkind = "paper"\n[policies.hybrid]')
    with serve(town(grid).answer) as server:
        changes = (parts, own, paper, ("calls = 6", "calls = 1"))
        made = experiment(place, valhalla(server.url), *changes)
        found = run_live(made, place / "run", 9000, clock=FastClock())
    assert (found.driven, found.dropped) == (1, [])
    decided = lines(found)[0]["decisions"]
    assert decided["interval"]["details"]["spread_s"] > 0
    assert "gap_status" in decided["paper"]["details"]
    assert (
        read_manifest(found.folder, KIND)["policies"]["interval"]["responses"]["rows"] == TIMES.rows
    )


def test_recorded_places_are_called_now(grid: RoadNetwork, place: Path) -> None:
    (place / "calls.csv").write_text(
        "name,node,at\nb,31,2024-05-01 10:00\na,40,2024-05-01 09:00\nc,999,2024-05-01 09:00\n"
    )
    with serve(town(grid).answer) as server:
        made = experiment(place, valhalla(server.url), ("[calls]", '[calls]\nfile = "calls.csv"'))
        with pytest.warns(UserWarning, match="1 rows left out, 2 calls remain: 1 off the network"):
            found = run_live(made, place / "run", 9000, clock=FastClock())
    assert found.dropped == []
    said = [(one["incident"]["name"], one["incident"]["node"]) for one in lines(found)]
    assert said == [("a", 40), ("b", 31)]
    assert datetime.fromisoformat(lines(found)[0]["incident"]["at"]) == NOW


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('kind = "interval"', 'kind = "paper"'), "paper needs a trained model"),
        (('time_zone = "Asia/Hong_Kong"\n', ""), r"\[live\] time_zone and country are missing"),
        (('kind = "valhalla"', 'kind = "osrm"'), r"kind 'osrm': choose one of google, valhalla"),
        (('kind = "valhalla"', 'kind = "google"'), r'key_file is missing; kind = "google" needs'),
        (('kind = "valhalla"', ""), "traffic is missing: a network of your own needs it"),
        (("every_s = 60", "every_s = 0"), "every_s 0.0: more than 0 is needed"),
        (("[policies.router-dual]", '[transfer]\nrun = "x"\n[policies.x]\nkind = "ideal"\n'
          "[policies.router-dual]"), "transfer: .*x has no response_times.json"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said_before_the_first_request(
    grid: RoadNetwork, place: Path, change: tuple[str, str], message: str
) -> None:
    with serve(town(grid).answer) as server:
        with pytest.raises(InputError, match=message):
            run_live(experiment(place, valhalla(server.url), change), place / "run", 9000)
        assert server.asked == []
    assert not (place / "run").exists()


def test_the_example_can_be_read() -> None:
    made = Experiment.load(ROOT / "examples" / "live.toml")
    assert (made.live.kind, made.live.calls, made.training_days) == ("valhalla", 200, 0)


def test_recorded_and_live_do_not_take_each_other_up(grid: RoadNetwork, place: Path) -> None:
    made = experiment(place, 'kind = "valhalla"\nurl = "http://127.0.0.1:9"')
    with pytest.raises(InputError, match=r"live.toml: \[city\] traffic is missing"):
        run_experiment(made, place / "run")
    traffic = PresentTraffic(grid, CALENDAR, Scripted(grid), RequestBudget(9))
    live = Replay(traffic, [Depot("W", 0), Depot("E", 119)], [Chancy()])
    with pytest.raises(InputError, match="live traffic has no past to replay"):
        run_replay(live, [], place / "run")


def test_the_command(grid: RoadNetwork, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, message in (
        ({"live": True}, "--live needs --most"),
        ({"live": True, "most": 5, "workers": 2}, "--live goes without"),
        ({"most": 5}, "--most goes with --live"),
    ):
        experiment(place, valhalla("http://127.0.0.1:9"))
        with pytest.raises(InputError, match=message):
            replay(place / "live.toml", place / "run", **options)
    streets = town(grid)
    streets.times_s = np.full(grid.num_edges, 0.0)
    with serve(streets.answer) as server:
        changes = ("calls = 6", "calls = 2"), ("every_s = 60", "every_s = 0.01")
        experiment(place, valhalla(server.url), *changes)
        with pytest.raises(InputError, match="no call could be driven"):
            replay(place / "live.toml", place / "run", live=True, most=9)
    said = capsys.readouterr()
    assert "2 calls could not be driven to their end" in " ".join(said.err.split())
    assert os.path.getsize(place / "run/requests.count") == len(server.asked) <= 9

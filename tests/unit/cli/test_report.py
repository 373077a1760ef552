"""`ideal report` on real replays of the small town, and on folders that hold none."""

import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import Calendar, RoadNetwork
from ideal_dispatch.cli import report as command
from ideal_dispatch.cli.help import described
from ideal_dispatch.dispatch.baselines import (
    IntervalPolicy,
    RandomTrigger,
    RegionPolicy,
    RouterDual,
    RouterPolicy,
)
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import Depot
from ideal_dispatch.replay.incidents import sample_incidents
from ideal_dispatch.replay.run import run_replay
from ideal_dispatch.replay.simulation import Replay
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.synthetic import SyntheticParams, synthetic_traffic
from workshop.policies import QuoteDifference

report, _, _ = described(command.report)


@pytest.fixture(scope="module")
def runs(grid: RoadNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two replays, ``training`` and ``test``, and the network beside them."""
    folder = tmp_path_factory.mktemp("replays")
    grid.save(folder / "town.network")
    depots = (Depot("West", 0), Depot("East", grid.num_nodes - 1))
    policies = (RegionPolicy(), RouterPolicy(), RouterDual(), IntervalPolicy(),
                QuoteDifference(), RandomTrigger())  # fmt: skip
    for name, first in (("training", 8), ("test", 15)):
        params = SyntheticParams(days=2, first=date(2023, 5, first), hours=((7, 9),))
        recording = synthetic_traffic(grid, Calendar("Asia/Hong_Kong", "HK"), params)
        calls = sample_incidents(recording, np.ones(grid.num_nodes), 6, seed=first)
        region = np.arange(grid.num_nodes) > grid.num_nodes // 2
        replay = Replay(
            ReplayedTraffic(recording), depots, policies, region=region.astype(np.int32), seed=1
        )
        run_replay(replay, calls, folder / name)
    return folder


def test_a_run_from_the_command_line(runs: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("ideal"), "report", runs / "test",
         "--calibration", runs / "training", "--network", runs / "town.network",
         "--incident", "2023-05-15-0002", "--world", "experienced", "-o", tmp_path / "out"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(len(line) for line in lines[:-1]) <= 80
    assert any(line.startswith("interval, +25 %") for line in lines)
    assert "2 days are few" in done.stderr
    assert lines[-1].startswith(f"wrote {tmp_path}/out/report.html and ")
    assert "The call you named. 2023-05-15-0002" in (tmp_path / "out" / "report.html").read_text()


def test_thresholds_for_a_coverage_target(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(
        runs=[runs / "test"], output=tmp_path / "out", calibration=[runs / "training"],
        world="experienced", coverage=0.5, within=300.0,
    )  # fmt: skip
    assert "Thresholds that reach 50 % of calls in 300 s of driving" in capsys.readouterr().out
    assert (tmp_path / "out" / "tables" / "coverage-experienced.csv").is_file()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Thresholds for the coverage target" in page


def test_several_runs(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(runs=[runs / "test", runs / "training"], output=tmp_path / "both", world="experienced")
    told = capsys.readouterr().out
    assert "comparison.html" in told
    assert "instantaneous traffic" not in told
    assert (tmp_path / "both" / "tables" / "comparison-saving-experienced.csv").is_file()


def test_another_network_has_no_maps(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(runs=[runs / "test"], output=tmp_path / "bare", world="instantaneous")
    assert "Give it with --network" in (tmp_path / "bare" / "report.html").read_text()
    from ideal_dispatch.cities import harbour_city

    harbour_city().network.save(tmp_path / "other.network")
    with pytest.raises(InputError, match="holds report.html already; add --force"):
        report(runs=[runs / "test"], output=tmp_path / "bare", world="instantaneous")
    with pytest.raises(InputError, match="another network than that of"):
        report(
            runs=[runs / "test"], output=tmp_path / "new", network_file=tmp_path / "other.network"
        )
    assert not (tmp_path / "new").exists()


def test_bad_input(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run.json is missing"):
        report(runs=[tmp_path], output=tmp_path / "out")
    with pytest.raises(InputError, match="--incident goes with one run"):
        report(runs=[runs / "test", runs / "training"], output=tmp_path / "out", incident="x")
    with pytest.raises(InputError, match="--within goes with --coverage"):
        report(runs=[runs / "test"], output=tmp_path / "out", within=300.0)
    with pytest.raises(InputError, match="--coverage goes with one run"):
        report(runs=[runs / "test", runs / "training"], output=tmp_path / "out", coverage=0.9)
    with pytest.raises(InputError, match="--calibration given 2 times for 1 runs"):
        report(runs=[runs / "test"], output=tmp_path / "out", calibration=[runs / "training"] * 2)
    with pytest.raises(InputError, match="no world C; it has instantaneous, experienced"):
        report(runs=[runs / "test"], output=tmp_path / "out", world="C")
    with pytest.raises(InputError, match="survival curve 'hope': choose one of"):
        report(runs=[runs / "test"], output=tmp_path / "out", survival="hope")
    with pytest.raises(InputError, match="no incident x; they are named like 2023-05-15-0001"):
        report(runs=[runs / "test"], output=tmp_path / "out", incident="x")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file; name a folder"):
        report(runs=[runs / "test"], output=tmp_path / "file")
    assert not (tmp_path / "out").exists()

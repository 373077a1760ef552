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
from ideal_dispatch.dispatch.policies import (
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
         "--incident", "2023-05-15-0002", "-o", tmp_path / "out"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(len(line) for line in lines[:-1]) <= 80
    assert any(line.startswith("interval, +25 %") for line in lines)
    assert "2 days are few" in done.stderr
    assert lines[-1].startswith(f"wrote {tmp_path}/out/report.html and ")
    assert (tmp_path / "out" / "figures" / "incident-2023-05-15-0002.png").is_file()


def test_thresholds_for_a_coverage_target(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(
        run=runs / "test", output=tmp_path / "out", calibration=runs / "training",
        coverage=0.5, within=300.0,
    )  # fmt: skip
    assert "50 % of calls in 300 s" in capsys.readouterr().out
    assert (tmp_path / "out" / "tables" / "coverage.csv").is_file()


def test_another_network_has_no_maps(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(run=runs / "test", output=tmp_path / "bare")
    assert not list((tmp_path / "bare" / "figures").glob("incident-*"))
    from ideal_dispatch.cities import harbour_city

    harbour_city().network.save(tmp_path / "other.network")
    with pytest.raises(InputError, match="holds report.html already; add --force"):
        report(run=runs / "test", output=tmp_path / "bare")
    with pytest.raises(InputError, match="another network than that of"):
        report(run=runs / "test", output=tmp_path / "new", network_file=tmp_path / "other.network")
    assert not (tmp_path / "new").exists()


def test_bad_input(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="manifest.json is missing"):
        report(run=tmp_path, output=tmp_path / "out")
    with pytest.raises(InputError, match="--within goes with --coverage"):
        report(run=runs / "test", output=tmp_path / "out", within=300.0)
    with pytest.raises(InputError, match="survival curve 'hope': choose one of"):
        report(run=runs / "test", output=tmp_path / "out", survival="hope")
    with pytest.raises(InputError, match="no incident x; they are named like 2023-05-15-0001"):
        report(run=runs / "test", output=tmp_path / "out", incident="x")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file; name a folder"):
        report(run=runs / "test", output=tmp_path / "file")
    assert not (tmp_path / "out").exists()

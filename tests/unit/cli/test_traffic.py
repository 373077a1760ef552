"""``ideal traffic simulate | info``, as a person uses them."""

import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ideal_dispatch import Calendar, RoadNetwork
from ideal_dispatch.cli.traffic import app
from ideal_dispatch.errors import IdealError
from ideal_dispatch.traffic.recording import RecordedTraffic, Stretch
from ideal_dispatch.traffic.sumo.network import sumo_version
from tests.unit.cli.test_network_command import ideal
from tests.unit.traffic.small import START, recording
from tests.unit.traffic.sumo.days import needs_sumo

DEPOTS = "name,lon,lat\nWest,114.0,22.004\nEast,114.011,22.004\n"
TOWN = ("--network", "town.network", "--time-zone", "Asia/Hong_Kong", "--country", "HK")


@pytest.fixture(scope="module")
def made(grid: RoadNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a town, its depots, three days of its traffic, and a tiny town."""
    place = tmp_path_factory.mktemp("town")
    grid.save(place / "town.network")
    (place / "depots.csv").write_text(DEPOTS)
    recording(grid).save(place / "town.traffic")
    (place / "key.txt").write_text("\n")
    ends = np.array([0, 1, 1, 2, 2, 3, 3, 0])
    lon, lat = 114 + 0.001 * np.array([0, 1, 1, 0]), 22 + 0.001 * np.array([0, 0, 1, 1])
    square = RoadNetwork.from_arrays(
        np.r_[ends[::2], ends[1::2]], np.r_[ends[1::2], ends[::2]], np.full(8, 112.0), lon, lat
    )
    square.save(place / "square.network")
    return place


@pytest.fixture
def town(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made)
    return made


def said(*arguments: str) -> str:
    """What a command of this process prints, both streams."""
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


# --- simulate and info --------------------------------------------------------------------


def test_synthetic_days_are_made_and_shown(town: Path, tmp_path: Path) -> None:
    options = ("simulate", *TOWN, "--days", "2", "--first", "2024-02-29")
    texts = [
        said(*options, "--seed", seed, "-o", str(tmp_path / name))
        for seed, name in (("3", "a.traffic"), ("3", "b.traffic"), ("4", "c.traffic"))
    ]
    a, b, c = ((tmp_path / f"{name}.traffic").read_bytes() for name in "abc")
    assert a == b != c
    for text in (texts[0], said("info", str(tmp_path / "a.traffic"), "--network", "town.network")):
        assert re.search("edges 436 bin 60 s days 2 in memory 1 MB", text)
        made_by = "ideal traffic simulate --engine synthetic --days 2 --first 2024-02-29 --seed 3"
        assert f"engine synthetic made by {made_by} --hours 6-10,16-20" in text
        assert len(re.findall(r"(Thu 29 Feb|Fri 01 Mar) 2024 (06:00–10|16:00–20):00", text)) == 4
    assert f"wrote {tmp_path / 'a.traffic'} (0." in texts[0]


def test_days_around_a_change_of_the_clocks_are_read_again(town: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "ny.traffic")
    made = said(
        "simulate", "--days", "3", "--first", "2023-03-11", "--hours", "0-24", "--time-zone",
        "America/New_York", "--country", "US", "--network", "town.network", "-o", file,
    )  # fmt: skip
    for text in (made, said("info", file, "--network", "town.network")):
        assert len(re.findall(r"1[123] Mar 2023 00:00–24:00", text)) == 3


def test_what_nobody_saw_is_a_dash(grid: RoadNetwork, town: Path, tmp_path: Path) -> None:
    start = START - timedelta(hours=6)  # midnight there
    empty = Stretch(start, np.zeros((1440, grid.num_edges), np.uint8), np.zeros((24, 5)))
    RecordedTraffic(grid, Calendar("Asia/Hong_Kong", "HK"), 60, (empty,)).save(tmp_path / "e")
    text = said("info", str(tmp_path / "e"), "--network", "town.network")
    assert "engine not stated" in text
    assert text.endswith("Tue 09 May 2023 00:00–24:00 0 0% –")


@needs_sumo
def test_interrupted_sumo_days_go_on(town: Path, tmp_path: Path) -> None:
    """Stopped when the first of two days is done; that day is not simulated again."""
    options = ["simulate", "--engine", "sumo", "--days", "2", "--network", "square.network"]
    options += [*TOWN[2:]]
    options += ["--workers", "1", "--demand", "1", "-o", str(tmp_path / "square.traffic")]
    program = (
        "import os, signal, sys\n"
        "from contextlib import contextmanager\n"
        "if __name__ == '__main__':\n"
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "    import ideal_dispatch.cli.terminal as terminal\n"
        "    from ideal_dispatch.cli.app import main\n"
        "    @contextmanager\n"
        "    def bars():\n"
        "        yield lambda *told: os.kill(os.getpid(), signal.SIGINT)\n"
        "    terminal.bars = bars\n"
        f"    sys.argv = ['ideal', 'traffic', *{options!r}]\n"
        "    main()\n"
    )
    script = tmp_path / "interrupted.py"
    script.write_text(program)
    done = subprocess.run(
        [sys.executable, script], cwd=town, capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (130, "interrupted")
    assert not (tmp_path / "square.traffic").exists()
    before = {file: file.stat().st_mtime_ns for file in tmp_path.glob("square.days/*.day")}
    assert before
    text = said(*options)
    assert len(re.findall(r" 2023 06:00–10:00", text)) == 2
    assert re.search(rf"engine sumo {sumo_version()} made by ideal traffic simulate", text)
    assert "--regime calm --demand 1 --whole-days 0" in text
    assert all(file.stat().st_mtime_ns == at for file, at in before.items())
    days, packed = sorted(tmp_path.glob("square.days/*.day")), tmp_path / "square.traffic"
    assert len(days) == 2
    whole = packed.read_bytes()
    days[0].unlink()
    assert re.search(r"1 day simulated, \d+ CPU s", said(*options, "--force"))
    assert packed.read_bytes() == whole


# --- what can go wrong ----------------------------------------------------------------------

SIMULATE, INFO = ("simulate", "-o", "x"), ("info", "town.traffic")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*SIMULATE, "--engine", "cars"), "--engine cars: choose synthetic or sumo"),
        ((*SIMULATE, "--demand", "1"), "--demand is for SUMO: leave it out, or give --engine sumo"),
        ((*SIMULATE, "--regime", "calm"), "--regime is for SUMO: leave it out"),
        ((*SIMULATE, "--engine", "sumo", "--regime", "wild"), "wild: choose calm or volatile"),
        ((*SIMULATE, "--whole-days", "0"), "--whole-days is for SUMO: leave it out, or give"),
        ((*SIMULATE, "--first", "May"), "--first May: write it as 2023-05-08"),
        ((*SIMULATE, "--time-zone", "Mars/Base"), "Mars/Base"),
        ((*SIMULATE, "--country", "XX"), "XX"),
        ((*SIMULATE, "--network", "none", *TOWN[2:]), "none: no such file"),
        ((*SIMULATE, *TOWN[:2]), "--network needs --time-zone and --country"),
        ((*SIMULATE, *TOWN[:4]), "--network needs --time-zone and --country"),
        (("simulate", "-o", "no/x"), "no/x: the folder no does not exist; create it first"),
        (("info", "none.traffic"), "none.traffic: no such file"),
        (("info", "depots.csv"), "depots.csv: not a traffic file; make one with"),
        (INFO, "town.traffic: recorded on another network"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(town: Path, arguments: tuple[str, ...], message: str) -> None:
    before = sorted(town.iterdir())
    done = CliRunner().invoke(app, arguments)
    assert isinstance(done.exception, IdealError)
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)
    assert done.stdout == ""
    assert sorted(town.iterdir()) == before
    assert (town / "depots.csv").read_text() == DEPOTS


def test_from_the_shell(town: Path) -> None:
    done = ideal("traffic", "info", "none.traffic", cwd=town, code=2)
    assert (done.stdout, done.stderr) == ("", "error: none.traffic: no such file\n")
    done = ideal("traffic", "info", "town.traffic", "--network", "town.network", cwd=town)
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.count("06:00–08:00") == 3


def test_hours_are_chosen_and_nonsense_is_one_line(town: Path) -> None:
    text = said(
        "simulate", "--days", "1", "--hours", "7-8,17-19", *TOWN, "-o", "hours.traffic",
    )  # fmt: skip
    assert "07:00–08:00" in text
    assert "17:00–19:00" in text
    for wrong in ("seven", "7", "7-8-9"):
        with pytest.raises(IdealError, match="write them as 6-10,16-20"):
            said("simulate", "--hours", wrong, *TOWN, "-o", "x.traffic")

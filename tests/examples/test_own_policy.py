"""The example to copy: replayed and reported for real, from its folder and as a package."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_policy"
IDEAL = Path(sys.executable).with_name("ideal")


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with fewer calls, and one test day to each training day."""
    folder = tmp_path_factory.mktemp("copied") / "own_policy"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "experiment.toml"
    file.write_text(file.read_text().replace("per_day = 20", "per_day = 4"))
    return folder


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [IDEAL, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_replayed_and_reported_like_ours(copied: Path) -> None:
    run(copied, "replay", "experiment.toml", "-o", "run", "--workers", "2")
    told = run(
        copied, "report", "run/test", "--calibration", "run/training",
    )  # fmt: skip
    rows = re.findall(r"^ *(router|close-race, [^ ]+ ?[%a-z]*)", told, re.M)
    assert {"router", "close-race, +25 %", "close-race, +50 %", "close-race, as set"} <= set(rows)
    page = (copied / "report" / "report.html").read_text()
    assert "close-race" in page
    assert "close-race" in (copied / "report/tables/saved.csv").read_text()
    assert (copied / "report/tables/wilcoxon-close-race.csv").is_file()


def test_an_installed_package_is_found_by_its_names(copied: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(copied / "my_dispatch", site / "my_dispatch")
    info = site / "my_dispatch-1.0.dist-info"  # what an installer writes
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-dispatch\nVersion: 1.0\n")
    text = (copied / "pyproject.toml").read_text()
    groups = re.findall(r'\[project.entry-points."(.+)"\]\n(.+) = "(.+)"', text)
    assert len(groups) == 3
    (info / "entry_points.txt").write_text("".join(f"[{g}]\n{k} = {v}\n" for g, k, v in groups))
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from ideal_dispatch.dispatch.policy_tables import FittedParts\n"
        "from ideal_dispatch.dispatch.policy_tables import policies_from\n"
        "from ideal_dispatch.plugins import TRAFFIC_SOURCES, WEATHER, find_plugin\n"
        "print(policies_from({'x': {'kind': 'close-race', 'night_s': 3}}, FittedParts())[0])\n"
        "print(find_plugin(TRAFFIC_SOURCES, 'timetable', (), 'source'))\n"
        "print(find_plugin(WEATHER, 'thermometer', (), 'source'))\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(site)],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "CloseRace(night_s=3.0" in told
    assert "my_dispatch.traffic.Timetable" in told
    assert "my_dispatch.weather.Thermometer" in told

"""The first two minutes: the whole story at a small scale, twice, and what can go wrong."""

import contextlib
import html
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ideal_dispatch.cities import TRAINING_DAYS, harbour_city, harbour_traffic
from ideal_dispatch.errors import InputError
from tests.unit.cli.test_network_command import ideal

pytest.importorskip("torch", reason="the train extra is not installed")

CHAPTERS = [
    "1 of 6  An agency's records",
    "2 of 6  Learning travel times",
    "3 of 6  Replaying days that were not learned from",
    "4 of 6  One call",
    "5 of 6  The report",
    "6 of 6  The whole fleet",
]


def told(folder: Path) -> str:
    """What the story prints at a small scale."""
    from ideal_dispatch.cli.story import Scale, tell

    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
        tell(folder, 7, Scale(epochs=1, calls_per_day=6, fleet_years=1))
    return text.getvalue()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a small story, and what was printed."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, told(folder)


@pytest.mark.slow
def test_the_story_has_its_chapters_and_ends_with_the_next_command(
    demo: tuple[Path, str],
) -> None:
    folder, text = demo
    places = [text.index(chapter) for chapter in CHAPTERS]
    assert places == sorted(places)
    assert re.search(r"1,500 rows became [\d,]+ trips", " ".join(text.split()))
    for name in ("region", "router", "interval", "router-dual", "paper-ideal, dual", "ideal"):
        assert re.search(rf"^{name}\b.* +\d+\.\d+ *$", text, re.M), name
    assert "Why, by policy ideal" in text
    assert re.search(r"95 % interval [\d.]+ s \w+ to [\d.]+ s \w+", " ".join(text.split()))
    assert "The second is" in text.split("What happened then")[1]
    assert f"wrote {folder / 'report' / 'report.html'}" in text
    told = text.split(CHAPTERS[-1])[1]
    assert "survivors" in told
    assert (folder / "fleet" / "fleet.html").is_file()
    assert (folder / "report" / "figures" / "fleet.png").read_bytes().startswith(b"\x89PNG")
    assert text.endswith("next: ideal serve\n")
    assert "\x1b" not in text, "no colours or bars in a pipe"
    own = [line for line in text.splitlines() if not line.startswith("wrote")]
    assert max(map(len, own)) <= 80


@pytest.mark.slow
def test_the_report_is_one_file(demo: tuple[Path, str]) -> None:
    folder, text = demo
    page = html.unescape((folder / "report" / "report.html").read_text())
    assert not re.search(r'(src|href)="(?!data:|#)', page), "nothing is loaded from elsewhere"
    call = re.search(r"\d{4}-\d\d-\d\d-\d{4}", text.split("What happened then")[1])
    assert call is not None
    assert call.group() in page


@pytest.mark.slow
def test_no_day_but_the_training_days_is_touched(demo: tuple[Path, str]) -> None:
    folder, _ = demo
    recording = harbour_traffic(harbour_city()).only(range(TRAINING_DAYS))
    local = recording.calendar.local
    training = {local(one.start).date().isoformat() for one in recording.stretches}
    calibrated, replayed = (
        {json.loads(line)["incident"]["day"] for line in log.read_text().splitlines()}
        for log in (folder / name / "incidents.jsonl" for name in ("calibration", "replay"))
    )
    assert [len(calibrated), len(replayed)] == [2, 2]
    assert not calibrated & replayed
    assert calibrated | replayed < training


@pytest.mark.slow
def test_again_it_says_the_same_and_leaves_other_files_alone(
    demo: tuple[Path, str], tmp_path: Path
) -> None:
    folder, text = demo
    shutil.copytree(folder, tmp_path / "again")
    (tmp_path / "again" / "notes.txt").write_text("mine")
    (tmp_path / "again" / "agency" / "records.csv").write_text("of an interrupted run")
    again = told(tmp_path / "again")
    assert again.replace(str(tmp_path / "again"), str(folder)) == text
    assert (tmp_path / "again" / "notes.txt").read_text() == "mine"
    logs = [place / "replay" / "incidents.jsonl" for place in (folder, tmp_path / "again")]
    assert logs[0].read_bytes() == logs[1].read_bytes()


@pytest.mark.parametrize("name", ["report", "README.txt"])
def test_what_others_wrote_is_never_deleted(name: str, tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "thesis.txt").write_text("years of work")
    if name == "README.txt":
        (tmp_path / name).write_text("About my thesis\n")
    with pytest.raises(InputError, match=r"holds report of something else; name another folder"):
        told(tmp_path)
    assert (tmp_path / "report" / "thesis.txt").exists()
    done = ideal("demo", "-o", "report/thesis.txt", cwd=tmp_path, code=2)
    assert "-o report/thesis.txt: is a file; name a folder" in done.stderr


def test_an_interruption_is_one_line(tmp_path: Path) -> None:
    program = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell may have it ignored
        "sys.argv = ['ideal', 'demo']\n"
        "from ideal_dispatch.cli.app import main\n"
        "main()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        while "1 of 6" not in process.stdout.readline():
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        _, complaint = process.communicate(timeout=120)
    assert (process.returncode, complaint) == (130, "interrupted\n")


BLOCKED = """
import sys
from importlib.machinery import PathFinder
from pathlib import Path
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, *place):
        lacking = name.partition(".")[0] in ("torch", "sklearn", "pandas", "openpyxl")
        return None if lacking else super().find_spec(name, *place)
sys.meta_path = [Without if one is PathFinder else one for one in sys.meta_path]
from ideal_dispatch.cli.story import Scale, Story, tell
from ideal_dispatch.dispatch.policy_tables import FittedParts
from ideal_dispatch.dispatch.policy_tables import policies_from
scale = Scale(epochs=1, calls_per_day=6)
"""


def _without_training(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + program], cwd=folder, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_told_without_the_packages_to_learn_with(tmp_path: Path) -> None:
    program = (
        "story = Story(Path('x'), 7, scale, lambda *told: None)\n"
        "print(story.can_learn)\n"
        "shipped = FittedParts(story.city.model, responses=story.city.responses)\n"
        "print([policy.name for policy in policies_from(story.experiment.policies, shipped)])\n"
    )
    can_learn, policies = _without_training(program, tmp_path).splitlines()
    assert can_learn == "False"
    assert "'ideal'" in policies
    assert "'paper-ideal'" in policies
    assert "'learned'" not in policies


@pytest.mark.slow
def test_the_story_without_the_packages_to_learn_with(tmp_path: Path) -> None:
    text = _without_training("tell(Path('out'), 7, scale)", tmp_path)
    told = " ".join(text.split())
    assert "Chapters 1 and 2 need pip install 'ideal-dispatch[train]'" in told
    assert "the model is the one that comes with the city" in told
    assert "Replaying recorded days" in text
    assert "Why, by policy ideal" in text
    assert (tmp_path / "out" / "report" / "report.html").exists()
    assert text.endswith("next: ideal serve\n")


@pytest.mark.slow
def test_the_command_at_its_full_scale(tmp_path: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("ideal"), "demo"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=1800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Send a second ambulance" in done.stdout
    assert done.stdout.endswith("next: ideal serve\n")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert (tmp_path / "out" / "demo" / "report" / "report.html").stat().st_size > 100_000

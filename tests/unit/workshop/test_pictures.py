"""Pictures: each one on a page is made by a command, and no other is kept."""

import re
import subprocess
import sys

from tests.conftest import ROOT
from workshop.pictures import IMAGES, PICTURES


def test_every_picture_is_on_a_page_and_every_page_has_its_pictures() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {name for page in pages for name in re.findall(r"images/([\w.]+png)", page.read_text())}
    assert shown == {file.name for file in (ROOT / IMAGES).iterdir()}
    assert {name.split("_")[0].removesuffix(".png") for name in shown} == set(PICTURES)


def test_help_names_them() -> None:
    command = [sys.executable, "-m", "workshop.pictures", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "desk, report, evidence, traffic, gap" in done.stdout

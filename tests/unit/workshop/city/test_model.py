"""The command that makes the shipped model."""

import subprocess
import sys

from tests.conftest import ROOT


def test_help_is_printed() -> None:
    command = [sys.executable, "-m", "workshop.city.model", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "experiment folder" in done.stdout

"""Commands of a clone print their help, and do nothing else."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize(
    "module",
    [
        "tools.audit_0_2", "tools.desk_font", "workshop.api_page", "workshop.city",
        "workshop.quick_start",
    ],
)  # fmt: skip
def test_help_of_a_command(module: str) -> None:
    command = [sys.executable, "-m", module, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")
    assert "wrote" not in done.stdout

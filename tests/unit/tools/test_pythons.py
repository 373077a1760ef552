"""Which Pythons `make test-pythons` finds."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

VERSIONS = ["3.11", "3.12", "3.13"]


def _script(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Python."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path


def _found(version: str) -> str:
    code = (
        f"import sys; sys.path.insert(0, 'tools'); import pythons; print(pythons.find('{version}'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_python_on_the_path_is_found(nowhere: Path) -> None:
    python = _script(nowhere / "bin" / "python3.12", "exit 0")
    assert _found("3.12") == str(python)
    assert _found("3.13") == "None"


def test_a_name_of_pyenv_that_does_not_run_is_passed_over(nowhere: Path) -> None:
    _script(nowhere / "bin" / "python3.12", "echo 'pyenv: command not found'; exit 127")
    assert _found("3.12") == "None"
    python = _script(nowhere / "pyenv" / "versions" / "3.12.1" / "bin" / "python3.12", "exit 0")
    assert _found("3.12") == str(python)


def test_those_that_are_not_here_are_named(nowhere: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "pythons.py"], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [
        f"Python {version}: not found on this machine" for version in VERSIONS
    ]
    assert done.returncode == 1


def test_the_package_names_only_pythons_that_are_tested() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert set(re.findall(r"Python :: (3\.\d+)", text)) <= set(VERSIONS)

"""Documentation that stays true: names exist, snippets run, commands have help."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def _exists(dotted: str) -> bool:
    module, parts = dotted, []  # type: tuple[str, list[str]]
    while module:
        try:
            thing: object = importlib.import_module(module)
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            parts.insert(0, last)
            continue
        for part in parts:
            fields = getattr(thing, "__dataclass_fields__", {})
            if not hasattr(thing, part) and part not in fields:
                return False
            thing = getattr(thing, part, None)
        return True
    return False


def test_every_name_of_the_notation_exists() -> None:
    names = re.findall(r"`(ideal_dispatch[\w.]*)`", (ROOT / "docs" / "notation.md").read_text())
    assert len(names) > 5
    assert [name for name in names if not _exists(name)] == []
    assert not _exists("ideal_dispatch.RoadNetwork.width")
    assert not _exists("ideal_dispatch.nothing")


def _fences(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.S | re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_snippets_run(page: Path, tmp_path: Path) -> None:
    snippets = _fences(page, "python")
    if not snippets:
        return
    program = "\n".join(snippets)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for line in "\n".join(_fences(page, "sh")).splitlines():
        words = line.split("#")[0].split()
        if words[:1] == ["make"]:
            assert f"\n{words[1]}:" in makefile, line
        elif words[:1] == ["ideal"]:
            group = [word for word in words[1:3] if re.fullmatch(r"[a-z]+", word)]
            ideal = Path(sys.executable).with_name("ideal")
            done = subprocess.run([ideal, *group, "--help"], capture_output=True, check=False)
            assert done.returncode == 0, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target

"""The page about the paper: its names exist, and no numbered item is missing."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.theory.paper import TAGGED, needs_paper, numbers_of_labels

PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
NOTHING = "–"

_KINDS = "equation|theorem|proposition|lemma|assumption|algorithm|definition|remark|figure|table"
_ITEM = re.compile(rf"\b({_KINDS}) (\d+[a-z]?)\b", re.I)
_CELLS = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| in the paper")
]
_REFERENCE = re.compile(r"`([\w/]+\.(?:py|toml))(?:::([\w.]+))?`")
REFERENCES = sorted(set(_REFERENCE.findall(PAGE)))
TESTS = sorted({found for cells in _CELLS for found in _REFERENCE.findall(cells[2])})


def _file(path: str) -> Path:
    """The file that a path of the page means: of the package, of the tests, or of the root."""
    places = [ROOT / "src" / "ideal_dispatch" / path, ROOT / "tests" / path, ROOT / path]
    (found,) = [place for place in places if place.is_file()] or [places[0]]
    return found


@cache
def _names(file: Path) -> frozenset[str]:
    """What a module defines: functions, classes and their members, constants and fields."""

    def defined(body: list[ast.stmt], before: str) -> list[str]:
        found = []
        for one in body:
            if isinstance(one, ast.FunctionDef | ast.ClassDef):
                found.append(before + one.name)
            if isinstance(one, ast.ClassDef):
                found += defined(one.body, f"{before}{one.name}.")
            targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
            found += [before + target.id for target in targets if isinstance(target, ast.Name)]
        return found

    return frozenset(defined(ast.parse(file.read_text(encoding="utf-8")).body, ""))


@pytest.mark.parametrize(("path", "name"), REFERENCES)
def test_what_is_named_is_there(path: str, name: str) -> None:
    file = _file(path)
    assert file.is_file(), f"{path}: mend docs/paper.md"
    if file.suffix == ".py":
        assert name in _names(file), f"{name!r} is not in {path}: mend docs/paper.md"


def test_names_that_are_not_there_would_be_noticed() -> None:
    names = _names(_file("gap/dca.py"))
    assert {"estimate", "DcaStep", "DcaStep.decrease_s", "MOST_STEPS"} <= names
    assert not {"guess", "DcaStep.guess", "decrease_s", "done"} & names
    assert not _file("gap/dcb.py").is_file()


def test_tests_are_tests() -> None:
    for path, name in TESTS:
        assert _file(path).is_relative_to(ROOT / "tests"), path
        assert name.startswith("test_"), name


def test_every_row_has_code_and_a_test_or_says_why_not() -> None:
    assert len(_CELLS) > 60
    for item, code, test, why in _CELLS:
        for cell in (code, test):
            assert _REFERENCE.search(cell) or (cell == NOTHING and why), item


def test_every_item_has_one_row() -> None:
    items = [f"{kind.lower()} {n}" for row in _CELLS for kind, n in _ITEM.findall(row[0])]
    assert len(items) == len(set(items))


@needs_paper
def test_every_numbered_item_of_the_paper_is_on_the_page() -> None:
    items = {f"{kind.lower()} {n}" for row in _CELLS for kind, n in _ITEM.findall(row[0])}
    numbered = {
        name for name in numbers_of_labels().values() if not re.match("section|appendix", name)
    }
    assert items == numbered - {TAGGED}
    assert "𝒫_thr" in PAGE

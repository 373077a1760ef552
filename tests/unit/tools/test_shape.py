"""The figures of a small made-up checkout, counted by hand."""

import runpy
from pathlib import Path

from tests.conftest import ROOT

_measure = runpy.run_path(str(ROOT / "tools" / "shape.py"))["measure"]


def test_a_small_checkout_is_counted_right(tmp_path: Path) -> None:
    package = tmp_path / "src" / "ideal_dispatch"
    (package / "roads").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "roads" / "__init__.py").write_text("import ideal_dispatch.roads.lanes\n")
    (package / "roads" / "lanes.py").write_text(
        "def most(a, b, c, d, e, f, g, h, i):\n    while a:\n        if b:\n            a = c\n\n\n"
        "def least():\n    return 0\n"
    )
    (tmp_path / "README.md").write_text("one\ntwo\n")
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    (tmp_path / "docs" / "page.md").write_text(
        "by hand\n<!-- bench rows: begin -->\n1\n2\n<!-- bench rows: end -->\n"
    )
    (tmp_path / "docs" / "deep" / "made.md").write_text("# Made\n\n*Made by `make it`.*\n\n1\n")
    assert _measure(tmp_path) == {
        "modules": "3",
        "lines": "9",
        "most modules in a folder": "2 (ideal_dispatch/roads)",
        "modules over 300 lines": "0",
        "import edges": "1",
        "functions": "2",
        "mean complexity": "2.00",
        "worst complexity": "3",
        "functions with more than 8 parameters": "1",
        "most parameters": "9",
        "functions between socket and answer": "not counted",
        "lines of docs written by hand": "4",
    }

"""The figures of a small made-up checkout, counted by hand."""

import runpy
from pathlib import Path

from tests.conftest import ROOT

_measure = runpy.run_path(str(ROOT / "tools" / "shape.py"))["measure"]


def test_a_small_checkout_is_counted_right(tmp_path: Path) -> None:
    package = tmp_path / "src" / "ideal_dispatch"
    (package / "dispatch").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "dispatch" / "__init__.py").write_text("import ideal_dispatch.dispatch.lanes\n")
    (package / "dispatch" / "lanes.py").write_text(
        "def most(a, b, c, d, e, f, g, h, i):\n    while a:\n        if b:\n            a = c\n\n\n"
        "def least():\n    return 0\n"
    )
    (tmp_path / "README.md").write_text("one\ntwo\n")
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    (tmp_path / "docs" / "page.md").write_text(
        "by hand\n<!-- bench rows: begin -->\n1\n2\n<!-- bench rows: end -->\n"
    )
    (tmp_path / "docs" / "deep" / "made.md").write_text("# Made\n\n*Made by `make it`.*\n\n1\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_roads.py").write_text("\n" * 30_001)
    figures = _measure(tmp_path)
    found = {name: text.split()[0] for name, text in figures.items()}
    assert found == {
        **dict.fromkeys(found, "0"),
        "dispatch": "9", "all": "9", "tests": "30,001",
        "docs written by hand": "4", "their words": "4",
        "modules": "3", "import edges": "1", "functions": "2",
        "mean complexity": "2.00", "worst complexity": "3",
    }  # fmt: skip
    assert [name for name, text in figures.items() if text.endswith("!")] == ["tests"]

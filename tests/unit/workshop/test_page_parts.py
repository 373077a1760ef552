"""Parts of pages: nothing else of the page changes."""

from pathlib import Path

import pytest

from workshop.page_parts import replace_part


def test_only_the_part_between_the_marks_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- x: begin -->\nold\n<!-- x: end -->\nafter\n")
    replace_part(page, "x", "new")
    assert page.read_text() == "before\n<!-- x: begin -->\nnew\n<!-- x: end -->\nafter\n"
    with pytest.raises(SystemExit, match="has no marks <!-- y: begin -->"):
        replace_part(page, "y", "new")

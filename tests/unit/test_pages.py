import base64
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from ideal_dispatch.errors import InputError
from ideal_dispatch.pages import ACCENT, Page

EVIL = "<script>alert('x')</script> & \"more\""


def _figure(points: int) -> Figure:
    figure = Figure(figsize=(2, 1))
    axes = figure.subplots()
    rng = np.random.default_rng(0)
    axes.scatter(*rng.random((2, points)), color=ACCENT)
    return figure


def _page() -> Page:
    page = Page("A title", "and more")
    page.heading("First")
    page.text("Some words.")
    page.warning("Take care.")
    page.facts([("trips", "1,781"), ("error", "90 s")])
    page.table(["name", "MAE"], [["a", "1.0"], ["b", "2.0"]], bold=[1])
    page.figure(_figure(5), "Few points.")
    return page


def test_all_blocks_are_there_in_their_order() -> None:
    html = _page().html()
    places = [
        html.index(text)
        for text in ("<h1>A title", "First</h2>", "Some words.", "Take care.", "1,781", "MAE",
                     "data:image/svg+xml;base64,", "Few points.")
    ]  # fmt: skip
    assert places == sorted(places)
    assert html.count('<tr class="bold">') == 1
    assert html.startswith("<!doctype html>")


def test_same_contents_same_bytes(tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        _page().save(tmp_path / name)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_every_text_is_escaped() -> None:
    page = Page(EVIL, EVIL)
    page.heading(EVIL)
    page.text(EVIL)
    page.warning(EVIL)
    page.facts([(EVIL, EVIL)])
    page.table([EVIL], [[EVIL]])
    page.figure(_figure(1), EVIL)
    html = page.html()
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 9


def test_nothing_is_fetched() -> None:
    html = _page().html()
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", html)
    assert "@import" not in html


@pytest.mark.parametrize(("points", "kind"), [(10, "svg+xml"), (5000, "png")])
def test_figures_with_very_many_marks_are_pictures(points: int, kind: str) -> None:
    page = Page("x")
    page.figure(_figure(points), "")
    (found,) = re.findall(r"data:image/([^;]+);base64,([^\"]+)", page.html())
    assert found[0] == kind
    content = base64.b64decode(found[1])
    assert content.startswith(b"\x89PNG" if kind == "png" else b"<?xml")


def test_saved_into_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist; create it first"):
        Page("x").save(tmp_path / "none" / "x.html")
    assert "<h1>x</h1>" in Page("x").html()

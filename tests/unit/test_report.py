"""Reports: tables for people and programs, one page that needs nothing else, files beside it."""

import base64
import csv
import html
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure as Drawn

from ideal_dispatch import report as reports
from ideal_dispatch.errors import InputError
from ideal_dispatch.pages import figure_url
from ideal_dispatch.report import (
    Column,
    Figure,
    Interval,
    Report,
    Section,
    Table,
    clock,
    counted,
    rows_csv,
)

EVIL = "<script>alert('x')</script> & \"more\""
SMALL = Table(
    "small",
    "A small one & more",
    (Column("who"), Column("n"), Column("share", percent=True, arrow="↑"),
     Column("gain s", signed=True), Column("p", scientific=True)),
    (("a_1, +25 %", 1160, 0.5, Interval(-0.04, -1.0, 2.0), 3.4e-113), ("b", 2, None, None, 0.25)),
    frozenset({0}),
)  # fmt: skip


def _drawn(points: int = 5) -> Drawn:
    figure = Drawn(figsize=(2, 1))
    figure.subplots().scatter(*np.random.default_rng(0).random((2, points)))
    return figure


def _report(said: str = "words") -> Report:
    table = Table(said, said, (Column(said), Column("n")), ((said, 1781),), note=said)
    return Report(
        said, said, [(said, said)], [said],
        [
            Section.of(said, said, table, Figure("f", said, _drawn(), said), (said, said)),
            Section.of("empty", None, "", Table("none", "none", (Column("x"),), ())),
            Section.of("folded", counted("c", "c", "why", "rows", {said: 3}), folded=True),
        ],
    )  # fmt: skip


# --- tables -------------------------------------------------------------------------


def test_text_of_cells() -> None:
    assert SMALL.text_rows() == [
        ["a_1, +25 %", "1,160", "50.0", "+0.0 [−1.0, +2.0]", "3.4e−113"],
        ["b", "2", "–", "–", "0.250"],
    ]
    assert SMALL.arrowed[2] == "share ↑"
    assert SMALL.numeric == [False, True, True, True, True]
    assert Table("t", "T", (Column("x"),), ((Interval(1.0),),)).text_rows() == [["1.0"]]
    tiny = Table("t", "T", (Column("p", scientific=True),), ((0.0,),))
    assert tiny.text_rows() == [["<1e−300"]]


def test_csv_has_plain_numbers_and_three_columns_for_an_interval() -> None:
    rows = list(csv.reader(io.StringIO(SMALL.csv())))
    assert rows[0] == ["who", "n", "share", "gain s", "gain s low", "gain s high", "p"]
    assert rows[1] == ["a_1, +25 %", "1160", "50", "-0.04", "-1", "2", "3.4e-113"]
    assert rows[2] == ["b", "2", "", "", "", "", "0.25"]


def test_a_frame_has_the_numbers_of_the_csv() -> None:
    pytest.importorskip("pandas", reason="the records extra is not installed")
    made = SMALL.to_frame()
    assert len(made) == len(SMALL.rows)
    assert list(made.columns) == SMALL.csv().splitlines()[0].split(",")


def test_rows_must_fit() -> None:
    with pytest.raises(InputError, match="table t"):
        Table("t", "T", (Column("x"),), ((1.0, 2.0),))


def test_columns_as_csv_are_safe_to_open() -> None:
    columns = {"who": ["=1+1", "b"], "s": np.array([np.nan, 1234.5]), "tiny": [1e-9, 2]}
    assert rows_csv(columns).splitlines() == ["who,s,tiny", "'=1+1,,0", "b,1234.5,2"]


@pytest.mark.parametrize(("seconds", "shown"), [(59.4, "0:59"), (59.6, "1:00"), (247, "4:07")])
def test_clock(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


# --- pages --------------------------------------------------------------------------


class _Page(HTMLParser):
    """The tags of a page, and those that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def test_a_page_is_sound_and_can_be_read_aloud() -> None:
    page = _Page()
    page.feed(_report().html())
    assert not page.open
    assert not page.wrong
    tags = [tag for tag, _ in page.tags]
    assert tags.count("h1") == tags.count("main") == tags.count("aside") == 1
    assert tags.count("caption") == tags.count("table") == 2
    assert tags.count("section") == tags.count("details") == 1  # the empty one is not shown
    assert {attrs["scope"] for tag, attrs in page.tags if tag == "th"} == {"col", "row"}
    assert all(attrs["alt"] for tag, attrs in page.tags if tag == "img")
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_same_contents_same_bytes_and_nothing_is_fetched() -> None:
    page = _report().html()
    assert page == _report().html()
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)
    assert "@import" not in page
    assert "<script" not in page


def test_every_text_is_escaped() -> None:
    page = _report(EVIL).html()
    assert "<script" not in page
    assert page.count(html.escape("<script>")) > 15


def test_everything_is_rendered_before_a_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _report().save(tmp_path / "out", "page.html", {"more.csv": "a\n"})
    names = [str(path.relative_to(tmp_path / "out")) for path in made]
    assert names == ["more.csv", "tables/words.csv", "tables/c.csv", "figures/f.png", "page.html"]
    assert all(path.stat().st_size for path in made)

    def interrupted(figure: Drawn, kind: str) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(reports, "figure_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _report().save(tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(("points", "kind"), [(10, "svg+xml"), (7000, "png")])
def test_figures_with_very_many_marks_are_pictures(points: int, kind: str) -> None:
    (found,) = re.findall(r"^data:image/([^;]+);base64,(.+)$", figure_url(_drawn(points)))
    assert found[0] == kind
    content = base64.b64decode(found[1])
    assert content.startswith(b"\x89PNG" if kind == "png" else b"<?xml")

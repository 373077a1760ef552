import base64
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from ideal_dispatch.errors import InputError
from ideal_dispatch.pages import ACCENT, environment, figure_url, save_page

EVIL = "<script>alert('x')</script> & \"more\""

PAGE = """\
{% extends "page.html" %}
{% from "parts.html" import facts, figure, row, table, warnings %}
{% set title, subtitle = said, said %}
{% block content %}
<h2>First</h2>
{{ warnings([said]) }}
{{ facts([(said, said)]) }}
{% call table([said, "MAE"]) %}
{{ row([said, count(1781)]) }}
{{ row([said, percent(0.5, 1)], bold=true) }}
{% endcall %}
{% call figure(url) %}
{{ said }} in a caption.
{% endcall %}
{% endblock %}
"""


def _figure(points: int) -> Figure:
    figure = Figure(figsize=(2, 1))
    axes = figure.subplots()
    rng = np.random.default_rng(0)
    axes.scatter(*rng.random((2, points)), color=ACCENT)
    return figure


def _page(said: str = "words") -> str:
    return environment().from_string(PAGE).render(said=said, url=figure_url(_figure(5)))


def test_all_parts_are_there_in_their_order() -> None:
    html = _page()
    places = [
        html.index(text)
        for text in ("<title>words", "<h1>words", 'class="subtitle">words', "First</h2>",
                     '<p class="warning">words', "<strong>words</strong><span>words",
                     "<th>words</th><th>MAE", "<tr><td>words</td><td>1,781",
                     '<tr class="bold"><td>words</td><td>50.0 %', "data:image/svg+xml;base64,",
                     "<figcaption>words in a caption.</figcaption>")
    ]  # fmt: skip
    assert places == sorted(places)
    assert html.startswith("<!doctype html>")


def test_same_contents_same_bytes() -> None:
    assert _page() == _page()


def test_every_text_is_escaped() -> None:
    html = _page(EVIL)
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 11
    assert 'alt="&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &#34;more&#34; in' in html


def test_nothing_is_fetched() -> None:
    html = _page()
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", html)
    assert "@import" not in html


@pytest.mark.parametrize(("points", "kind"), [(10, "svg+xml"), (5000, "png")])
def test_figures_with_very_many_marks_are_pictures(points: int, kind: str) -> None:
    (found,) = re.findall(r"^data:image/([^;]+);base64,(.+)$", figure_url(_figure(points)))
    assert found[0] == kind
    content = base64.b64decode(found[1])
    assert content.startswith(b"\x89PNG" if kind == "png" else b"<?xml")


def test_saved_into_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist; create it first"):
        save_page(tmp_path / "none" / "x.html", "page.html", title="x", subtitle="")
    save_page(tmp_path / "x.html", "page.html", title="x", subtitle="")
    assert "<h1>x</h1>" in (tmp_path / "x.html").read_text()

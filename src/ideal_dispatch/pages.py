"""Self-contained HTML pages: headings, sentences, tables and figures in one file.

A page needs no network and no script; every text is escaped. Same contents,
same bytes.
"""

import base64
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.files import atomic_write

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, ACCENT, ORANGE, GREEN, MUTED = "#1d2b3a", "#0072B2", "#E69F00", "#009E73", "#8a94a0"
SKY, VERMILLION, PURPLE = "#56B4E9", "#D55E00", "#CC79A7"
"""The colours of figures: Okabe–Ito, told apart by colour-blind readers."""

WIDTH_IN, SMALL_PT = 10.0, 9.0
"""Width of every figure of a page, so that its type is as large in all; and that of small type."""


@dataclass(slots=True)
class Page:
    """A report that grows from top to bottom."""

    title: str
    subtitle: str = ""
    blocks: list[dict[str, Any]] = field(default_factory=list)

    def heading(self, text: str) -> None:
        self.blocks.append({"kind": "heading", "text": text})

    def text(self, text: str) -> None:
        self.blocks.append({"kind": "text", "text": text})

    def warning(self, text: str) -> None:
        self.blocks.append({"kind": "warning", "text": text})

    def facts(self, rows: Sequence[tuple[str, str]]) -> None:
        """Big numbers in a row: what each means, and its value."""
        self.blocks.append({"kind": "facts", "rows": list(rows)})

    def table(
        self, header: Sequence[str], rows: Sequence[Sequence[str]], bold: Sequence[int] = ()
    ) -> None:
        """A table; cells after the first column are set right, ``bold`` rows stand out."""
        self.blocks.append(
            {"kind": "table", "header": list(header), "rows": rows, "bold": set(bold)}
        )

    def figure(self, figure: "Figure", caption: str) -> None:
        self.blocks.append({"kind": "figure", "src": figure_url(figure), "caption": caption})

    def html(self) -> str:
        """The whole page."""
        return template("page.html").render(page=self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, or leave what was there untouched."""
        with atomic_write(path) as file:
            file.write(self.html().encode())


def plain_axes(
    count: int, size: tuple[float, float], rows: int = 1, heights: Sequence[float] | None = None
) -> tuple["Figure", "list[Axes]"]:
    """A figure of ``size`` inches and its ``count`` axes, drawn with as little ink as will do."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=150, layout="constrained")
    grid = figure.subplots(rows, count // rows, squeeze=False, height_ratios=heights)
    axes: list[Axes] = list(grid.ravel())
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.spines[["left", "bottom"]].set_color(MUTED)
        one.tick_params(colors=INK, labelsize=SMALL_PT)
        one.xaxis.label.set_color(INK)
        one.yaxis.label.set_color(INK)
    return figure, axes


def figure_url(figure: "Figure") -> str:
    """A matplotlib figure as inline SVG, or as PNG where it has very many marks."""
    import matplotlib as mpl

    marks = sum(len(axes.collections) + len(axes.lines) for axes in figure.axes)
    heavy = any(
        len(c.get_paths()) > 3000 or np.size(c.get_offsets()) > 6000
        for axes in figure.axes
        for c in axes.collections
    )
    kind = "png" if heavy or marks > 300 else "svg+xml"
    buffer = io.BytesIO()
    style: Any = {"svg.hashsalt": "ideal-dispatch", "svg.fonttype": "path"}
    with mpl.rc_context(style):
        if kind == "png":
            figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
        else:
            figure.savefig(buffer, format="svg", metadata={"Date": None})
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


@cache
def template(name: str) -> "Template":
    """A template of the package; texts are escaped in those of HTML."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("ideal_dispatch"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=name.endswith(".md"),
    )
    return environment.get_template(name)

"""Templates and the look of figures: self-contained, same contents same bytes."""

import base64
import io
import os
from collections.abc import Sequence
from functools import cache
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.errors import InputError
from ideal_dispatch.files import atomic_write

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, ACCENT, ORANGE, GREEN, MUTED = "#1d2b3a", "#0072B2", "#E69F00", "#009E73", "#8a94a0"
SKY, VERMILLION, PURPLE = "#56B4E9", "#D55E00", "#CC79A7"
"""The colours of figures: Okabe–Ito, which colour-blind readers can distinguish."""

PALETTE = (ACCENT, ORANGE, GREEN, PURPLE, SKY, VERMILLION, INK, MUTED)
"""For things without a fixed colour, in this order."""

WIDTH_IN, SMALL_PT = 10.0, 9.0
"""Width of every figure of a page, so that its type is as large in all; and that of small type."""

_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}
}  # fmt: skip
"""What would differ from one writing of a figure to the next."""


# --- pages --------------------------------------------------------------------------


@cache
def environment() -> "Environment":
    """The templates of the package; text is escaped in those of HTML."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    made = Environment(
        loader=PackageLoader("ideal_dispatch"),
        autoescape=select_autoescape(["html"], default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals["count"] = "{:,}".format
    return made


def render(name: str, /, **values: Any) -> str:
    """The text of a template of the package with its values."""
    return environment().get_template(name).render(values)


# --- figures ------------------------------------------------------------------------


def plain_axes(
    count: int, height_in: float, rows: int = 1, heights: Sequence[float] | None = None
) -> tuple["Figure", "list[Axes]"]:
    """A figure as wide as a page and its ``count`` axes, drawn with as little ink as will do."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_IN, height_in), dpi=150, layout="constrained")
    grid = figure.subplots(rows, count // rows, squeeze=False, height_ratios=heights)
    axes: list[Axes] = list(grid.ravel())
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.spines[["left", "bottom"]].set_color(MUTED)
        one.tick_params(colors=INK, labelsize=SMALL_PT)
        one.xaxis.label.set_color(INK)
        one.yaxis.label.set_color(INK)
    return figure, axes


def named_bars(
    axes: "Axes", names: Sequence[str], lengths: Any, texts: Sequence[str], colours: Any
) -> None:
    """Horizontal bars from top to bottom, each with its name on the left and a text at its end."""
    places = np.arange(len(names))
    axes.barh(places, lengths, color=colours, height=0.7)
    for place, length, text in zip(places, lengths, texts, strict=True):
        axes.annotate(text, (length, place), xytext=(4, 0), textcoords="offset points",
                      va="center", fontsize=SMALL_PT, color=INK)  # fmt: skip
    axes.set_yticks(places, names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)


def figure_url(figure: "Figure") -> str:
    """A figure for the source of an image: as SVG, or as PNG where it has very many marks."""
    marks = sum(len(axes.collections) + len(axes.lines) for axes in figure.axes)
    heavy = any(
        len(c.get_paths()) > 3000 or np.size(c.get_offsets()) > 6000
        for axes in figure.axes
        for c in axes.collections
    )
    kind = "png" if heavy or marks > 300 else "svg"
    mime = "svg+xml" if kind == "svg" else kind
    return f"data:image/{mime};base64,{base64.b64encode(figure_bytes(figure, kind)).decode()}"


def figure_bytes(figure: "Figure", kind: str) -> bytes:
    """A figure as png, svg or pdf."""
    buffer = io.BytesIO()
    _write_figure(figure, buffer, kind)
    return buffer.getvalue()


def figure_kind(path: str | os.PathLike[str]) -> str:
    """The format that a figure's file name asks for, or an :class:`InputError` for no such."""
    kind = os.path.splitext(os.fspath(path))[1].lower().removeprefix(".")
    if kind not in _METADATA:
        raise InputError(f"{os.fspath(path)}: a map ends in .{', .'.join(_METADATA)}")
    return kind


def save_figure(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """Write a figure as .png, .svg or .pdf; same figure, same bytes."""
    kind = figure_kind(path)
    with atomic_write(path) as file:
        _write_figure(figure, file, kind)


def _write_figure(figure: "Figure", file: IO[bytes], kind: str) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "ideal-dispatch"}):
        figure.savefig(
            file, format=kind, metadata=_METADATA[kind], facecolor=figure.get_facecolor()
        )

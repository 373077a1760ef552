"""Figures of the plausibility page: traffic by hour, its memory and its reach."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.pages import (
    ACCENT,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    SMALL_PT,
    plain_axes,
)
from workshop.traffic.checks import (
    EVENING_NAME,
    GROUPS,
    SPEED_QUANTILES,
    TrafficChecks,
    WindowChecks,
)
from workshop.traffic.slowness import Correlation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROADS = (INK, ACCENT, ORANGE, GREEN)
_RECORDED, _REAL = (ACCENT, ORANGE, PURPLE), (GREEN, GREEN, INK)
_STYLES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1, 1.5)))


def by_hour(columns: Sequence[TrafficChecks]) -> "Figure":
    """Speed over free flow by the hour: kinds of roads on working days, and weekends."""
    figure, all_axes = plain_axes(len(columns), 3.6)
    hours = np.arange(24) + 0.5
    slow = np.nanmin([np.nan_to_num(c.relative_speed, nan=1.0).min() for c in columns])
    lowest = 20 * np.floor(5 * slow)
    for axes, column in zip(all_axes, columns, strict=True):
        for group in (1, 2, 3):
            axes.plot(hours, 100 * column.relative_speed[0, group], color=_ROADS[group],
                      label=GROUPS[group], **_line())  # fmt: skip
        if column.days[1]:
            axes.plot(hours, 100 * column.relative_speed[1, 0], color=INK, linestyle=_STYLES[1],
                      linewidth=1.4, label="all roads on weekends and holidays")  # fmt: skip
        axes.set(xlim=(0, 24), ylim=(lowest, 103), xlabel="hour of the day")
        axes.set_xticks(range(0, 25, 4), [f"{hour:02d}" for hour in range(0, 25, 4)])
        axes.set_title(column.name, fontsize=10, color=INK, loc="left")
        axes.grid(axis="y", color=MUTED, alpha=0.2)
    all_axes[0].set_ylabel("speed, % of free flow")
    _legend_above(figure, max(all_axes, key=lambda one: len(one.lines)))
    return figure


def memory(columns: Sequence[TrafficChecks], real: Sequence[WindowChecks]) -> "Figure":
    """How long a slow road stays slow: over whole days, and within one evening hour."""
    figure, (left, right) = plain_axes(2, 3.6)
    for column, colour in zip(columns, _RECORDED, strict=False):
        _curve(left, column.memory, color=colour, label=column.name)
    for window, style in _windows(columns, real):
        _curve(right, window.memory, **style)
    for axes, title in (
        (left, "against the road's mean of the day"),
        (right, f"{EVENING_NAME}, against the mean of the window"),
    ):
        axes.set(xlabel="minutes later", ylim=(-0.65, 1.02))
        axes.set_title(title, fontsize=10, color=INK, loc="left")
        axes.axhline(0, color=MUTED, linewidth=0.8)
    left.set_ylabel("likeness to now (correlation)")
    left.set_xticks(range(0, 121, 20))
    _legend_above(figure, right)
    return figure


def reach(columns: Sequence[TrafficChecks], real: Sequence[WindowChecks]) -> "Figure":
    """How far roads get slower together, and how far slow roads lie together."""
    figure, (left, right) = plain_axes(2, 3.6)
    for window, style in _windows(columns, real):
        _curve(left, window.swings, **style)
        _curve(right, window.levels, **style)
    for axes, title in (
        (left, "they get slower at the same minute"),
        (right, "they are slow on the same evening"),
    ):
        axes.set(xlabel="distance of two roads (km)", ylim=(-0.25, 1.0), xlim=(0, 5.2))
        axes.set_title(title, fontsize=10, color=INK, loc="left")
        axes.axhline(0, color=MUTED, linewidth=0.8)
    left.set_ylabel("correlation")
    _legend_above(figure, right)
    return figure


def speeds(columns: Sequence[TrafficChecks], real: Sequence[WindowChecks]) -> "Figure":
    """Share of the road length below each speed, in the evening peak."""
    figure, (axes,) = plain_axes(1, 3.6)
    for window, style in _windows(columns, real):
        axes.plot(100 * window.relative_speed, 100 * SPEED_QUANTILES, linewidth=1.8, **style)
    axes.axvline(50, color=MUTED, linewidth=0.8)
    axes.annotate("half of free flow", (50, 97), xytext=(-5, 0), textcoords="offset points",
                  ha="right", va="top", fontsize=8.5, color=INK)  # fmt: skip
    axes.set(xlim=(0, 130), ylim=(0, 100), xlabel="speed, % of free flow",
             ylabel="% of the road length is slower")  # fmt: skip
    _legend_above(figure, axes)
    return figure


def _windows(
    columns: Sequence[TrafficChecks], real: Sequence[WindowChecks]
) -> list[tuple[WindowChecks, dict[str, Any]]]:
    """Evening windows with their looks: recordings first, then real speeds."""
    drawn: list[tuple[WindowChecks, dict[str, Any]]] = [
        (column.evening, {"color": colour, "label": column.name})
        for column, colour in zip(columns, _RECORDED, strict=False)
        if column.evening is not None
    ]
    for window, colour, style in zip(real, _REAL, _STYLES, strict=False):
        drawn.append((window, {"color": colour, "linestyle": style, "label": window.name}))
    return drawn


def _curve(axes: "Axes", correlation: Correlation, **style: Any) -> None:
    known: FloatArray = ~np.isnan(correlation.value)
    if known.any():
        axes.plot(correlation.at[known], correlation.value[known], **_line(), **style)


def _legend_above(figure: "Figure", axes: "Axes") -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=min(len(labels), 5),
                  frameon=False, fontsize=SMALL_PT, handlelength=3.2)  # fmt: skip


def _line() -> dict[str, Any]:
    return {"linewidth": 1.8, "marker": "o", "markersize": 3.5}

"""The figures of judged races: what a volume saves, whether expectations held, and a map."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ideal_dispatch.evaluation.race_judgement import OURS, RANDOM, JudgedRaces
from ideal_dispatch.evaluation.race_predictors import (
    BOOSTING,
    FREE_FLOW,
    GAIN_BOOSTING,
    IDENTITY,
    OTHER_GAP,
    PRINTED_GAP,
    QUOTE,
    STRAIGHT,
)
from ideal_dispatch.evaluation.race_study import RaceStudy
from ideal_dispatch.evaluation.race_tables import equal_groups
from ideal_dispatch.network.drawing import map_legend, map_of_places
from ideal_dispatch.pages import (
    ACCENT,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    SKY,
    SMALL_PT,
    VERMILLION,
    plain_axes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHARES = np.linspace(0.0, 1.0, 41)
_LOOKS = {
    OURS: (ACCENT, "-", 2.8),
    QUOTE: (GREEN, "-", 1.4),
    BOOSTING: (SKY, "-", 1.4),
    GAIN_BOOSTING: (PURPLE, "--", 1.4),
    FREE_FLOW: (ORANGE, "-", 1.4),
    IDENTITY: (ORANGE, "-", 1.4),
    STRAIGHT: (VERMILLION, "-", 1.4),
    OTHER_GAP: (INK, "--", 1.2),
    PRINTED_GAP: (INK, ":", 1.6),
    RANDOM: (MUTED, "-", 1.2),
}
"""Colour, dashes and width of the rankings that are drawn."""


def race_figures(study: RaceStudy) -> "Iterator[tuple[str, Figure]]":
    """Names and figures; the map needs places."""
    yield "volumes", volumes(study.judged)
    yield "reliability", reliability(study.judged)
    if not np.isnan(study.of_call("lon")).any():
        yield "map", race_map(study)


def volumes(judged: JudgedRaces) -> "Figure":
    """Seconds saved per call over the share of calls with a second unit, ranking by ranking."""
    figure, (axes,) = plain_axes(1, 4.6)
    low, high = np.array([[i.low, i.high] for i in judged.saved_intervals(OURS, _SHARES)]).T
    if not np.isnan(low).all():
        axes.fill_between(100 * _SHARES, low, high, color=ACCENT, alpha=0.12, linewidth=0,
                          label="95 % of draws of days, ideal")  # fmt: skip
    for name, (colour, dashes, width) in _LOOKS.items():
        if name in judged.rankings:
            axes.plot(100 * _SHARES, judged.saved_at(name, _SHARES), color=colour, linestyle=dashes,
                      linewidth=width, label=name, zorder=5 if name == OURS else 3)  # fmt: skip
    kept = judged.shares_kept(OURS, (0.25, 0.5))
    for share, one in zip((0.25, 0.5), kept, strict=True):
        saved = float(judged.saved_at(OURS, (share,))[0])
        axes.plot(100 * share, saved, marker="o", markersize=8, color=ACCENT,
                  markeredgecolor="white", zorder=6)  # fmt: skip
        axes.annotate(f"{100 * one.mean:.0f} % of all", (100 * share, saved), xytext=(8, -14),
                      textcoords="offset points", ha="left", fontsize=10, weight="bold",
                      color=ACCENT)  # fmt: skip
    axes.set(xlabel="% of the calls that get a second unit", ylabel="seconds saved per call",
             xlim=(0, 100), ylim=(0, None))  # fmt: skip
    axes.legend(frameon=False, fontsize=SMALL_PT, loc="upper left", labelcolor=INK)
    return figure


def reliability(judged: JudgedRaces) -> "Figure":
    """Left, how often the second came first; right, what it saved, over what was expected."""
    figure, (left, right) = plain_axes(2, 4.0)
    for axes, expected, told, scale, unit in (
        (left, judged.second_first, judged.came_first.astype(float), 100.0, "% second first"),
        (right, judged.gain_s, judged.saved_s, 1.0, "s saved per call"),
    ):
        top = 0.0
        for rows in equal_groups(expected):
            x = scale * float(expected[rows].mean())
            found = judged.ratio(np.where(rows, told, 0.0), rows)
            low, high = scale * found.low, scale * found.high
            axes.plot([x, x], [low, high], color=ACCENT, linewidth=1.4)
            axes.plot(x, scale * found.mean, marker="o", color=ACCENT, markersize=6,
                      markeredgecolor="white")  # fmt: skip
            top = max(top, x, *(y for y in (scale * found.mean, high) if not np.isnan(y)))
        axes.plot([0, 1.05 * top], [0, 1.05 * top], color=MUTED, linewidth=1.0, zorder=1)
        axes.set(xlabel=f"expected: {unit}", ylabel=f"happened: {unit}",
                 xlim=(0, 1.05 * top), ylim=(0, 1.05 * top))  # fmt: skip
    left.set_title("How often", fontsize=10, color=INK, loc="left")
    right.set_title("By how much", fontsize=10, color=INK, loc="left")
    return figure


def race_map(study: RaceStudy) -> "Figure":
    """Where the races were, in which the second came first, and the stations."""
    lon, lat = study.of_call("lon"), study.of_call("lat")
    rows = study.races.rows
    starts = np.column_stack(
        [getattr(study.responses, name)[rows].ravel() for name in ("from_lon", "from_lat")]
    )
    fixed = ~study.responses.from_road[rows].ravel() & ~np.isnan(starts).any(axis=1)
    stations = np.unique(starts[fixed], axis=0)
    figure, axes = map_of_places(lon, lat, study.network)
    axes.plot(*stations.T, linestyle="", marker="P", markersize=7, color=INK,
              markeredgecolor="white", label="station", zorder=4)  # fmt: skip
    first = study.judged.came_first
    axes.scatter(lon[~first], lat[~first], s=14, color=SKY, linewidths=0.4, edgecolors="white",
                 label=f"primary first ({int((~first).sum()):,})", zorder=3)  # fmt: skip
    sizes = np.clip(0.6 * study.judged.saved_s[first], 14, 260)
    axes.scatter(lon[first], lat[first], s=sizes, color=VERMILLION, alpha=0.75, linewidths=0.6,
                 edgecolors="white", zorder=5,
                 label=f"second first ({int(first.sum()):,}); larger: saved more")  # fmt: skip
    map_legend(axes)
    return figure

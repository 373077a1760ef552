"""Figures of the three issues of the paper's introduction: shares of calls, and one call."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.evaluation.races import WORLDS, Example, Races
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.pages import ACCENT, INK, MUTED, ORANGE, PURPLE, SMALL_PT, WIDTH_IN, plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RECORDED = (ACCENT, ORANGE, PURPLE)
_PAIR = (ACCENT, ORANGE)
_STYLES: tuple[Any, ...] = ("-", (0, (4, 2)))
_LONGEST_NAME = 16

PAPER_REGION, PAPER_OVERLAP, PAPER_OVERLAP_S, PAPER_MEAN_S = 0.56, 0.995, 377.0, 596.0
"""What the paper's introduction reports of its 50 nodes."""


def issues(named: Sequence[tuple[str, Races]]) -> "Figure":
    """The three issues of the introduction: shares of calls, with the paper's own beside them."""
    figure, (first, second, third) = plain_axes(3, (WIDTH_IN, 1.3 + 0.42 * (1 + 2 * len(named))))
    labels, colours = ["paper"], [MUTED]
    region, reversal, words = [PAPER_REGION], [0.0], ["not given"]
    overlap, ranges = [PAPER_OVERLAP], [f"{100 * PAPER_OVERLAP} %, {PAPER_OVERLAP_S:.0f} s"]
    for (name, races), colour in zip(named, _RECORDED, strict=False):
        for number, world in enumerate(WORLDS):
            labels.append(f"{_short(name)}, {world}")
            region.append(float(races.region_share()[number]))
            lost = races.lost_s()[number]
            reversal.append(float((lost > 0).mean()))
            by = f" by {lost[lost > 0].mean():.0f} s" if (lost > 0).any() else ""
            words.append(f"{100 * reversal[-1]:.0f} %{by}")
        overlap.append(races.overlap_share())
        ranges.append(f"{100 * overlap[-1]:.0f} %, {races.overlap_s().mean():.0f} s")
        colours += [colour, colour]
    rows = np.arange(len(labels), dtype=float)
    shares = [f"{100 * share:.0f} %" for share in region]
    _bars(first, rows, region, shares, colours, "1  The region's depot is the best")
    _bars(second, rows, reversal, words, colours, "2  The promised best depot loses")
    wide = np.concatenate([[0.0], 1.5 + 2 * np.arange(len(named))])
    _bars(third, wide, overlap, ranges, [MUTED, *colours[1::2]], "3  The router's ranges overlap")
    first.set_yticks(rows, labels)
    second.set_yticks(rows, [])
    third.set_yticks(wide, ["paper", *(_short(name) for name, _ in named)])
    for axes in (first, second, third):
        axes.set_ylim(rows[-1] + 0.5, -0.5)
    return figure


def _bars(
    axes: "Axes", places: FloatArray, shares: Sequence[float], texts: Sequence[str],
    colours: Sequence[str], title: str,
) -> None:  # fmt: skip
    heights = np.where(places % 1 > 0, 1.66, 0.66)  # a bar for both worlds is as high as two
    axes.barh(places, 100 * np.array(shares), color=colours, height=heights)
    for place, share, text in zip(places, shares, texts, strict=True):
        axes.annotate(text, (100 * share, place), xytext=(4, 0), textcoords="offset points",
                      va="center", fontsize=SMALL_PT, color=INK)  # fmt: skip
    axes.set(xlim=(0, 165), xlabel="% of the calls")
    axes.set_xticks(range(0, 101, 25))
    axes.tick_params(axis="y", length=0)
    axes.set_title(title, fontsize=10, color=INK, loc="left")


def trace(network: RoadNetwork, shown: Example) -> "Figure":
    """One call: both drives on the map, and what was expected of them on the way."""
    figure, (above, below) = plain_axes(2, (WIDTH_IN, 7), rows=2, heights=(1, 1.1))
    _map(above, network, shown)
    for depot, done, colour, style in zip(shown.depots, shown.drives, _PAIR, _STYLES, strict=False):
        elapsed = np.concatenate([[0.0], np.cumsum(done.seconds)])
        expected = np.append(done.expected_s, done.total_s)
        below.plot(elapsed, expected, color=colour, linestyle=style, linewidth=1.8, marker="o",
                   markersize=3, label=f"from {depot.name}")  # fmt: skip
        below.plot(done.total_s, done.total_s, marker="o", markersize=8, color=colour,
                   markeredgecolor="white", zorder=4)  # fmt: skip
        below.annotate(f"arrives after {done.total_s:.0f} s", (done.total_s, done.total_s),
                       xytext=(8, 0), textcoords="offset points", va="center", fontsize=SMALL_PT,
                       color=INK)  # fmt: skip
        below.annotate(f"promised {expected[0]:.0f} s", (0, expected[0]), xytext=(-7, 0),
                       textcoords="offset points", ha="right", va="center", fontsize=SMALL_PT,
                       color=INK)  # fmt: skip
    last = max(done.total_s for done in shown.drives)
    below.set(xlabel="seconds since the call", ylabel="expected arrival (s)",
              xlim=(-0.19 * last, 1.22 * last))  # fmt: skip
    below.margins(y=0.12)
    below.legend(
        frameon=False,
        fontsize=SMALL_PT,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=2,
        handlelength=3.2,
    )  # above the axes: marks may be anywhere in them
    above.set_title(f"A call on {shown.at:%A, %d %B %Y, %H:%M}, {shown.world} traffic", fontsize=10,
                    color=INK, loc="left")  # fmt: skip
    return figure


def _map(axes: "Axes", network: RoadNetwork, shown: Example) -> None:
    from matplotlib.collections import LineCollection

    axes.set_axis_off()
    lines = [
        network.path(done.edges, depot.node).coordinates(network)
        for depot, done in zip(shown.depots, shown.drives, strict=True)
    ]
    points = np.concatenate(lines)
    margin = 0.06 * np.ptp(points, axis=0).max()
    low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
    begins = np.column_stack([network.lon[network.tail], network.lat[network.tail]])
    inside = np.flatnonzero(((begins >= low) & (begins <= high)).all(axis=1))
    axes.add_collection(
        LineCollection([network.polyline(int(edge)) for edge in inside], colors=MUTED,
                       linewidths=0.5, alpha=0.45)
    )  # fmt: skip
    for line, depot, colour, style in zip(lines, shown.depots, _PAIR, _STYLES, strict=False):
        axes.plot(*line.T, color="white", linewidth=4.2, zorder=3)
        axes.plot(*line.T, color=colour, linestyle=style, linewidth=2.6, zorder=4)
        axes.plot(*line[0], marker="P", markersize=12, color=colour, markeredgecolor="white",
                  zorder=5)  # fmt: skip
        up = line[0, 1] >= line[: len(line) // 3 + 1, 1].mean()  # away from the way it goes
        right = line[0, 0] > (low[0] + high[0]) / 2
        axes.annotate(depot.name, line[0], xytext=(0, 12 if up else -20), zorder=6,
                      textcoords="offset points", ha="right" if right else "left",
                      fontsize=SMALL_PT, weight="bold", color=INK,
                      bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.8,
                            "linewidth": 0})  # fmt: skip
    call = float(network.lon[shown.node]), float(network.lat[shown.node])
    axes.plot(*call, marker="*", markersize=18, color=INK, markeredgecolor="white", zorder=6)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axes.set_aspect(1 / np.cos(np.radians(float(points[:, 1].mean()))))


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"

"""Figures of a training report: curves, errors by hour, speeds, radius and shape."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.learning.shape import DISTANCES_M, OVERLAPS, Shape
from ideal_dispatch.learning.trainer import Epoch
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.drawing import draw_network
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.pages import ACCENT, GREEN, INK, MUTED, ORANGE, plain_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SPEEDS = ("#B5482F", ORANGE, "#D8C58F", "#6FB1D6", ACCENT)  # slow to fast
_WIDTHS = {"motorway": 2.4, "trunk": 2.4, "primary": 2.0, "secondary": 1.5, "tertiary": 1.1}
_DASHES = (0, (4, 2))
_LINE: dict[str, Any] = {"linewidth": 1.8, "marker": "o", "markersize": 3.5}

Named = Sequence[tuple[str, FloatArray, FloatArray]]
"""Names with means and the half widths of their intervals."""


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Share of test trips that the set explains when its radius is scaled to a level.

    The factor of each level is found on ``calibration`` trips and counted on
    ``trips`` others. ``low`` and ``high`` hold that share with 95 % where the
    level is kept: the factor's chance and the count's together.
    """

    calibration: int
    trips: int
    level: FloatArray
    covered: FloatArray
    low: FloatArray
    high: FloatArray


def curves(history: Sequence[Epoch], kept_epoch: int | None, held_out: str) -> "Figure":
    """Loss on the training trips and error on those held out, epoch by epoch."""
    from matplotlib.ticker import MaxNLocator

    figure, (left, right) = plain_axes(2, 3.2)
    epochs = [epoch.epoch for epoch in history]
    left.plot(epochs, [epoch.loss for epoch in history], color=ACCENT, **_LINE)
    left.set(xlabel="epoch", ylabel="training loss")
    errors = [epoch.validation_mae_s for epoch in history]
    right.plot(epochs, errors, color=ORANGE, **_LINE)
    right.set(xlabel="epoch", ylabel=f"error on {held_out} (s)")
    if kept_epoch:
        kept = errors[kept_epoch - 1]
        right.plot(kept_epoch, kept, marker="o", markersize=9, color=GREEN, zorder=4)
        right.set_title(f"kept: epoch {kept_epoch}, {kept:.1f} s", fontsize=9, color=INK)
    for axes in (left, right):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(y=0.12)
    return figure


def by_hour(named: Named, trips: FloatArray) -> "Figure":
    """Error of the model and of a baseline by hour of the day, above the number of trips."""
    figure, (axes, below) = plain_axes(2, 4.2, rows=2, heights=(4, 1))
    hours = np.arange(24)
    for (name, mean, half), colour, shift in zip(
        named, (ACCENT, ORANGE), (-0.12, 0.12), strict=False
    ):
        axes.errorbar(
            hours + shift, mean, yerr=half, color=colour, label=name, marker="o", markersize=5,
            linewidth=1.6, elinewidth=1.1, capsize=0,
        )  # fmt: skip
    axes.set(ylabel="mean absolute error (s)", xlim=(-0.7, 23.7))
    axes.set_ylim(bottom=0)
    axes.set_xticks(range(0, 24, 2), [])
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="upper left", bbox_to_anchor=(0, 1.14))
    below.bar(hours, trips, color=MUTED, width=0.7)
    below.set(xlabel="hour of the day", ylabel="trips", xlim=(-0.7, 23.7))
    below.set_xticks(range(0, 24, 2), [f"{hour:02d}" for hour in range(0, 24, 2)])
    return figure


def speed_map(network: RoadNetwork, relative: FloatArray, title: str) -> "Figure":
    """The roads, coloured by learned speed over the limit; the slower direction is on top."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    low, high = np.quantile(relative, (0.02, 0.98))
    scale = Normalize(np.floor(20 * low) / 20, np.ceil(20 * high + 1e-9) / 20)
    colours = LinearSegmentedColormap.from_list("speed", _SPEEDS)
    order = np.argsort(-relative, kind="stable").astype(np.int32)
    widths = np.array([_WIDTHS.get(name.removesuffix("_link"), 0.8) for name in ROAD_CLASSES])
    roads = ("", colours(scale(relative[order])), widths[network.road_class[order]], order)
    figure = draw_network(network, title=title, layers=[roads])
    top = figure.axes[0].get_position().y1
    room = figure.add_axes((0.62, top + 0.42 * (1 - top), 0.34, 0.2 * (1 - top)))
    bar = figure.colorbar(ScalarMappable(scale, colours), cax=room, orientation="horizontal")
    bar.outline.set_visible(False)
    ticks = np.linspace(scale.vmin or 0.0, scale.vmax or 1.0, 5)
    bar.set_ticks(ticks.tolist(), labels=[f"{100 * tick:.0f} %" for tick in ticks])
    room.tick_params(labelsize=8, colors=INK, length=0, pad=2)
    room.set_title("learned speed over the limit", fontsize=8, color=INK, pad=3)
    return figure


def radius(
    found: Reliability, promised: tuple[float, float] | None, targets: FloatArray, own: FloatArray
) -> "Figure":
    """Coverage against level, and target radii of the trips beside the predicted ones."""
    figure, (left, right) = plain_axes(2, 4.2)
    left.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=_DASHES)
    left.fill_between(found.level, found.low, found.high, color=MUTED, alpha=0.25, linewidth=0,
                      label="chance, 95 %")  # fmt: skip
    left.plot(found.level, found.covered, color=ACCENT, **_LINE, label="test trips")
    if promised is not None:
        left.plot(*promised, marker="D", markersize=9, color=ORANGE, markeredgecolor="white",
                  linestyle="none", zorder=4, label="this model")  # fmt: skip
    left.set(xlabel="level asked for", ylabel="share of trips explained", xlim=(0, 1), ylim=(0, 1))
    left.set_box_aspect(1)
    left.legend(frameon=False, fontsize=9, loc="lower right")
    positive = targets[(targets > 0) & np.isfinite(targets)]
    if positive.size:
        least, most = 0.9 * float(np.quantile(positive, 0.02)), 1.1 * float(positive.max())
        bins = np.geomspace(least, most, 36).tolist()
        shares = np.full(positive.size, 1 / targets.size)
        right.hist(positive, bins=bins, weights=100 * shares, color=ACCENT, alpha=0.85,
                   label="target radii")  # fmt: skip
        right.set_xscale("log")
        for quantile, style in ((0.5, "-"), (0.05, _DASHES), (0.95, _DASHES)):
            right.axvline(max(float(np.quantile(own, quantile)), 1e-300), color=ORANGE,
                          linewidth=1.6 if quantile == 0.5 else 1.1, linestyle=style,
                          label="predicted: median, 90 %" if quantile == 0.5 else None)  # fmt: skip
        right.set_xlim(bins[0], max(bins[-1], 1.3 * float(np.quantile(own, 0.95))))
    right.set(xlabel="radius", ylabel="% of the trips")
    zero = 100 * float((targets == 0).mean())
    right.set_title(f"target zero: {zero:.0f} % of the trips, not drawn", fontsize=9, color=INK)
    if positive.size:
        right.legend(frameon=False, fontsize=9, loc="upper left")
    return figure


def shape_bars(shape: Shape) -> "Figure":
    """The correlation the set implies: edges by distance, trips by overlap."""
    figure, (left, right) = plain_axes(2, 3.2)
    metres = [f"{a / 1000:g}–{b / 1000:g}" for a, b in pairwise(DISTANCES_M)]
    metres[-1] = f"over {DISTANCES_M[-2] / 1000:g}"
    shares = ["none"] + [f"{100 * a:.0f}–{100 * b:.0f} %" for a, b in pairwise(OVERLAPS[1:])]
    for axes, names, values, label, colour in (
        (left, metres, shape.by_distance, "distance of two road edges (km)", ACCENT),
        (right, shares, shape.by_overlap, "part of the way two trips share", GREEN),
    ):
        axes.bar(names, np.nan_to_num(values), color=colour, width=0.7)
        for place, value in enumerate(values):
            text = "no pair" if np.isnan(value) else f"{value:.2f}"
            axes.annotate(text, (place, np.nan_to_num(value)), xytext=(0, 3), ha="center",
                          textcoords="offset points", fontsize=8.5, color=INK)  # fmt: skip
        axes.set(xlabel=label, ylabel="implied correlation", ylim=(0, 1.1))
        axes.tick_params(axis="x", length=0)
    return figure

"""Figures of a data report: how long, how fast, when, where, and what floors cost."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.drawing import draw_network
from ideal_dispatch.pages import ACCENT, GREEN, INK, MUTED, ORANGE, named_bars, plain_axes
from ideal_dispatch.records.targets import FloorSlope

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def histograms(minutes: FloatArray, speeds_kmh: FloatArray, subtracted: BoolArray) -> "Figure":
    """Travel times, by how they were obtained, and speeds along the shortest way."""
    figure, (left, right) = plain_axes(2, 3.4)
    parts = [minutes[~subtracted], minutes[subtracted]]
    left.hist(parts, bins=_bins(np.quantile(minutes, 0.998)), stacked=True, color=[ACCENT, ORANGE],
              label=["stamps", "subtraction"])  # fmt: skip
    _median(left, minutes, "min")
    left.set(xlabel="travel time (min)", ylabel="trips")
    if parts[0].size and parts[1].size:
        left.legend(frameon=False, fontsize=9)
    right.hist(speeds_kmh, bins=_bins(speeds_kmh.max()), color=ACCENT)
    _median(right, speeds_kmh, "km/h")
    right.set(xlabel="speed along the shortest way (km/h)", ylabel="trips")
    return figure


def week(weekday: IntArray, hour: IntArray) -> "Figure":
    """Trips by day of the week and hour of the day, on the city's clock."""
    counts = np.zeros((7, 24), int)
    np.add.at(counts, (weekday, hour), 1)
    figure, (axes,) = plain_axes(1, 3.3)
    image = axes.imshow(counts, cmap="Blues", aspect="auto", vmin=0)
    axes.set_yticks(range(7), _DAYS)
    axes.set_xticks(range(0, 24, 2), [f"{h:02d}" for h in range(0, 24, 2)])
    axes.set_xlabel("hour of the day")
    axes.set_xticks(np.arange(-0.5, 24), minor=True)
    axes.set_yticks(np.arange(-0.5, 7), minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    figure.colorbar(image, ax=axes, label="trips", pad=0.01).outline.set_visible(False)
    return figure


def destinations(network: RoadNetwork, depots: Sequence[Depot], node: IntArray) -> "Figure":
    """A map of where the trips went; the larger the dot, the more trips end at a node."""
    figure = draw_network(network, depots, title="Where the trips went")
    axes = figure.axes[0]
    for collection in axes.collections:
        collection.set_alpha(0.45)
    ends, counts = np.unique(node, return_counts=True)
    axes.scatter(network.lon[ends], network.lat[ends], s=7 + 6 * counts, color=GREEN, alpha=0.6,
                 linewidths=0.4, edgecolors="white", zorder=3)  # fmt: skip
    return figure


def floor_regression(
    storeys: FloatArray, seconds: FloatArray, slope: FloorSlope, ylabel: str
) -> "Figure":
    """The rows of the floor regression, their means by floor, and the line."""
    figure, (axes,) = plain_axes(1, 3.8)
    axes.scatter(storeys, seconds, s=7, color=MUTED, alpha=0.25, linewidths=0, rasterized=True)
    floors, index = np.unique(storeys, return_inverse=True)
    counts = np.bincount(index)
    means = np.bincount(index, seconds) / counts
    enough = counts >= 5
    axes.scatter(floors[enough], means[enough], s=np.sqrt(counts[enough]) * 4, color=ACCENT,
                 zorder=3, label="mean of a floor")  # fmt: skip
    ends = np.array([floors[0], floors[-1]])
    centre_x, centre_y = storeys.mean(), seconds.mean()
    line = centre_y + slope.seconds_per_floor * (ends - centre_x)
    label = f"{slope.seconds_per_floor:.2f} s per floor"
    if np.isfinite(slope.lower):
        label += f" (95 %: {slope.lower:.2f} … {slope.upper:.2f})"
        for bound in (slope.lower, slope.upper):
            axes.plot(ends, centre_y + bound * (ends - centre_x), color=ORANGE, linewidth=1,
                      linestyle=(0, (4, 2)))  # fmt: skip
    axes.plot(ends, line, color=ORANGE, linewidth=2.2, label=label)
    low, high = np.quantile(seconds, [0.002, 0.998])
    axes.set_ylim(low - 0.08 * (high - low), high + 0.08 * (high - low))
    axes.set(xlabel="floors from the street", ylabel=ylabel)
    axes.legend(frameon=False, fontsize=9)
    return figure


def areas(trips: Sequence[tuple[str, int]]) -> "Figure":
    """Trips of the first 24 districts or areas, the first on top."""
    names, counts = zip(*trips[:24], strict=True)
    figure, (axes,) = plain_axes(1, 0.8 + 0.28 * len(names))
    named_bars(axes, names, counts, [f"{count:,}" for count in counts], ACCENT)
    axes.set_xlabel("trips")
    axes.margins(x=0.06)
    return figure


def _bins(highest: float) -> list[float]:
    return [float(edge) for edge in np.linspace(0, max(float(highest), 1.0), 41)]


def _median(axes: "Axes", values: FloatArray, unit: str) -> None:
    median = float(np.median(values))
    axes.set_ylim(0, 1.12 * axes.get_ylim()[1])
    axes.axvline(median, color=INK, linewidth=1.2, linestyle=(0, (3, 2)))
    axes.annotate(f"median {median:.1f} {unit}", (median, 1), xycoords=("data", "axes fraction"),
                  xytext=(5, -3), textcoords="offset points", va="top", fontsize=9,
                  color=INK)  # fmt: skip

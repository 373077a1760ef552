"""Maps of a road network, for reports and for looking at what was built."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import BoolArray, IntArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import atomic_write
from ideal_dispatch.network.depot import Depot
from ideal_dispatch.network.path import Path
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.network.road_network import DEFAULT_SPEED_KMH, RoadNetwork

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SUFFIXES = (".png", ".svg", ".pdf")
_PAPER = "#f7f5f0"
_INK = "#2b2d33"
_HEADER_IN = 0.5
_TIERS: tuple[tuple[str, str, float, tuple[str, ...]], ...] = (
    ("service", "#c9c6bf", 0.35, ("service",)),
    ("local", "#a3a7ad", 0.55, ("unclassified", "residential", "living_street")),
    ("tertiary", "#7d9bb5", 0.9, ("tertiary", "tertiary_link")),
    ("secondary", "#2f7fb5", 1.3, ("secondary", "secondary_link")),
    ("primary", "#e08a1e", 1.7, ("primary", "primary_link", "trunk_link")),
    ("trunk, motorway", "#b5482f", 2.1, ("trunk", "motorway", "motorway_link")),
)
"""Legend label, colour, width in points and classes, drawn in this order."""

_SPEED_TIERS = ((1, "limit up to 50 km/h or unknown", 0), (4, "above 50", 50), (5, "above 70", 70))
"""For a source without classes: tier that lends its look, label, and speed it lies above."""

_FEW_DEPOTS = 12

_PATH_COLOURS = "#56B4E9", "#E69F00"
"""Okabe–Ito: the primary path solid, the secondary dashed."""


def draw_network(
    network: RoadNetwork,
    depots: Sequence[Depot] = (),
    paths: Sequence[Path] = (),
    title: str = "",
    width_in: float = 10.0,
) -> "Figure":
    """A figure of the roads coloured by class, with depots and up to two paths."""
    from matplotlib.figure import Figure

    aspect = map_aspect(network)
    span = np.ptp(network.lat) * aspect / max(np.ptp(network.lon), 1e-9)
    height_in = float(np.clip(width_in * span, 3, 15))
    figure = Figure(figsize=(width_in, height_in + _HEADER_IN), dpi=150)
    figure.set_facecolor(_PAPER)
    map_share = height_in / (height_in + _HEADER_IN)
    axes = figure.add_axes((0, 0, 1, map_share))
    axes.set_axis_off()
    axes.set_aspect(aspect)
    axes.margins(0.03)

    everywhere = np.ones(network.num_edges, bool)
    draw_roads(axes, network, everywhere, _paler if paths else str)
    for path, colour, style in zip(paths, _PATH_COLOURS, ("-", (0, (3, 1.5))), strict=False):
        line = path.coordinates(network)
        axes.plot(*line.T, color="white", linewidth=5.5, zorder=3)
        axes.plot(*line.T, color=colour, linestyle=style, linewidth=3.5, zorder=4)
        axes.plot(*line[-1], marker="o", markersize=11, color=_INK, markeredgecolor="white",
                  markeredgewidth=2, zorder=5)  # fmt: skip
    axes.autoscale_view()
    mark_depots(axes, network, depots)
    scale_bar(axes, float(network.lat.mean()))
    if title:
        top = 1 - 0.5 * (1 - map_share)
        figure.text(0.02, top, title, fontsize=13, color=_INK, va="center")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles[::-1], labels[::-1], loc="center right",
        bbox_to_anchor=(0.99, 1 - 0.5 * (1 - map_share)),
        ncols=len(labels), frameon=False, fontsize=8, labelcolor=_INK,
        handlelength=1.4, columnspacing=1.2,
    )  # fmt: skip
    return figure


def map_aspect(network: RoadNetwork) -> float:
    """How much longer a degree of latitude is than one of longitude; needs coordinates."""
    if np.isnan(network.lon).any():
        raise InputError("this network has no coordinates; a map needs lon and lat")
    return float(1 / np.cos(np.radians(float(network.lat.mean()))))


def draw_roads(
    axes: "Axes", network: RoadNetwork, shown: BoolArray, shade: Callable[[str], Any] = str
) -> None:
    """Put the roads ``shown`` on a map; ``shade`` turns the colour of a class into another one."""
    from matplotlib.collections import LineCollection

    for label, colour, width, edges in _styled(network):
        lines = [network.polyline(int(edge)) for edge in edges[shown[edges]]]
        axes.add_collection(
            LineCollection(
                lines, colors=shade(colour), linewidths=width, label=label, capstyle="round"
            )
        )


def map_kind(path: str | os.PathLike[str]) -> str:
    """The suffix of a map file, or an :class:`InputError` where it is none."""
    kind = os.path.splitext(os.fspath(path))[1].lower()
    if kind not in _SUFFIXES:
        raise InputError(f"{os.fspath(path)}: a map ends in {', '.join(_SUFFIXES)}")
    return kind


def save_figure(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """Write a figure as .png, .svg or .pdf; same figure, same bytes."""
    import matplotlib as mpl

    kind = map_kind(path)
    metadata = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with atomic_write(path) as file, mpl.rc_context({"svg.hashsalt": "ideal-dispatch"}):
        figure.savefig(
            file, format=kind[1:], metadata=metadata[kind], facecolor=figure.get_facecolor()
        )


def _styled(network: RoadNetwork) -> Iterator[tuple[str, str, float, IntArray]]:
    """Label, colour, width and edges of each layer, minor roads first."""
    if np.unique(network.road_class).size > 1:
        for label, colour, width, names in _TIERS:
            codes = [ROAD_CLASSES.index(name) for name in names]
            edges = np.flatnonzero(np.isin(network.road_class, codes)).astype(np.int32)
            if edges.size:
                yield label, colour, width, edges
        return
    speed = np.nan_to_num(network.speed_kmh, nan=DEFAULT_SPEED_KMH)
    above = [limit for *_, limit in _SPEED_TIERS]
    layer = np.searchsorted(above, speed) - 1
    for i, (tier, label, _) in enumerate(_SPEED_TIERS):
        edges = np.flatnonzero(layer == i).astype(np.int32)
        if edges.size:
            yield label, _TIERS[tier][1], _TIERS[tier][2], edges


def _paler(colour: str) -> tuple[float, ...]:
    """So that roads step back behind the paths."""
    from matplotlib.colors import to_rgb

    return tuple(0.45 * c + 0.55 * p for c, p in zip(to_rgb(colour), to_rgb(_PAPER), strict=True))


def mark_depots(axes: "Axes", network: RoadNetwork, depots: Sequence[Depot]) -> None:
    """Put depots on a map whose limits are set, with the words in which their names differ."""
    few = len(depots) <= _FEW_DEPOTS
    west, east = axes.get_xlim()
    for depot, name in zip(depots, _short_names([d.name for d in depots]), strict=True):
        lon, lat = float(network.lon[depot.node]), float(network.lat[depot.node])
        axes.plot(
            lon, lat, marker="P", markersize=11 if few else 7, color="#c1121f",
            markeredgecolor="white", markeredgewidth=1.4 if few else 0.8, zorder=6,
        )  # fmt: skip
        left = lon > west + 0.8 * (east - west)
        gap = 8 if few else 4
        axes.annotate(
            name, (lon, lat), xytext=(-gap if left else gap, gap), textcoords="offset points",
            ha="right" if left else "left", fontsize=9 if few else 5.5, color=_INK,
            weight="bold", zorder=7,
            bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.7, "linewidth": 0},
        )  # fmt: skip


def _short_names(names: list[str]) -> list[str]:
    """Names without the last words that all of them share ("… Ambulance Depot")."""
    words = [name.split() for name in names]
    while len(words) > 1 and all(len(w) > 1 for w in words) and len({w[-1] for w in words}) == 1:
        words = [w[:-1] for w in words]
    return [" ".join(w) for w in words]


def scale_bar(axes: "Axes", lat: float) -> None:
    """Put a scale into the corner of a map whose limits are set."""
    west, east = axes.get_xlim()
    south, north = axes.get_ylim()
    metre = 1 / (111_195 * np.cos(np.radians(lat)))
    room = (east - west) / metre / 4
    length = max(step for step in (1, 2, 5) for step in [step * 10 ** np.floor(np.log10(room))]
                 if step <= room)  # fmt: skip
    x, y = west + 0.02 * (east - west), south + 0.03 * (north - south)
    axes.plot([x, x + length * metre], [y, y], color=_INK, linewidth=2, solid_capstyle="butt",
              zorder=6)  # fmt: skip
    text = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
    axes.annotate(text, (x, y), xytext=(0, 4), textcoords="offset points", fontsize=8, color=_INK)

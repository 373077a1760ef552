"""Maps of a road network, for reports and for looking at what was built."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.depot import Depot
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.network.road_network import DEFAULT_SPEED_KMH, RoadNetwork
from ideal_dispatch.pages import INK, SMALL_PT, WIDTH_IN, plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PAPER = "#f7f5f0"
_QUIET = "#dcdfe3"
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

RoadLayer = tuple[str, Any, Any, IntArray]
"""Label in the legend, colours, widths in points, and edges; one look for all, or one for each."""


def draw_network(
    network: RoadNetwork,
    depots: Sequence[Depot] = (),
    title: str = "",
    layers: Iterable[RoadLayer] | None = None,
) -> "Figure":
    """A map of the roads with depots; ``layers`` are the roads by class by default."""
    from matplotlib.figure import Figure

    aspect = map_aspect(network)
    span = np.ptp(network.lat) * aspect / max(np.ptp(network.lon), 1e-9)
    height_in = float(np.clip(WIDTH_IN * span, 3, 15))
    figure = Figure(figsize=(WIDTH_IN, height_in + _HEADER_IN), dpi=150)
    figure.set_facecolor(_PAPER)
    map_share = height_in / (height_in + _HEADER_IN)
    axes = figure.add_axes((0, 0, 1, map_share))
    axes.set_axis_off()
    axes.set_aspect(aspect)
    axes.margins(0.03)

    for layer in road_layers(network) if layers is None else layers:
        draw_roads(axes, network, layer)
    axes.autoscale_view()
    mark_depots(axes, network, depots)
    scale_bar(axes, float(network.lat.mean()))
    if title:
        top = 1 - 0.5 * (1 - map_share)
        figure.text(0.02, top, title, fontsize=13, color=INK, va="center")
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        figure.legend(
            handles[::-1], labels[::-1], loc="center right",
            bbox_to_anchor=(0.99, 1 - 0.5 * (1 - map_share)),
            ncols=len(labels), frameon=False, fontsize=8, labelcolor=INK,
            handlelength=1.4, columnspacing=1.2,
        )  # fmt: skip
    return figure


def map_aspect(network: RoadNetwork) -> float:
    """How much longer a degree of latitude is than one of longitude; needs coordinates."""
    if np.isnan(network.lon).any():
        raise InputError("this network has no coordinates; a map needs lon and lat")
    return float(1 / np.cos(np.radians(float(network.lat.mean()))))


def draw_roads(axes: "Axes", network: RoadNetwork, layer: RoadLayer) -> None:
    """Put a layer of roads on a map, the last of them on top."""
    from matplotlib.collections import LineCollection

    label, colours, widths, edges = layer
    lines = [network.polyline(int(edge)) for edge in edges]
    axes.add_collection(
        LineCollection(lines, colors=colours, linewidths=widths, label=label, capstyle="round")
    )


def road_layers(network: RoadNetwork) -> Iterator[RoadLayer]:
    """The roads by class, or by speed where classes are not known; minor roads first."""
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


def map_of_places(
    lon: FloatArray, lat: FloatArray, network: RoadNetwork | None
) -> tuple["Figure", "Axes"]:
    """A map that holds all these places, on the larger roads of the network if there is one."""
    aspect = 1.0 / float(np.cos(np.radians(lat.mean())))
    pad = 0.03 * max(np.ptp(lon), aspect * np.ptp(lat), 0.005)
    west, east = lon.min() - pad, lon.max() + pad
    south, north = lat.min() - pad / aspect, lat.max() + pad / aspect
    height_in = float(np.clip(WIDTH_IN * aspect * (north - south) / (east - west), 3.0, 9.0))
    figure, (axes,) = plain_axes(1, height_in)
    axes.set_axis_off()
    axes.set_aspect(aspect)
    axes.set(xlim=(west, east), ylim=(south, north), autoscale_on=False)
    if network is not None:
        layers = list(road_layers(network))
        for _, _, width, edges in layers[2:] if len(layers) > 3 else layers:
            draw_roads(axes, network, ("", _QUIET, 0.6 * width, edges))
    scale_bar(axes, float(lat.mean()))
    return figure, axes


def map_legend(axes: "Axes") -> None:
    """Say what the marks on a map are."""
    axes.legend(frameon=True, framealpha=0.9, edgecolor="none", fontsize=SMALL_PT,
                loc="upper right", labelcolor=INK)  # fmt: skip


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
            ha="right" if left else "left", fontsize=9 if few else 5.5, color=INK,
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
    axes.plot([x, x + length * metre], [y, y], color=INK, linewidth=2, solid_capstyle="butt",
              zorder=6)  # fmt: skip
    text = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
    axes.annotate(text, (x, y), xytext=(0, 4), textcoords="offset points", fontsize=8, color=INK)

"""An incident on the map: both ambulances' ways, and what was promised along them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.geodesy import LocalPlane
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.pages import ACCENT, INK, MUTED, ORANGE, SMALL_PT, WIDTH_IN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROAD, _MAIN_ROAD, _DEPOT = "#d9dce0", "#b9bec5", "#c1121f"
_MAIN = np.isin(
    ROAD_CLASSES,
    ("motorway", "trunk", "primary", "secondary", "motorway_link", "trunk_link", "primary_link"),
)
_DASHES = (0, (2.2, 1.3))
_TIMES_IN = 2.3
_LOWEST_IN, _HIGHEST_IN = 2.8, 5.5  # of the map, which is as high as its ways need


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """One ambulance's drive to a call; ``expected_s`` is the total time promised at each road."""

    who: str
    depot: Depot
    edges: Sequence[int]
    seconds: Sequence[float]
    expected_s: Sequence[float]

    @classmethod
    def of(cls, who: str, entry: Mapping[str, Any], drive: str, world: str) -> "Way":
        """A drive of a log's line by its name there."""
        found = entry["drives"][drive]
        station = entry["stations"][found["station"]]
        return cls(who, Depot(station["depot"], station["node"]), **found[world])


def incident_map(
    network: RoadNetwork, entry: Mapping[str, Any], policy: str, world: str
) -> "Figure":
    """The call of a log's line with a policy's ambulances, the second whether it was sent or not.

    Depots that no ambulance left are shown where they lie within the map.
    """
    decision = entry["decisions"][policy]
    named = (("first", decision["primary"]), ("second", decision["second"]))
    ways = [Way.of(who, entry, drive, world) for who, drive in named if drive]
    highest = max((max(way.edges, default=0) for way in ways), default=0)
    if highest >= network.num_edges:
        raise InputError(
            f"incident {entry['incident']['name']}: edge {highest} is not on this network; "
            "give the network of the run"
        )
    depots = [Depot(one["depot"], one["node"]) for one in entry["stations"]]
    return draw_ways(network, entry["incident"]["node"], ways, depots)


def draw_ways(
    network: RoadNetwork, node: int, ways: Sequence[Way], depots: Sequence[Depot] = ()
) -> "Figure":
    """Above the streets that two ambulances drove; below the total time promised on the way.

    Where both drive the same street, the second one's dashes lie on the first
    one's line. ``depots`` are shown where they lie within the map.
    """
    from matplotlib.figure import Figure

    if np.isnan(network.lon).any():
        raise InputError("this network has no coordinates; a map needs lon and lat")
    chart = _Chart.of(network, node, ways, depots)
    map_in = WIDTH_IN * chart.height_m / chart.width_m
    figure = Figure(figsize=(WIDTH_IN, map_in + _TIMES_IN), dpi=150, layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=(map_in, _TIMES_IN))
    _map(above, network, chart)
    _times(below, ways)
    return figure


def words(entry: Mapping[str, Any], policy: str, world: str) -> str:
    """The incident in a few sentences."""
    decision, incident = entry["decisions"][policy], entry["incident"]
    first = entry["drives"][decision["primary"]]
    text = f"{incident['name']}, {incident['at'][:16].replace('T', ' ')}. "
    text += _trip("First ambulance", entry, first, world)
    if decision["second"] is None:
        return f"{text} There was no second. {_sentence(decision['reason'])}"
    second = entry["drives"][decision["second"]]
    saved = sum(first[world]["seconds"]) - sum(second[world]["seconds"])
    ahead = (
        f"The second is {saved:.0f} s sooner."
        if saved >= 0.5
        else f"The second is {-saved:.0f} s later and saves nothing."
        if saved <= -0.5
        else "Both take the same time."
    )
    return f"{text} {_trip('Second', entry, second, world)} {ahead}"


def _trip(who: str, entry: Mapping[str, Any], drive: Mapping[str, Any], world: str) -> str:
    station = entry["stations"][drive["station"]]
    seconds, expected = drive[world]["seconds"], drive[world]["expected_s"]
    promised = f"promised {clock(expected[0])}, " if expected else ""
    return f"{who} from {station['depot']}: {promised}took {clock(sum(seconds))}."


def _sentence(reason: str) -> str:
    return reason if reason.endswith(".") else f"{reason}."


def clock(seconds: float) -> str:
    """Minutes and seconds, as 4:07."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


# --- the map ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Chart:
    """What a map shows, in metres: the ways by who drove them, the call, depots and corners."""

    plane: LocalPlane
    lines: dict[str, FloatArray]
    goal: FloatArray
    depots: dict[str, FloatArray]
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(
        cls, network: RoadNetwork, node: int, ways: Sequence[Way], depots: Sequence[Depot]
    ) -> "_Chart":
        plane = LocalPlane(float(network.lat.mean()))
        goal = _place(network, plane, node)
        lines = {way.who: _way(network, plane, way.edges) for way in ways}
        left = {way.depot.name: _place(network, plane, way.depot.node) for way in ways}
        low, high = _window(
            np.concatenate([goal[None], *lines.values(), *(place[None] for place in left.values())])
        )
        every = left | {depot.name: _place(network, plane, depot.node) for depot in depots}
        shown = {
            name: place
            for name, place in every.items()
            if name in left or ((place > low) & (place < high)).all()
        }
        return cls(plane, lines, goal, shown, low, high)

    @property
    def width_m(self) -> float:
        return float(self.high[0] - self.low[0])

    @property
    def height_m(self) -> float:
        return float(self.high[1] - self.low[1])


def _map(axes: "Axes", network: RoadNetwork, chart: _Chart) -> None:
    axes.set_axis_off()
    axes.set_aspect("equal")
    _roads(axes, network, chart.plane, chart.low, chart.high)
    looks = ((ACCENT, "-", 5.5), (ORANGE, _DASHES, 2.8))
    for (who, line), (colour, dashes, width) in zip(chart.lines.items(), looks, strict=False):
        if dashes == "-":
            axes.plot(*line.T, color="white", linewidth=width + 2.5, zorder=3)
        else:
            axes.plot(*line.T, color="white", linewidth=width + 1.2, zorder=4.5, alpha=0.85)
        axes.plot(*line.T, color=colour, linestyle=dashes, linewidth=width, zorder=5,
                  label=who, dash_capstyle="butt", solid_capstyle="round")  # fmt: skip
    axes.plot(*chart.goal, marker="o", markersize=13, color=INK, markeredgecolor="white",
              markeredgewidth=2, zorder=7)  # fmt: skip
    for name, place in chart.depots.items():
        axes.plot(*place, marker="P", markersize=13, color=_DEPOT, markeredgecolor="white",
                  markeredgewidth=1.5, zorder=6)  # fmt: skip
        at_the_right = place[0] > chart.high[0] - 0.2 * chart.width_m
        axes.annotate(
            name, (place[0], place[1]), xytext=(-9 if at_the_right else 9, 7),
            textcoords="offset points", ha="right" if at_the_right else "left",
            fontsize=SMALL_PT, color=INK, weight="bold", zorder=8,
            bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.75,
                  "linewidth": 0},
        )  # fmt: skip
    axes.set(xlim=(chart.low[0], chart.high[0]), ylim=(chart.low[1], chart.high[1]))
    _scale_bar(axes, chart.low, chart.high)


def _window(seen: FloatArray) -> tuple[FloatArray, FloatArray]:
    """South-west and north-east corner of a map that shows all points and fits on a page."""
    middle = (seen.max(axis=0) + seen.min(axis=0)) / 2
    width, height = 1.18 * np.maximum(seen.max(axis=0) - seen.min(axis=0), 400.0)
    width = max(width, height * WIDTH_IN / _HIGHEST_IN)
    span = np.array([width, max(height, width * _LOWEST_IN / WIDTH_IN)])
    return middle - span / 2, middle + span / 2


def _place(network: RoadNetwork, plane: LocalPlane, node: int) -> FloatArray:
    return plane.to_metres(np.array([network.lon[node], network.lat[node]]))


def _way(network: RoadNetwork, plane: LocalPlane, edges: Sequence[int]) -> FloatArray:
    if not len(edges):
        return np.empty((0, 2))
    return plane.to_metres(np.concatenate([network.polyline(edge) for edge in edges]))


def _roads(
    axes: "Axes", network: RoadNetwork, plane: LocalPlane, low: FloatArray, high: FloatArray
) -> None:
    """The streets around, those of both directions once."""
    from matplotlib.collections import LineCollection

    ends = plane.to_metres(np.column_stack([network.lon, network.lat]))
    inside: BoolArray = np.all((ends > low) & (ends < high), axis=1)
    near = np.flatnonzero(inside[network.tail] | inside[network.head])
    pair = np.sort(np.column_stack([network.tail[near], network.head[near]]), axis=1)
    once: IntArray = near[np.unique(pair, axis=0, return_index=True)[1]].astype(np.int32)
    main = _MAIN[network.road_class[once]]
    for edges, colour, width in ((once[~main], _ROAD, 0.8), (once[main], _MAIN_ROAD, 1.5)):
        lines = [plane.to_metres(network.polyline(int(edge))) for edge in edges]
        axes.add_collection(
            LineCollection(
                lines, colors=colour, linewidths=width, capstyle="round", rasterized=True
            ),
            autolim=False,
        )


def _scale_bar(axes: "Axes", low: FloatArray, high: FloatArray) -> None:
    room = float(high[0] - low[0]) / 4
    power = 10.0 ** np.floor(np.log10(room))
    length = max(step * power for step in (1, 2, 5) if step * power <= room)
    x, y = low + 0.02 * (high - low)
    axes.plot([x, x + length], [y, y], color=INK, linewidth=2, solid_capstyle="butt", zorder=6)
    text = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
    axes.annotate(
        text, (x, y), xytext=(0, 4), textcoords="offset points", fontsize=SMALL_PT, color=INK
    )


# --- promised times -----------------------------------------------------------------


def _times(axes: "Axes", ways: Sequence[Way]) -> None:
    """Elapsed time plus the promised rest, as in the paper's first figure."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(MUTED)
    axes.tick_params(colors=INK, labelsize=SMALL_PT)
    ends = []
    for way, colour, dashes in zip(ways, (ACCENT, ORANGE), ("-", _DASHES), strict=False):
        seconds = np.array(way.seconds, np.float64)
        elapsed = np.concatenate([[0.0], np.cumsum(seconds)]) / 60
        total = np.array([*way.expected_s, seconds.sum()]) / 60
        axes.plot(elapsed, total, color=colour, linestyle=dashes, linewidth=1.8, marker="o",
                  markersize=2.8, label=f"{way.who}, from {way.depot.name}")  # fmt: skip
        axes.plot(elapsed[-1], total[-1], marker="o", markersize=9, color=colour,
                  markeredgecolor="white", zorder=5)  # fmt: skip
        ends.append((float(elapsed[-1]), float(total[-1]), colour))
    close = len(ends) == 2 and abs(ends[0][1] - ends[1][1]) < 0.3
    for x, y, colour in ends:
        lower = close and y == min(end[1] for end in ends) and colour == ORANGE
        axes.annotate(
            clock(60 * y), (x, y), xytext=(9, -8 if lower else 4 if close else 0), va="center",
            textcoords="offset points", fontsize=10, weight="bold", color=colour,
        )  # fmt: skip
    axes.set(xlabel="minutes since the start", ylabel="total time promised (min)")
    axes.set_xlim(0, 1.12 * max(max(end[0] for end in ends), 0.1))
    axes.margins(y=0.2)
    axes.legend(frameon=False, fontsize=SMALL_PT, loc="best", labelcolor=INK)

"""An incident on the map: both ambulances' ways, and what was promised along them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.drawing import draw_roads, map_aspect, mark_depots, scale_bar
from ideal_dispatch.pages import ACCENT, INK, MUTED, ORANGE, SMALL_PT, WIDTH_IN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROAD = "#cdd1d6"
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

    aspect = map_aspect(network)
    lines = [_line(network, way.edges) for way in ways]
    starts = [way.depot for way in ways]
    nodes = [node, *(depot.node for depot in starts)]
    ends = np.column_stack([network.lon[nodes], network.lat[nodes]])
    low, high = _window(np.concatenate([ends, *lines]), aspect)
    width, height = high - low
    map_in = WIDTH_IN * aspect * height / width
    figure = Figure(figsize=(WIDTH_IN, map_in + _TIMES_IN), dpi=150, layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=(map_in, _TIMES_IN))
    above.set_axis_off()
    above.set_aspect(aspect)
    above.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    _draw_map(above, network, node, dict(zip(ways, lines, strict=True)), [*starts, *depots])
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


def _draw_map(
    axes: "Axes",
    network: RoadNetwork,
    node: int,
    lines: Mapping[Way, FloatArray],
    depots: Sequence[Depot],
) -> None:
    (west, east), (south, north) = axes.get_xlim(), axes.get_ylim()
    inside = (network.lon > west) & (network.lon < east)
    inside &= (network.lat > south) & (network.lat < north)
    draw_roads(axes, network, inside[network.tail] | inside[network.head], lambda _: _ROAD)
    looks = ((ACCENT, "-", 5.5), (ORANGE, _DASHES, 2.8))
    for (way, line), (colour, dashes, width) in zip(lines.items(), looks, strict=False):
        axes.plot(*line.T, color="white", linewidth=width + 1.8, zorder=4, alpha=0.9)
        axes.plot(*line.T, color=colour, linestyle=dashes, linewidth=width, zorder=5,
                  label=way.who, dash_capstyle="butt", solid_capstyle="round")  # fmt: skip
    axes.plot(network.lon[node], network.lat[node], marker="o", markersize=13, color=INK,
              markeredgecolor="white", markeredgewidth=2, zorder=7)  # fmt: skip
    mark_depots(axes, network, [one for one in dict.fromkeys(depots) if inside[one.node]])
    scale_bar(axes, float(network.lat.mean()))


def _window(seen: FloatArray, aspect: float) -> tuple[FloatArray, FloatArray]:
    """South-west and north-east corner of a map that shows all points and fits on a page."""
    square = np.array([1.0, aspect])  # a degree of longitude is the unit of both
    low, high = (seen * square).min(axis=0), (seen * square).max(axis=0)
    least = aspect * 400 / 111_195  # metres
    width, height = 1.18 * np.maximum(high - low, least)
    width = max(width, height * WIDTH_IN / _HIGHEST_IN)
    span = np.array([width, max(height, width * _LOWEST_IN / WIDTH_IN)])
    middle = (low + high) / 2
    return (middle - span / 2) / square, (middle + span / 2) / square


def _line(network: RoadNetwork, edges: Sequence[int]) -> FloatArray:
    if not len(edges):
        return np.empty((0, 2))
    return np.concatenate([network.polyline(edge) for edge in edges])


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

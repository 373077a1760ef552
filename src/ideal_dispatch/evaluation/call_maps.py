"""Calls on the map: both ambulances' drives, and what was promised along them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.strategies import VOLUMES
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.drawing import (
    draw_roads,
    map_aspect,
    mark_depots,
    road_layers,
    scale_bar,
)
from ideal_dispatch.pages import ACCENT, INK, ORANGE, SMALL_PT, WIDTH_IN, plain_axes
from ideal_dispatch.replay.log import logged_depot
from ideal_dispatch.report import Figure, clock, file_name

if TYPE_CHECKING:
    import matplotlib.figure as drawn
    from matplotlib.axes import Axes

_EACH = 4
"""Calls drawn for each reason to look at them."""

_ROAD = "#cdd1d6"
_DASHES = (0, (2.2, 1.3))
_TIMES_IN = 2.3
_LOWEST_IN, _HIGHEST_IN = 2.8, 5.5  # of the map, which is as high as its drives need


def call_maps(
    judged: Judged, network: RoadNetwork, chosen: int | None, why: str
) -> Iterator[Figure]:
    """Maps of the calls that stand out, first of the chosen one and ``why``."""
    outcomes, policy = judged.outcomes, judged.shown
    own = judged.at(policy, VOLUMES[0])
    groups = standing_out(judged, policy)
    if chosen is not None:
        others = {key: [n for n in found if n != chosen] for key, found in groups.items()}
        groups = {why: [chosen], **others}
    entries = outcomes.entries({number for numbers in groups.values() for number in numbers})
    for reason, numbers in groups.items():
        for number in numbers:
            entry = entries[number]
            caption = words(entry, policy, outcomes.world)
            if entry["decisions"][policy]["second"] is not None:
                goes = "it was sent" if own.sent[number] else "it was not sent"
                score_s = entry["decisions"][policy]["score_s"]
                caption += (
                    f" {policy} valued the second at {score_s:.1f} s; "
                    f"the threshold at {own.form} is {own.threshold_s:.1f} s, so {goes}."
                )
            figure = incident_map(network, entry, policy, outcomes.world)
            name = file_name(outcomes.incidents[number])
            yield Figure(f"incident-{name}", reason.capitalize(), figure, caption)


def standing_out(judged: Judged, policy: str) -> dict[str, list[int]]:
    """Incidents worth a look by reason: largest savings and losses at +25 %, and typical ones.

    A loss is against interval-selective at the same volume, or else a second that was not sent and
    would have saved.
    """
    own, drives = judged.at(policy, VOLUMES[0]), judged.outcomes.policy(policy)
    saved_s = np.where(own.sent, drives.primary_s - own.arrival_s, 0.0)
    reference = judged.outcomes.roles.get("interval")
    if reference is not None and reference != policy:
        lost_s = -judged.saved_s(policy, reference, VOLUMES[0])
    else:
        lost_s = np.where(own.sent, 0.0, np.nan_to_num(drives.primary_s - drives.second_s))
    usual_s = np.where(own.sent, np.abs(drives.primary_s - np.median(drives.primary_s)), np.inf)
    found: dict[str, list[int]] = {}
    taken: set[int] = set()
    for reason, worth, least in (
        ("largest saving", saved_s, 0.5),
        ("largest loss", lost_s, 0.5),
        ("typical", -usual_s, -np.inf),
    ):
        order = np.argsort(-worth, kind="stable").tolist()
        found[reason] = [i for i in order if worth[i] > least and i not in taken][:_EACH]
        taken.update(found[reason])
    return found


# --- one call -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class DrawnDrive:
    """One ambulance's drive to a call; ``expected_s`` is the total time promised at each road."""

    who: str
    depot: Depot
    edges: Sequence[int]
    seconds: Sequence[float]
    expected_s: Sequence[float]

    @property
    def words(self) -> str:
        promised = f"promised {clock(self.expected_s[0])}, " if self.expected_s else ""
        where = f"{self.depot.name}, on the road" if self.depot.on_road else self.depot.name
        return f"{self.who} from {where}: {promised}took {clock(sum(self.seconds))}."


def drives_of(entry: Mapping[str, Any], policy: str, world: str) -> list[DrawnDrive]:
    """The drives of a policy's ambulances in a log's line, the second whether sent or not."""
    found = []
    for who, key in (("First ambulance", "primary"), ("Second", "second")):
        if name := entry["decisions"][policy][key]:
            drive = entry["drives"][name]
            depot = logged_depot(entry["stations"][drive["station"]])
            found.append(DrawnDrive(who, depot, **drive[world]))
    return found


def words(entry: Mapping[str, Any], policy: str, world: str) -> str:
    """The incident in a few sentences."""
    incident, (first, *rest) = entry["incident"], drives_of(entry, policy, world)
    text = f"{incident['name']}, {incident['at'][:16].replace('T', ' ')}. {first.words}"
    if not rest:
        reason = entry["decisions"][policy]["reason"].removesuffix(".")
        return f"{text} There was no second. {reason}."
    saved_s = sum(first.seconds) - sum(rest[0].seconds)
    ahead = "Both take the same time."
    if saved_s >= 0.5:
        ahead = f"The second is {saved_s:.0f} s sooner."
    elif saved_s <= -0.5:
        ahead = f"The second is {-saved_s:.0f} s later and saves nothing."
    return f"{text} {rest[0].words} {ahead}"


def incident_map(
    network: RoadNetwork, entry: Mapping[str, Any], policy: str, world: str
) -> "drawn.Figure":
    """Above the streets that two ambulances drove; below the total time promised on the way.

    Where both drive the same street, the second one's dashes lie on the first one's line. Depots
    that no ambulance left are shown where they lie within the map.
    """
    drives, node = drives_of(entry, policy, world), entry["incident"]["node"]
    highest = max((max(one.edges, default=0) for one in drives), default=0)
    if highest >= network.num_edges:
        raise InputError(
            f"incident {entry['incident']['name']}: edge {highest} is not on this network; "
            "give the network of the run"
        )
    aspect = map_aspect(network)
    lines = [
        np.concatenate([np.empty((0, 2)), *(network.polyline(edge) for edge in one.edges)])
        for one in drives
    ]
    nodes = [node, *(one.depot.node for one in drives)]
    ends = np.column_stack([network.lon[nodes], network.lat[nodes]])
    low, high = _window(np.concatenate([ends, *lines]), aspect)
    width, height = high - low
    heights = (WIDTH_IN * aspect * height / width, _TIMES_IN)
    figure, (above, below) = plain_axes(2, sum(heights), rows=2, heights=heights)
    above.set_axis_off()
    above.set_aspect(aspect)
    above.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    inside = (network.lon > low[0]) & (network.lon < high[0])
    inside &= (network.lat > low[1]) & (network.lat < high[1])
    shown = inside[network.tail] | inside[network.head]
    for _, _, thickness, edges in road_layers(network):
        draw_roads(above, network, ("", _ROAD, thickness, edges[shown[edges]]))
    looks = ((ACCENT, "-", 5.5), (ORANGE, _DASHES, 2.8))
    for one, line, (colour, dashes, thickness) in zip(drives, lines, looks, strict=False):
        above.plot(*line.T, color="white", linewidth=thickness + 1.8, zorder=4, alpha=0.9)
        above.plot(*line.T, color=colour, linestyle=dashes, linewidth=thickness, zorder=5,
                   label=one.who, dash_capstyle="butt", solid_capstyle="round")  # fmt: skip
    above.plot(network.lon[node], network.lat[node], marker="o", markersize=13, color=INK,
               markeredgecolor="white", markeredgewidth=2, zorder=7)  # fmt: skip
    depots = [one.depot for one in drives] + [logged_depot(one) for one in entry["stations"]]
    mark_depots(above, network, [one for one in dict.fromkeys(depots) if inside[one.node]])
    scale_bar(above, float(network.lat.mean()))
    _times(below, drives)
    return figure


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


def _times(axes: "Axes", drives: Sequence[DrawnDrive]) -> None:
    """Elapsed time plus the promised rest, as in the paper's first figure."""
    ends = []
    for one, colour, dashes in zip(drives, (ACCENT, ORANGE), ("-", _DASHES), strict=False):
        seconds = np.array(one.seconds, np.float64)
        elapsed = np.concatenate([[0.0], np.cumsum(seconds)]) / 60
        total = np.array([*one.expected_s, seconds.sum()]) / 60
        axes.plot(elapsed, total, color=colour, linestyle=dashes, linewidth=1.8, marker="o",
                  markersize=2.8, label=f"{one.who}, from {one.depot.name}")  # fmt: skip
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

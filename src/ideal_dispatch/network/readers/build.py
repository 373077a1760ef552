"""From road segments of any source to a :class:`RoadNetwork`, with a report.

Every reader gives :class:`RawRoads`. Here segments are checked, cut to the box
asked for, reduced to the largest strongly connected part and simplified, in this
order; turn restrictions follow what is left. What is lost on the way is counted by reason.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import IntArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.readers.simplification import merge_chains, merged_turn
from ideal_dispatch.network.readers.turn_restrictions import (
    Restriction,
    RoadEdges,
    forbidden_turns,
)
from ideal_dispatch.network.road_class import ROAD_CLASSES, USUAL_SPEED_KMH
from ideal_dispatch.network.road_network import DEFAULT_SPEED_KMH, RoadNetwork
from ideal_dispatch.network.turns import Turn

NodeId = int | str
Point = tuple[float, float]
Box = tuple[float, float, float, float]
"""West, south, east, north in degrees."""

Progress = Callable[[str], None]

UNCONNECTED = "nodes that cannot both reach and be reached"
UNCONNECTED_KM = "kilometres outside the largest strongly connected part"
_SHORTEST_M = 0.1  # a road has a length, even between two nodes on one spot
_BY_CLASS = "segments without a speed limit, driven at what is usual on their class of road"


class Segment(NamedTuple):
    """A piece of road between two nodes, as a reader found it.

    ``points`` are lon/lat from tail to head, None for a straight line.
    ``reverse`` adds the opposite edge; ``oneway`` is the street's attribute.
    ``way`` is the id by which turn restrictions name it.
    """

    tail: NodeId
    head: NodeId
    length_m: float
    points: tuple[Point, ...] | None = None
    speed_kmh: float = float("nan")
    lanes: float = float("nan")
    oneway: bool = False
    reverse: bool = True
    road_class: int = 0
    name: str = ""
    way: int = 0


@dataclass
class BuildReport:
    """What was read, dropped and assumed while a network was built."""

    source: str
    read: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    assumed: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "read": dict(self.read),
            "dropped": dict(sorted(self.dropped.items())),
            "assumed": dict(sorted(self.assumed.items())),
        }


class RawRoads(NamedTuple):
    """What a reader found: places of nodes by their id, segments, and the report so far.

    Readers of files that hold turn restrictions give those too.
    """

    places: Mapping[Any, Point]
    segments: Iterable[Segment]
    report: BuildReport
    restrictions: Sequence[Restriction] = ()


def build_network(
    roads: RawRoads,
    *,
    box: Box | None = None,
    simplify: bool = True,
    progress: Progress = lambda stage: None,
) -> RoadNetwork:
    """The network of the given roads; their report is filled and kept as its provenance."""
    places, _, report, restrictions = roads
    progress("checking segments")
    kept = _usable(roads, box)
    if not kept:
        raise InputError(f"{report.source}: no drivable road found; check the area and the columns")
    # in the order of their numbers, or of their text where some are not numbers
    ids = sorted(
        {node for segment in kept for node in (segment.tail, segment.head)},
        key=lambda node: (len(node), node) if isinstance(node, str) else node,
    )
    edges = _directed(kept, {node: i for i, node in enumerate(ids)})

    progress("finding the largest strongly connected part")
    edges, on_network = _largest_part(edges, len(ids), report)

    turns: list[list[Turn]] = []  # the sequences of edges that each restriction forbids
    if restrictions:
        tail, head = ([ids[node] for node in end.tolist()] for end in (edges.tail, edges.head))
        ways = [kept[segment].way for segment in edges.segment.tolist()]
        turns = forbidden_turns(restrictions, RoadEdges(tail, head, ways), report.dropped)
    progress("simplifying")
    chains = [[edge] for edge in range(len(edges.tail))]
    if simplify:
        every = [turn for of_one in turns for turn in of_one]
        chains = merge_chains(edges.tail, edges.head, edges.length_m, every)
        report.read["nodes before simplification"] = int(on_network.sum())
        report.read["edges before simplification"] = len(edges.tail)

    progress("assembling")
    return _assemble(chains, edges, kept, ids, places, turns, report)


class _Directed(NamedTuple):
    tail: IntArray
    head: IntArray
    length_m: npt.NDArray[np.float64]
    segment: IntArray
    backward: npt.NDArray[np.bool_]

    def where(self, keep: npt.NDArray[np.bool_]) -> "_Directed":
        return _Directed._make(column[keep] for column in self)


def _usable(roads: RawRoads, box: Box | None) -> list[Segment]:
    places, segments, report, _ = roads
    west, south, east, north = box or (-np.inf, -np.inf, np.inf, np.inf)
    kept = []
    for segment in segments:
        report.read["road segments"] += 1
        usual_kmh = USUAL_SPEED_KMH.get(ROAD_CLASSES[segment.road_class])
        if segment.speed_kmh != segment.speed_kmh and usual_kmh is not None:
            report.assumed[_BY_CLASS] += 1
            segment = segment._replace(speed_kmh=usual_kmh)
        ends = [places[end] for end in (segment.tail, segment.head) if end in places]
        if len(ends) < 2:
            report.dropped["segments with an end that is not in the data"] += 1
        elif not all(west <= lon <= east and south <= lat <= north for lon, lat in ends):
            report.dropped["segments outside the box"] += 1
        elif segment.tail == segment.head:
            report.dropped["loops from a node to itself"] += 1
        elif not 0 <= segment.length_m < float("inf"):
            report.dropped["segments without a length"] += 1
        elif segment.length_m == 0:
            report.assumed[f"segments between two nodes on one spot, {_SHORTEST_M} m long"] += 1
            kept.append(segment._replace(length_m=_SHORTEST_M))
        else:
            kept.append(segment)
    return kept


def _directed(segments: list[Segment], number: Mapping[NodeId, int]) -> _Directed:
    tail = np.array([number[s.tail] for s in segments], np.int32)
    head = np.array([number[s.head] for s in segments], np.int32)
    length = np.array([s.length_m for s in segments])
    order = np.arange(len(segments), dtype=np.int32)
    back = np.flatnonzero([s.reverse for s in segments])
    return _Directed(
        np.concatenate([tail, head[back]]),
        np.concatenate([head, tail[back]]),
        np.concatenate([length, length[back]]),
        np.concatenate([order, order[back]]),
        np.repeat([False, True], [len(segments), len(back)]),
    )


def _largest_part(
    edges: _Directed, num_nodes: int, report: BuildReport
) -> tuple[_Directed, npt.NDArray[np.bool_]]:
    from scipy.sparse import coo_array  # slow to import; who reads depots needs none of it
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(edges.tail), np.int8)
    graph = coo_array((ones, (edges.tail, edges.head)), shape=(num_nodes, num_nodes))
    parts, label = connected_components(graph.tocsr(), directed=True, connection="strong")
    largest = label == np.argmax(np.bincount(label))
    keep = largest[edges.tail] & largest[edges.head]
    if not keep.any():
        raise InputError(
            f"{report.source}: no two nodes can reach each other; check directions and node ids"
        )
    if parts > 1:
        report.dropped[UNCONNECTED] += int((~largest).sum())
        report.dropped["edges outside the largest strongly connected part"] += int((~keep).sum())
        report.dropped[UNCONNECTED_KM] += round(float(edges.length_m[~keep].sum()) / 1000)
    return edges.where(keep), largest


def _assemble(
    chains: list[list[int]],
    edges: _Directed,
    segments: list[Segment],
    ids: list[NodeId],
    places: Mapping[Any, Point],
    turns: list[list[Turn]],
    report: BuildReport,
) -> RoadNetwork:
    rows = sorted(
        (int(edges.tail[chain[0]]), int(edges.head[chain[-1]]), chain) for chain in chains
    )
    used, renumbered = np.unique([(tail, head) for tail, head, _ in rows], return_inverse=True)
    renumbered = renumbered.reshape(-1, 2)
    merged = [
        _merged([(segments[edges.segment[e]], bool(edges.backward[e])) for e in chain], places)
        for *_, chain in rows
    ]
    known = [s.speed_kmh == s.speed_kmh for s in segments]
    partly = sum(len({known[edges.segment[e]] for e in chain}) == 2 for *_, chain in rows)
    if partly:
        report.assumed["edges with a speed_kmh for a part, the rest at the default"] = partly
    place = {edge: (row, i) for row, (*_, c) in enumerate(rows) for i, edge in enumerate(c)}
    last = [len(chain) - 1 for *_, chain in rows]
    forbidden: list[Turn] = []  # in edges of the finished network
    for before in filter(None, turns):
        after = [turn for one in before if (turn := merged_turn(one, place, last))]
        if not after:
            report.dropped["turn restrictions where simplification left no turn"] += 1
        forbidden.extend(after)
    node_ids = [ids[node] for node in used]
    points = np.array([places[node] for node in node_ids])
    network = RoadNetwork.from_arrays(
        renumbered[:, 0],
        renumbered[:, 1],
        [s.length_m for s in merged],
        points[:, 0],
        points[:, 1],
        node_ids=node_ids,
        speed_kmh=[s.speed_kmh for s in merged],
        lanes=[s.lanes for s in merged],
        oneway=[s.oneway for s in merged],
        road_class=np.array([s.road_class for s in merged], np.uint8),
        name=[s.name for s in merged],
        geometry=[s.points for s in merged],
        forbidden_turns=forbidden,
    )
    for column in ("speed_kmh", "lanes"):
        unknown = int(np.isnan(getattr(network, column)).sum())
        report.assumed[f"edges with no {column}, filled in the features"] = unknown
    return replace(network, provenance={"report": report.as_dict()})


def _merged(members: list[tuple[Segment, bool]], places: Mapping[Any, Point]) -> Segment:
    """One segment for a chain.

    Lengths add up, driving time at the limit is kept, and class, lanes, name and
    one-way are those of the greatest length.
    """
    line: list[Point] = []
    straight = len(members) == 1 and members[0][0].points is None
    for segment, backward in members:
        points = segment.points or (places[segment.tail], places[segment.head])
        piece = points[::-1] if backward else points
        line.extend(piece[1:] if line else piece)
    first, last = members[0], members[-1]
    return Segment(
        tail=first[0].head if first[1] else first[0].tail,
        head=last[0].tail if last[1] else last[0].head,
        length_m=sum(s.length_m for s, _ in members),
        points=None if straight else tuple(line),
        speed_kmh=_even_speed([(s.length_m, s.speed_kmh) for s, _ in members]),
        lanes=_longest([(s.lanes, s.length_m) for s, _ in members if s.lanes == s.lanes],
                       float("nan")),
        oneway=_longest([(s.oneway, s.length_m) for s, _ in members], False),
        road_class=_longest([(s.road_class, s.length_m) for s, _ in members], 0),
        name=_longest([(s.name, s.length_m) for s, _ in members if s.name], ""),
    )  # fmt: skip


def _even_speed(stretches: list[tuple[float, float]]) -> float:
    """The speed that covers stretches of (length, speed) in the same time.

    Where only some are known the others are driven at :data:`DEFAULT_SPEED_KMH`.
    """
    if all(speed != speed for _, speed in stretches):
        return float("nan")
    filled = [
        (length, speed if speed == speed else DEFAULT_SPEED_KMH) for length, speed in stretches
    ]
    if len({speed for _, speed in filled}) == 1:
        return filled[0][1]
    return sum(length for length, _ in filled) / sum(length / speed for length, speed in filled)


def _longest(values: list[tuple[Any, float]], default: Any) -> Any:
    """The value that covers the greatest length; the smaller one of equals."""
    total: dict[Any, float] = {}
    for value, length in values:
        total[value] = total.get(value, 0.0) + length
    return min(total, key=lambda value: (-total[value], value)) if total else default

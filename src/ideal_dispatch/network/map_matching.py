"""Map matching: a route drawn by another router → a connected path of ours.

The path is the one that minimises, over all paths and all monotone alignments
of the route's samples with it, in metres,

    length  +  ρ s Σ over samples k of min(1, (d_k / r_k)²)

with ``s`` the distance between samples, ``d_k`` the distance from sample k to
its place on the path, ``r_k`` the reach beyond which the sample counts as
unmatched, and ``ρ`` (:data:`_UNMATCHED`) the metres of detour one unmatched metre
is worth. This is a hidden Markov model in the manner of Newson and Krumm (2009)
with two changes. A sample may stay unmatched, so a gap or a stretch off the
network is bridged by the shortest path and never breaks the chain. And a
transition costs its length, not the difference to the way travelled: one search
then serves all candidates and simply goes on from sample to sample. Samples are
matched in order and a place on an edge never moves back, so loops, turns in dead
ends and the direction of travel are kept. The search runs over the states of a driver
(:mod:`ideal_dispatch.network.turns`), so that no path makes a forbidden turn.

A second, finer pass follows: the first shows the constant offset between the
two maps and how well they agree, which distinguishes parallel carriageways.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import shapely

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray, first_where, read_only
from ideal_dispatch.errors import InputError, OffNetworkError, UnreachableError
from ideal_dispatch.network.depot import Source, source_node
from ideal_dispatch.network.map_matching_kernels import (
    Ends,
    Samples,
    Streets,
    best_alignment,
    route_samples,
)
from ideal_dispatch.network.path import Path
from ideal_dispatch.network.road_network import RoadNetwork
from ideal_dispatch.network.routing import remaining

END_LIMIT_M = 300.0
"""How far an end of the route may lie from the given origin or destination."""

TOLERANCE_M = 30.0
"""Route and path agree where they are no farther apart."""

LENGTH_RATIO = (0.75, 1.33)
"""Path length over route length that can be believed."""

_UNMATCHED = 2.25  # ρ
_DOUBT = 2.0  # the reach grows by this with the distance to the nearest given point
_COARSE_M, _COARSE_REACH_M, _COARSE_RADIUS_M = 25.0, 42.0, 60.0  # no candidates beyond
_FINE_M, _FINE_REACH_M, _FINE_RADIUS_M = 12.0, (8.0, 30.0), 40.0  # least and largest reach
_REACH_PER_RMS = 3.0
_OFFSET_M = (3.0, 5.0)  # smaller offsets are noise; scale of the Cauchy weights
_BORDER_DEGREES = 0.2  # points farther outside the network's area are mistakes
_STEP_M = 10.0  # step of the quality measures


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """The matched path and how well it agrees with the route it was given.

    ``matched_share`` is the share of the route's length within
    :data:`TOLERANCE_M` of the path, ``supported_share`` the share of the path's
    length within it of the route; a gap is measured as the straight line that
    is drawn across it. Deviations are distances from the route to the path.
    ``length_ratio`` is path length over route length, ``longest_step_m`` the
    longest stretch without a given point. The figures say that the two agree in
    place: which of two roads closer than the tolerance was meant, they cannot.
    """

    path: Path
    matched_share: float
    supported_share: float
    mean_deviation_m: float
    max_deviation_m: float
    length_ratio: float
    longest_step_m: float

    def agrees(self, least_share: float) -> bool:
        """True where both shares are at least that and the length ratio is in LENGTH_RATIO."""
        share, (low, high) = min(self.matched_share, self.supported_share), LENGTH_RATIO
        return share >= least_share and low <= self.length_ratio <= high

    @property
    def reliable(self) -> bool:
        """True where both shares are at least 0.95 and the length ratio is within 0.75 … 1.33."""
        return self.agrees(0.95)


def match_route(
    network: RoadNetwork,
    lonlat: npt.ArrayLike,
    origin: Source | None = None,
    destination: Source | None = None,
    *,
    end_limit_m: float = END_LIMIT_M,
) -> RouteMatch:
    """The path of the network that a (k, 2) lon/lat polyline most plausibly follows.

    The path runs from ``origin`` to ``destination`` where they are given, else
    between the junctions that suit the ends of the route best. What the route
    leaves open (a gap, a stretch off the network) is bridged by the shortest
    path and lowers the quality figures; look at :attr:`RouteMatch.reliable`.
    """
    line = _checked_line(network, lonlat)
    start = None if origin is None else source_node(origin, "origin")
    stop = None if destination is None else source_node(destination, "destination")
    _check_end(network, line[0], start, "starts", "origin", end_limit_m)
    _check_end(network, line[-1], stop, "ends", "destination", end_limit_m)
    if stop is None:
        usable = np.ones(network.turn_graph.node.size, np.bool_)
    else:
        usable = np.isfinite(remaining(network, network.length_m, stop))
        if origin is not None and not usable[start]:
            network.shortest_path(network.length_m, origin, stop)  # says why not

    samples, apart_m = route_samples(line, _COARSE_M)
    reach_m = np.hypot(_COARSE_REACH_M, _DOUBT * apart_m)
    path = _align(network, samples, reach_m, _COARSE_M, _COARSE_RADIUS_M, start, stop, usable)
    samples, apart_m = route_samples(line, _FINE_M)
    seen = _offset(samples, apart_m <= _COARSE_M, _drawn(network, path))
    if seen is not None:
        offset, rms_m = seen
        reach_m = np.hypot(np.clip(_REACH_PER_RMS * rms_m, *_FINE_REACH_M), _DOUBT * apart_m)
        path = _align(
            network, samples + offset, reach_m, _FINE_M, _FINE_RADIUS_M, start, stop, usable
        )
    return _measured(network, path, line)


def _checked_line(network: RoadNetwork, lonlat: npt.ArrayLike) -> FloatArray:
    """The route in local metres, or one clear line on what is wrong with it."""
    points: FloatArray = read_only(lonlat, np.float64, (None, 2), "route")
    if len(points) < 2:
        raise InputError(f"route: at least two points are needed, got {len(points)}")
    lon, lat = points.T
    outside = ~((np.abs(lon) <= 180) & (np.abs(lat) <= 90))
    for here, known in ((lon, network.lon), (lat, network.lat)):
        outside |= np.abs(here - np.clip(here, known.min(), known.max())) > _BORDER_DEGREES
    stray = first_where(outside)
    if stray is not None:  # of this point alone: far from the network each takes long
        try:
            network.snap(lon[stray], lat[stray], END_LIMIT_M)
        except InputError as error:
            raise type(error)(f"route point {stray}: {error}") from None
    return network.snapper.plane.to_metres(points)


def _check_end(
    network: RoadNetwork, point: FloatArray, node: int | None, verb: str, what: str, limit_m: float
) -> None:
    if node is None:
        return
    if not 0 <= node < network.num_nodes:
        raise InputError(f"{what} {node} is not a node (0 … {network.num_nodes - 1})")
    away_m = float(np.hypot(*(point - _places(network, np.array([node]))[0])))
    if away_m > limit_m:
        raise InputError(
            f"route {verb} {away_m:,.0f} m from {what} node {node}, beyond the limit of "
            f"{limit_m:.0f} m; check that it belongs to this trip"
        )


def _places(network: RoadNetwork, nodes: npt.NDArray[np.integer]) -> FloatArray:
    return network.snapper.plane.to_metres(
        np.column_stack([network.lon[nodes], network.lat[nodes]])
    )


def _drawn(network: RoadNetwork, path: Path) -> shapely.LineString:
    points = network.snapper.plane.to_metres(path.coordinates(network))
    return shapely.LineString(points if len(points) > 1 else np.repeat(points, 2, axis=0))


def _align(
    network: RoadNetwork,
    samples: FloatArray,
    reach_m: FloatArray,
    spacing_m: float,
    radius_m: float,
    origin: int | None,
    destination: int | None,
    usable: BoolArray,
) -> Path:
    """The best path through the samples."""
    row, edge = network.snapper.edges_within(samples, radius_m)
    first, last = (int(row[0]), int(row[-1]) + 1) if row.size else (0, len(samples))
    if origin is not None:
        first = _meeting(samples, _places(network, np.array([origin]))[0])
    if destination is not None:
        there = _places(network, np.array([destination]))[0]
        last = len(samples) - _meeting(samples[first:][::-1], there)
    if not row.size or last <= first:
        raise OffNetworkError(
            f"route: no road within {radius_m:.0f} m of any part of it; "
            "check the coordinates or the network's area"
        )
    inner = (row >= first) & (row < last)
    row, edge = row[inner], edge[inner]
    spots, lines = shapely.points(samples)[row], network.snapper.edge_lines[edge]
    graph = network.turn_graph
    candidate, which = graph.arcs(edge)
    starts = _ends(network, origin, edge[row == first], samples[first])
    stops = _ends(network, destination, edge[row == last - 1], samples[last - 1])
    arcs, end = best_alignment(
        Streets(graph.out, graph.tail, graph.head, graph.costs(network.length_m), usable),
        Samples(
            layer=np.searchsorted(row[which], np.arange(first, last + 1)),
            candidate=candidate,
            place_m=shapely.line_locate_point(lines, spots)[which],
            off_m=shapely.distance(lines, spots)[which],
            reach_m=reach_m[first:last],
            moved_m=_steps_m(samples[first:last]),
        ),
        _UNMATCHED * spacing_m,
        starts,
        stops._replace(nodes=graph.arrival[stops.nodes]),
    )
    if end < 0:
        target = "the end of the route" if destination is None else f"node {destination}"
        source = "the start of the route" if origin is None else f"node {origin}"
        raise UnreachableError(
            f"{target} cannot be reached from {source}; check one-way and closed edges there"
        )
    edges = graph.edges(arcs)
    return network.path(edges, None if edges.size else int(graph.node[end]))


def _meeting(samples: FloatArray, place: FloatArray) -> int:
    """The sample nearest to a given end of the path, among the first few.

    Routes begin at a door, perhaps on the far side of the junction that stands
    for it; what comes before the junction must not be driven.
    """
    away_m = np.hypot(*(samples - place).T)
    walked_m = np.cumsum(_steps_m(samples))
    return int(np.argmin(np.where(walked_m <= 2 * away_m[0], away_m, np.inf)))


def _steps_m(samples: FloatArray) -> FloatArray:
    """Metres from each sample to the next, after a first step of zero."""
    steps_m: FloatArray = np.hypot(*np.diff(samples, axis=0, prepend=samples[:1]).T)
    return steps_m


def _ends(network: RoadNetwork, given: int | None, near: IntArray, point: FloatArray) -> Ends:
    """Nodes where the path may begin or end and the price of each."""
    if given is not None:
        return Ends(np.array([given], np.int32), np.zeros(1))
    nodes = np.unique(np.concatenate([network.tail[near], network.head[near]]))
    return Ends(nodes, np.hypot(*(_places(network, nodes) - point).T))


def _offset(
    samples: FloatArray, known: BoolArray, path: shapely.LineString
) -> tuple[FloatArray, float] | None:
    """The constant shift from the route onto the path and the rms of what it leaves.

    None where the route is nowhere near the path.

    Only the part across the direction of travel is seen. Cauchy weights keep a
    stretch on the wrong carriageway from counting as an offset.
    """
    spots = shapely.points(samples)
    nearest = shapely.line_interpolate_point(path, shapely.line_locate_point(path, spots))
    residual = shapely.get_coordinates(nearest) - samples
    known = known & (np.hypot(*residual.T) <= _FINE_RADIUS_M)
    if known.sum() < 2:
        return None
    along = np.gradient(samples, axis=0)[known]
    normal = np.column_stack([-along[:, 1], along[:, 0]])
    normal /= np.maximum(np.hypot(*along.T), 1e-9)[:, None]
    across_m = (normal * residual[known]).sum(axis=1)
    least_m, scale_m = _OFFSET_M
    offset = np.zeros(2)
    ridge = 0.02 * len(normal) * np.eye(2)  # a straight route shows one direction only
    for _ in range(10):
        weight = 1 / (1 + ((across_m - normal @ offset) / scale_m) ** 2)
        square = (normal * weight[:, None]).T @ normal
        offset = np.linalg.solve(square + ridge, normal.T @ (weight * across_m))
    if np.hypot(*offset) < least_m:
        offset = np.zeros(2)
    return offset, float(np.sqrt(np.mean((across_m - normal @ offset) ** 2)))


def _measured(network: RoadNetwork, path: Path, line: FloatArray) -> RouteMatch:
    """The path with its quality figures."""
    drawn = _drawn(network, path)
    # The way from the junction to the first point, and from the last, is no detour.
    ends = _places(network, np.array([path.origin, path.destination]))
    route = shapely.LineString(line)
    joined = shapely.LineString(np.concatenate([ends[:1], line, ends[1:]]))
    deviation_m = shapely.distance(_every_step(route), drawn)
    # Simplified to a metre: dense points would make this the slowest part of all.
    extra_m = shapely.distance(_every_step(drawn), shapely.simplify(joined, 1.0))
    length_m = path.length_m(network)
    return RouteMatch(
        path=path,
        matched_share=float(np.mean(deviation_m <= TOLERANCE_M)),
        supported_share=float(np.mean(extra_m <= TOLERANCE_M)),
        mean_deviation_m=float(deviation_m.mean()),
        max_deviation_m=float(deviation_m.max()),
        length_ratio=length_m / route.length if route.length else (np.inf if length_m else 1.0),
        longest_step_m=float(np.hypot(*np.diff(line, axis=0).T).max()),
    )


def _every_step(line: shapely.LineString) -> npt.NDArray[np.object_]:
    """Points along the line, evenly spaced and both ends included."""
    corners = shapely.get_coordinates(line)
    along_m = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(corners, axis=0).T))])
    wanted_m = np.linspace(0.0, along_m[-1], int(np.ceil(along_m[-1] / _STEP_M)) + 1)
    points: npt.NDArray[np.object_] = shapely.points(
        np.interp(wanted_m, along_m, corners[:, 0]), np.interp(wanted_m, along_m, corners[:, 1])
    )
    return points

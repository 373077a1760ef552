"""The plan of Port Almery turned into a city."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import shapely

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.cities.city import City, Hospital
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.geodesy import EARTH_RADIUS_M, polyline_length_m
from ideal_dispatch.network.road_class import ROAD_CLASSES
from workshop.city.attributes import lane_counts, speed_limits_kmh
from workshop.city.directions import oneway_pieces
from workshop.city.junctions import Piece, cut_at_junctions
from workshop.city.lanes import with_lanes
from workshop.city.names import StreetNames
from workshop.city.plan import harbour_streets
from workshop.city.shore import to_lonlat
from workshop.city.street import Street

SEED = 7
NUM_NODES, NUM_EDGES = 1415, 2541
"""The size of the paper's network."""

_DEPOTS = {"Kelp Point": (300, 745), "Gannet Bay": (6800, 850)}
_HOSPITALS = {
    "Kelp Point Hospital": (1120, 480),
    "Almery General Hospital": (3420, 700),
    "Lantern Mission Hospital": (3900, 1150),
    "Gannet Bay Hospital": (5900, 560),
}
_DISTRICTS = ("Kelp Point", "Exchange", "Lantern Terraces", "Gannet Bay", "Sports Ground", "Ridge")
_WIDE = ("primary", "secondary", "tertiary")
_STRAIGHT_M = 1.2
"""Bends smaller than this are not drawn."""


def generate_harbour_city(seed: int = SEED) -> City:
    """A fictional harbour city at the paper's scale; same seed, same city."""
    rng = np.random.default_rng(seed)
    names = StreetNames(rng)
    streets = with_lanes(harbour_streets(names, rng), NUM_NODES, names, rng)
    nodes, pieces = cut_at_junctions(streets)
    network = _network(streets, nodes, pieces, seed, rng)
    along, inland = nodes.T
    return City(
        name="Port Almery",
        network=network,
        depots=tuple(
            Depot(name, _node_at(place, network, nodes)) for name, place in _DEPOTS.items()
        ),
        hospitals=tuple(
            Hospital(name, _node_at(place, network, nodes)) for name, place in _HOSPITALS.items()
        ),
        # The agency's border is a line on the map; the roads do not know of it.
        region=(along + 0.25 * inland > 3420).astype(np.int32),
        districts=_DISTRICTS,
        district=_districts(along, inland),
        time_zone="Asia/Hong_Kong",
        country="HK",
    )


def _network(
    streets: list[Street],
    nodes: FloatArray,
    pieces: list[Piece],
    seed: int,
    rng: np.random.Generator,
) -> RoadNetwork:
    oneway = oneway_pieces(streets, pieces, len(nodes), NUM_EDGES, rng)
    limits = speed_limits_kmh(streets, rng)
    lanes = lane_counts([streets[piece.street].road_class for piece in pieces], oneway, rng)
    lonlat = to_lonlat(nodes)
    shapes = [_shape(piece.points) for piece in pieces]
    lengths = np.round([polyline_length_m(shape) for shape in shapes], 2)
    back = np.flatnonzero(~oneway)
    piece_of = np.concatenate([np.arange(len(pieces)), back])
    forward = np.arange(piece_of.size) < len(pieces)
    ends = np.array([(piece.tail, piece.head) for piece in pieces])[piece_of]
    ends[~forward] = ends[~forward, ::-1]
    # By tail, so that neighbours in the file are neighbours on the ground.
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    piece_of, forward, ends = piece_of[order], forward[order], ends[order]
    street_of = [streets[pieces[index].street] for index in piece_of]
    limits_kmh = limits[[pieces[index].street for index in piece_of]]
    network = RoadNetwork.from_arrays(
        ends[:, 0],
        ends[:, 1],
        lengths[piece_of],
        lonlat[:, 0],
        lonlat[:, 1],
        lanes=lanes[piece_of],
        oneway=oneway[piece_of],
        road_class=[street.road_class for street in street_of],
        name=[street.name for street in street_of],
        geometry=[
            None if len(shapes[index]) == 2 else shapes[index][:: 1 if ahead else -1]
            for index, ahead in zip(piece_of, forward, strict=True)
        ],
        provenance={"source": "ideal_dispatch.cities.harbour", "seed": seed},
    )
    # limits that are not posted stay unknown: the shipped model and recording know them so
    return replace(network, speed_kmh=limits_kmh)


def _shape(chart: FloatArray) -> FloatArray:
    """Degrees along a piece, without points that a straight line would pass anyway."""
    dense = shapely.segmentize(shapely.linestrings(chart), 25.0)
    bent = shapely.linestrings(to_lonlat(shapely.get_coordinates(dense)))
    tolerance_deg = np.degrees(_STRAIGHT_M / EARTH_RADIUS_M)
    shape: FloatArray = shapely.get_coordinates(shapely.simplify(bent, tolerance_deg))
    return shape


def _node_at(place: tuple[float, float], network: RoadNetwork, nodes: FloatArray) -> int:
    """The node on a collector or avenue that is nearest to a chart place."""
    wide = np.isin(network.road_class, [ROAD_CLASSES.index(name) for name in _WIDE])
    candidates = np.intersect1d(network.tail[wide], network.head[wide])
    return int(candidates[np.argmin(np.hypot(*(nodes[candidates] - place).T))])


def _districts(along: FloatArray, inland: FloatArray) -> npt.NDArray[np.int32]:
    west, east = along < 2050, along >= 4810
    return np.select(
        [inland > 1620, west, ~east & (inland < 890), ~east, inland < 930],
        [5, 0, 1, 2, 3],
        default=4,
    ).astype(np.int32)

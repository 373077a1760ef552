"""Map matching on a jittered grid: two-way streets about 100 m apart, some one-way, some curved."""

from collections import Counter
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
import shapely

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import InputError, OffNetworkError, UnreachableError
from ideal_dispatch.network.depot import Depot
from ideal_dispatch.network.geodesy import LocalPlane
from ideal_dispatch.network.map_matching import RouteMatch, match_route
from ideal_dispatch.network.path import Path
from ideal_dispatch.network.road_network import RoadNetwork

SIDE = 14
CORNER = np.array([-73.98, 40.75])
PLANE = LocalPlane(40.75)


def degrees(metres: npt.ArrayLike) -> FloatArray:
    return CORNER + PLANE.to_degrees(np.asarray(metres, float))


def metres(lonlat: FloatArray) -> FloatArray:
    return PLANE.to_metres(lonlat - CORNER)


def grid(curved: bool = False, jitter_m: float = 12.0) -> RoadNetwork:
    rng = np.random.default_rng(5)
    rows, columns = np.divmod(np.arange(SIDE * SIDE), SIDE)
    places = np.column_stack([columns, rows]) * 100.0 + rng.uniform(-1, 1, (SIDE**2, 2)) * jitter_m
    tail, head = [], []
    for node, (row, column) in enumerate(zip(rows, columns, strict=True)):
        for there, other in ((column < SIDE - 1, node + 1), (row < SIDE - 1, node + SIDE)):
            if there:
                one_way = jitter_m > 0 and rng.random() < 0.2
                tail += [node] if one_way else [node, other]
                head += [other] if one_way else [other, node]
    ends = places[np.array([tail, head])]
    along = np.linspace(0, 1, 7)[:, None]
    across = (ends[1] - ends[0])[:, ::-1] * [-1, 1]
    bow = np.where(np.array(tail) < np.array(head), 1, -1)[:, None] * across * 0.12
    lines = [
        a + along * (b - a) + np.sin(np.pi * along) * (side if curved else 0)
        for a, b, side in zip(*ends, bow, strict=True)
    ]
    length_m = shapely.length([shapely.LineString(line) for line in lines])
    lon, lat = degrees(places).T
    shapes = [degrees(line) for line in lines] if curved else None
    return RoadNetwork.from_arrays(tail, head, length_m, lon, lat, geometry=shapes)


@pytest.fixture(scope="module")
def straight() -> RoadNetwork:
    return grid()


@pytest.fixture(scope="module")
def curved() -> RoadNetwork:
    return grid(curved=True)


@pytest.fixture(scope="module")
def square() -> RoadNetwork:
    """The grid without jitter or one-way streets; node = column + 14 · row."""
    return grid(jitter_m=0.0)


def random_paths(network: RoadNetwork, count: int, seed: int) -> list[Path]:
    """Paths of at least 500 m, every second one through a random waypoint."""
    rng = np.random.default_rng(seed)
    paths: list[Path] = []
    while len(paths) < count:
        times_s = network.length_m * np.exp(rng.normal(0, 0.5, network.num_edges))
        stops = rng.choice(network.num_nodes, 2 + len(paths) % 2, replace=False).tolist()
        try:
            legs = [network.shortest_path(times_s, *pair).edges for pair in pairwise(stops)]
        except UnreachableError:
            continue
        path = network.path(np.concatenate(legs))
        if path.length_m(network) >= 500:
            paths.append(path)
    return paths


def along(network: RoadNetwork, nodes: list[int]) -> Path:
    """The path through neighbouring nodes."""
    ends = pairwise(nodes)
    hits = [np.flatnonzero((network.tail == a) & (network.head == b)) for a, b in ends]
    return network.path([int(hit[0]) for hit in hits])


def drawing(network: RoadNetwork, path: Path, spacing_m: float = 10.0) -> FloatArray:
    """The path as points in metres."""
    line = shapely.LineString(metres(path.coordinates(network)))
    steps = np.append(np.arange(0, line.length, spacing_m), line.length)
    points: FloatArray = shapely.get_coordinates(shapely.line_interpolate_point(line, steps))
    return points


def disturbed(points: FloatArray, noise_m: float, rng: np.random.Generator) -> FloatArray:
    """A smooth offset and some jitter."""
    steps = np.arange(len(points)) * 10.0
    knots = np.arange(0, steps[-1] + 300, 300.0)
    smooth = [np.interp(steps, knots, rng.normal(0, noise_m, knots.size)) for _ in (0, 1)]
    return points + 0.9 * np.column_stack(smooth) + rng.normal(0, 0.44 * noise_m, points.shape)


def f1(network: RoadNetwork, truth: Path, found: Path) -> float:
    common = Counter(truth.edges.tolist()) & Counter(found.edges.tolist())
    common_m = sum(network.length_m[edge] * count for edge, count in common.items())
    return float(2 * common_m / (truth.length_m(network) + found.length_m(network)))


def checked(network: RoadNetwork, match: RouteMatch) -> Path:
    """The matched path after the network's own check."""
    assert network.path(match.path.edges, match.path.origin) == match.path
    return match.path


# --- recovery -------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["straight", "curved"])
@pytest.mark.parametrize("ends_known", [True, False])
def test_clean_drawings_are_recovered_exactly(
    shape: str, ends_known: bool, request: pytest.FixtureRequest
) -> None:
    network = request.getfixturevalue(shape)
    for truth in random_paths(network, 40, seed=1):
        ends = (truth.origin, truth.destination) if ends_known else ()
        match = match_route(network, degrees(drawing(network, truth)), *ends)
        assert checked(network, match) == truth
        assert match.reliable
        assert match.matched_share == match.supported_share == 1.0
        assert match.mean_deviation_m < 0.2
        assert match.max_deviation_m < 4  # points every 10 m cut corners
        assert match.length_ratio == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(("noise_m", "least"), [(5.0, 0.99), (15.0, 0.98)])
def test_noisy_drawings_are_mostly_recovered(
    straight: RoadNetwork, noise_m: float, least: float
) -> None:
    rng = np.random.default_rng(2)
    scores = []
    for truth in random_paths(straight, 60, seed=2):
        points = degrees(disturbed(drawing(straight, truth), noise_m, rng))
        found = checked(straight, match_route(straight, points, truth.origin, truth.destination))
        scores.append(f1(straight, truth, found))
    assert np.mean(scores) >= least


def test_a_constant_offset_between_the_maps_is_seen_through() -> None:
    # Single roads east and north show the offset; then the road parts into two 12 m apart, and
    # the drawing of the lower one lies nearer to the upper.
    places = [(200 * i, 0) for i in range(6)] + [(1000, 200 * i) for i in range(1, 6)]
    places += [(1020, 994), (1400, 994), (1420, 1000), (1020, 1006), (1400, 1006)]
    links = [*pairwise(range(14)), (10, 14), (14, 15), (15, 13)]
    tail, head = np.array(links + [link[::-1] for link in links]).T
    ends = np.array(places)[np.array([tail, head])]
    lon, lat = degrees(places).T
    network = RoadNetwork.from_arrays(tail, head, np.hypot(*(ends[1] - ends[0]).T), lon, lat)
    truth = along(network, list(range(14)))
    shifted = drawing(network, truth) + np.array([5.0, 8.0])
    match = match_route(network, degrees(shifted), 0, 13)
    assert match.path == truth
    assert match.mean_deviation_m == pytest.approx(7, abs=1.5)  # the offset counts as deviation


# --- order and direction --------------------------------------------------------


@pytest.mark.parametrize("noise_m", [0.0, 8.0])
@pytest.mark.parametrize(
    "nodes",
    [
        [14, 15, 16, 17, 31, 30, 16, 17, 18, 19],
        [14, 15, 16, 17, 31, 30, 16, 17, 31, 30, 16, 2, 3],
        [14, 15, 16, 30, 44, 30, 16, 17, 18],
        [30, 44, 58, 44, 30],
    ],
    ids=["round the block", "twice round the block", "side street and back", "out and back"],
)
def test_loops_and_returns_are_kept(square: RoadNetwork, nodes: list[int], noise_m: float) -> None:
    truth = along(square, nodes)
    points = disturbed(drawing(square, truth), noise_m, np.random.default_rng(3))
    match = match_route(square, degrees(points), truth.origin, truth.destination)
    assert checked(square, match) == truth


# --- gaps and roads we do not have ----------------------------------------------


def test_a_gap_is_bridged_and_lowers_the_quality(square: RoadNetwork) -> None:
    truth = along(square, [*range(14, 20), *range(33, 120, 14)])
    points = drawing(square, truth)
    corner = metres(np.array([[square.lon[19], square.lat[19]]]))[0]
    left = points[np.hypot(*(points - corner).T) > 180]
    match = match_route(square, degrees(left), truth.origin, truth.destination)
    whole = match_route(square, degrees(points), truth.origin, truth.destination)
    path = checked(square, match)
    assert path.length_m(square) == pytest.approx(truth.length_m(square))  # as short as it can be
    assert f1(square, truth, path) > 0.6
    assert match.matched_share < whole.matched_share
    assert match.supported_share < 0.9 < whole.supported_share
    assert match.longest_step_m > 200 > whole.longest_step_m
    assert not match.reliable
    assert whole.reliable


def test_a_stretch_off_the_network_is_flagged(square: RoadNetwork) -> None:
    truth = along(square, list(range(14)))
    points = drawing(square, truth)
    points[40:70, 1] -= 140  # south of the grid there is nothing
    match = match_route(square, degrees(points), truth.origin, truth.destination)
    assert checked(square, match) == truth
    assert not match.reliable
    assert match.max_deviation_m == pytest.approx(140, abs=1)
    assert match.matched_share < 0.85


@pytest.mark.parametrize("away_m", [35, 55])
def test_a_route_beside_every_road_is_matched_but_not_trusted(
    square: RoadNetwork, away_m: float
) -> None:
    points = degrees([[0, -away_m], [1300, -away_m]])
    for ends in ((0, 13), (0,), ()):
        match = match_route(square, points, *ends)
        checked(square, match)
        assert not match.reliable
        assert match.mean_deviation_m >= away_m - 1


def test_a_route_that_starts_before_its_junction_takes_no_detour(square: RoadNetwork) -> None:
    longer = along(square, list(range(14, 24)))
    points = drawing(square, longer)[4:-4]  # starts 60 m before node 15, ends 60 m past node 22
    assert match_route(square, degrees(points), Depot("North", 15), 22).path == along(
        square, list(range(15, 23))
    )


# --- small and odd input --------------------------------------------------------


def test_short_and_repeated_points_are_fine(square: RoadNetwork) -> None:
    here = degrees([100.0, 103.0])
    standing = match_route(square, [here, here, here])
    assert (len(standing.path), standing.path.origin) == (0, 15)
    assert standing.length_ratio == 1.0
    one_edge = along(square, [15, 16])
    assert match_route(square, [here, here, degrees([200.0, 100.0])]).path == one_edge
    assert match_route(square, [here, here], 15, 16).path == one_edge
    assert len(match_route(square, [here, here], 15, 15).path) == 0


def test_hostile_drawings_still_give_a_valid_path(straight: RoadNetwork) -> None:
    rng = np.random.default_rng(7)
    for _ in range(15):
        points = degrees(rng.uniform(-200, 1500, (int(rng.integers(2, 30)), 2)))
        match = match_route(straight, points)
        checked(straight, match)
        assert 0 <= match.matched_share <= 1
        assert 0 <= match.supported_share <= 1


# --- errors ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "error", "key"),
    [
        ([[-73.98, 40.75]], InputError, "at least two points"),
        ([], InputError, "any × 2 values"),
        ([[-73.98, 40.75, 3.0]] * 2, InputError, "2 × 3"),
        ([[-73.98, 40.75], [np.nan, 40.75]], InputError, "route point 1"),
        ([[40.75, 114.2]] * 2, InputError, "are they swapped"),
        ([[40.75, -73.98]] * 2, OffNetworkError, "are swapped"),
        ([[-73.98, 40.75], [0.0, 0.0]], OffNetworkError, "route point 1"),
        ([[-73.99, 40.74], [-73.99, 40.745]], OffNetworkError, "no road within 60 m"),
    ],
)
def test_unusable_routes_are_refused_in_one_line(
    square: RoadNetwork, points: list[list[float]], error: type[Exception], key: str
) -> None:
    with pytest.raises(error, match=key) as caught:
        match_route(square, points)
    assert "\n" not in str(caught.value)


def test_ends_far_from_the_given_nodes_are_refused(square: RoadNetwork) -> None:
    points = degrees([[0, 0], [500, 0]])
    for ends, key in (
        ((9, 5), "starts 9.. m from origin node 9"),
        ((0, 1), "ends 4.. m from destination node 1"),
        ((0, 999), "destination 999"),
        ((0, "5"), "destination '5'"),
        ((True, 5), "origin True"),
    ):
        with pytest.raises(InputError, match=key):
            match_route(square, points, *ends)
    assert match_route(square, points, 0, 1, end_limit_m=600).path.destination == 1
    assert match_route(square, points, 0, Depot("East", 5)) == match_route(square, points, 0, 5)


def test_ends_that_no_road_joins_are_named() -> None:
    lon, lat = degrees([[0, 0], [100, 0], [300, 0], [400, 0]]).T
    split = RoadNetwork.from_arrays([0, 2], [1, 3], [100.0, 100.0], lon, lat)
    points = degrees([[0, 0], [400, 0]])
    for origin, destination, key in (
        (0, 3, "node 3 .* from node 0"),
        (None, 3, "node 3 .* from the start of the route"),
        (None, None, "the end of the route"),
    ):
        with pytest.raises(UnreachableError, match=key):
            match_route(split, points, origin, destination)
    with pytest.raises(OffNetworkError, match="no road within 60 m"):
        match_route(RoadNetwork.from_arrays([], [], [], lon, lat), points)
    beside = degrees([[100, 0], [0, -100], [0, -300], [0, -500]])
    lon, lat = degrees([[100, 0], [150, 0], [0, -300]]).T
    lone = RoadNetwork.from_arrays([0, 1], [1, 0], [50.0, 50.0], lon, lat)
    with pytest.raises(OffNetworkError, match="no road within 60 m"):
        match_route(lone, beside, 2, end_limit_m=500)  # near roads only before its origin
    with pytest.raises(InputError, match="no coordinates"):
        match_route(RoadNetwork.from_arrays([0], [1], [5.0]), points)

import numpy as np
import pytest

from workshop.city.directions import oneway_pieces
from workshop.city.junctions import cut_at_junctions
from workshop.city.lanes import with_lanes
from workshop.city.lattice import Line, grid_streets, lattice
from workshop.city.names import StreetNames
from workshop.city.street import TUNNEL, Street, length_m, smooth


def street(*points: tuple[float, float], oneway: bool = False, level: int = 0) -> Street:
    return Street("Test Road", "residential", np.array(points, float), oneway, level, 0)


def block(**options: bool) -> list[Street]:
    corners = [(0.0, 0.0), (100.0, 0.0), (100.0, 100.0), (0.0, 100.0)]
    return [
        street(a, b, **options) for a, b in zip(corners, corners[1:] + corners[:1], strict=True)
    ]


def test_streets_of_one_level_meet_where_they_cross() -> None:
    nodes, pieces = cut_at_junctions([street((0, 0), (100, 0)), street((50, -50), (50, 50))])
    assert nodes.tolist() == [[0, 0], [50, -50], [50, 0], [50, 50], [100, 0]]
    assert [(p.tail, p.head) for p in pieces] == [(0, 2), (2, 4), (1, 2), (2, 3)]


def test_a_tunnel_meets_nothing_on_its_way() -> None:
    over, under = street((0, 0), (100, 0)), street((50, -50), (50, 50), level=TUNNEL)
    nodes, pieces = cut_at_junctions([over, under])
    assert (len(nodes), len(pieces)) == (4, 2)


def test_a_street_that_ends_at_another_joins_it_on_any_level() -> None:
    nodes, pieces = cut_at_junctions([street((0, 0), (100, 0)), street((50, 2), (50, 50), level=2)])
    assert (len(nodes), len(pieces)) == (4, 3)


def test_streets_turn_one_way_until_the_edges_are_as_many_as_wanted() -> None:
    streets = block()
    nodes, pieces = cut_at_junctions(streets)
    oneway = oneway_pieces(streets, pieces, len(nodes), 6, np.random.default_rng(0))
    assert oneway.sum() == 2


def test_a_plan_without_a_way_back_is_refused() -> None:
    streets = [street((0, 0), (100, 0), oneway=True)]
    nodes, pieces = cut_at_junctions(streets)
    with pytest.raises(RuntimeError, match="a street without a way back"):
        oneway_pieces(streets, pieces, len(nodes), 1, np.random.default_rng(0))


def test_edges_that_no_one_way_street_can_save_are_reported() -> None:
    streets = [street((0, 0), (100, 0))]
    nodes, pieces = cut_at_junctions(streets)
    with pytest.raises(RuntimeError, match="1 edges too many"):
        oneway_pieces(streets, pieces, len(nodes), 1, np.random.default_rng(0))


def test_lanes_bring_the_wanted_number_of_nodes() -> None:
    rng = np.random.default_rng(0)
    streets = with_lanes(block(), 10, StreetNames(rng), rng)
    assert len(cut_at_junctions(streets)[0]) == 10
    assert [s.road_class for s in streets[4:]] == ["service"] * 3


def test_a_full_block_has_no_room_for_more_lanes() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(RuntimeError, match=r"no room for the last \d+ junctions"):
        with_lanes(block(), 200, StreetNames(rng), rng)


def test_joined_blocks_leave_no_street_hanging() -> None:
    rng = np.random.default_rng(0)
    crossings = lattice([(0, 0), (900, 0), (900, 700), (0, 700)], 8, 10, 3.0, rng)
    lines = [Line(f"Street {i}", "residential") for i in range(18)]
    streets = grid_streets(crossings, lines[:8], lines[8:], rng, joined_share=0.25, parks=2)
    nodes, pieces = cut_at_junctions(streets)
    arms = np.bincount([n for p in pieces for n in (p.tail, p.head)], minlength=len(nodes))
    assert arms.min() >= 2
    assert len(nodes) < 80


def test_a_curve_passes_its_points() -> None:
    points = np.array([(0.0, 0.0), (50.0, 40.0), (100.0, 0.0)])
    curve = smooth(points)
    assert all((np.hypot(*(curve - point).T) < 1e-9).any() for point in points)
    assert length_m(curve) > length_m(points)


def test_no_name_is_given_twice() -> None:
    names = StreetNames(np.random.default_rng(0))
    given = [names.take(kind) for kind in ("residential", "tertiary", "close") for _ in range(80)]
    assert len(set(given)) == len(given)


def test_running_out_of_names_is_reported() -> None:
    names = StreetNames(np.random.default_rng(0))
    with pytest.raises(LookupError, match="no street name of kind 'primary' is left"):
        list(map(names.take, ["primary"] * 1000))

"""Forbidden turns: how a network keeps them, and who keeps to them."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError, UnreachableError
from ideal_dispatch.network.features import through_traffic
from ideal_dispatch.network.map_matching import match_route
from ideal_dispatch.network.road_network import FILE

# 0 → 1 → 2 → 3 along a street; at 1 and 2 side roads to 4 and back, which is the way round
TAIL = [0, 1, 2, 1, 4, 2, 3, 2, 1]
HEAD = [1, 2, 3, 4, 2, 1, 2, 4, 0]
LENGTH_M = [100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 50.0, 100.0]
LON = [7.0, 7.001, 7.002, 7.003, 7.0015]
LAT = [43.0, 43.0, 43.0, 43.0, 43.0008]


def _network(*turns: tuple[int, ...]) -> RoadNetwork:
    return RoadNetwork.from_arrays(TAIL, HEAD, LENGTH_M, LON, LAT, forbidden_turns=turns)


def _edges(network: RoadNetwork, origin: int, target: int) -> list[int]:
    path = network.shortest_path(network.length_m, origin, target)
    assert network.shortest_paths(network.length_m, [origin], [target]) == [path]
    return [int(edge) for edge in path.edges]


# --- what a network keeps --------------------------------------------------------------


def test_turns_are_kept_in_order_each_once_and_none_within_another() -> None:
    network = _network((0, 1), (6, 7), (0, 1), (0, 1, 2), (8, 0, 1))
    assert network.forbidden_turns == ((0, 1), (6, 7))


@pytest.mark.parametrize(
    ("turns", "key"),
    [
        ([(0,)], "turn 0"), ([(0, 1), (0, 2)], "turn 1"), ([(0, 99)], "turn 0"),
        ([(-1, 0)], "turn 0"), ([(0, 1.5)], "turn 0"), ([0, 1], "turn 0"),
        ("01", "forbidden_turns"), (7, "forbidden_turns"),
    ],
)  # fmt: skip
def test_wrong_turns_are_refused(turns: object, key: str) -> None:
    with pytest.raises(InputError, match=key):
        RoadNetwork.from_arrays(TAIL, HEAD, LENGTH_M, forbidden_turns=turns)  # type: ignore[arg-type]


def test_the_file_and_the_checksum_know_them_where_there_are_some(tmp_path: Path) -> None:
    plain, turned = _network(), _network((0, 1), (0, 3, 4))
    assert plain.checksum == "9293c8116da86080c9555f06382046ec", "as before there were turns"
    assert len({plain.checksum, turned.checksum, _network((0, 1)).checksum}) == 3
    for network in (plain, turned):
        network.save(tmp_path / "x.network")
        _, arrays = FILE.read(tmp_path / "x.network")
        assert any("turn" in name for name in arrays) == bool(network.forbidden_turns)
        for copy in (
            RoadNetwork.load(tmp_path / "x.network"),
            pickle.loads(pickle.dumps(network)),
        ):
            assert copy.forbidden_turns == network.forbidden_turns
            assert copy.checksum == network.checksum


def test_a_path_tells_which_turn_it_makes() -> None:
    network = _network((0, 1), (3, 4, 2))
    assert network.forbidden_turn(network.path([0, 1, 2])) == (0, 1)
    assert network.forbidden_turn(network.path([0, 3, 4, 2])) == (3, 4, 2)
    assert network.forbidden_turn(network.path([0, 3, 4, 5])) is None
    assert network.forbidden_turn(network.path([], origin=1)) is None
    assert network.ignoring_turns.forbidden_turns == ()
    plain = _network()
    assert plain.ignoring_turns is plain


# --- shortest paths --------------------------------------------------------------------


def test_the_fastest_path_makes_no_forbidden_turn() -> None:
    assert _edges(_network(), 0, 3) == [0, 1, 2]
    assert _edges(_network((0, 1)), 0, 3) == [0, 3, 4, 2]
    assert _edges(_network((0, 1)), 1, 3) == [1, 2], "who begins at the junction may go on"


def test_a_longer_sequence_forbids_only_all_of_itself() -> None:
    network = _network((0, 1, 2), (4, 2))
    assert _edges(network, 0, 2) == [0, 1]
    assert _edges(network, 1, 3) == [1, 2]
    # straight on and right are forbidden from 0: round the block it comes by 1 again
    assert _edges(network, 0, 3) == [0, 1, 5, 1, 2]


def test_distances_and_a_star_agree_with_paths() -> None:
    network = _network((0, 1), (3, 4, 2))
    for origin in range(5):
        ahead = network.distances(network.length_m, origin)
        for target in range(5):
            edges = _edges(network, origin, target)
            behind = network.distances_to(network.length_m, target)
            assert ahead[target] == behind[origin] == network.length_m[edges].sum()
            path = network.shortest_path(network.length_m, origin, target, potential_s=behind)
            assert path.edges.tolist() == edges
    assert np.array_equal(through_traffic(network), through_traffic(_network()))


def test_what_lies_behind_counts() -> None:
    network, times = _network((0, 1), (8, 0, 3)), np.array(LENGTH_M)
    assert network.shortest_path(times, 1, 3).edges.tolist() == [1, 2]
    assert network.shortest_path(times, 1, 3, behind=[5]).edges.tolist() == [1, 2]
    assert network.shortest_path(times, 1, 3, behind=[0]).edges.tolist() == [3, 4, 2]
    with pytest.raises(UnreachableError, match="cannot be reached from node 1"):
        network.shortest_path(times, 1, 3, behind=[5, 8, 0])
    plain = _network()
    assert plain.shortest_path(times, 1, 3, behind=[0]).edges.tolist() == [1, 2]
    with pytest.raises(InputError, match="edges behind end at node 1, which is not the only"):
        network.shortest_path(times, 2, 3, behind=[0])
    with pytest.raises(InputError, match="not the only source"):
        network.shortest_path(times, [1, 2], 3, behind=[0])


def test_a_target_that_only_a_forbidden_turn_leads_to() -> None:
    network = _network((1, 2), (4, 2))
    with pytest.raises(UnreachableError, match="closed edges and forbidden turns there"):
        network.shortest_path(network.length_m, 0, 3)
    assert np.isinf(network.distances(network.length_m, 0)[3])
    assert np.isinf(network.distances_to(network.length_m, 3)[0])
    assert _edges(network, 2, 3) == [2]
    assert _edges(network, 3, 3) == []


# --- map matching ----------------------------------------------------------------------


@pytest.mark.parametrize("ends", [(0, 3), (None, None)])
def test_a_route_is_matched_without_a_forbidden_turn(ends: tuple[int | None, int | None]) -> None:
    line = np.column_stack([np.linspace(LON[0], LON[3], 40), np.full(40, 43.0)])
    assert match_route(_network(), line, *ends).path.edges.tolist() == [0, 1, 2]
    for turns in ([(0, 1)], [(0, 1, 2)]):
        network = _network(*turns)
        path = match_route(network, line, *ends).path
        assert network.forbidden_turn(path) is None
        if ends == (0, 3):
            assert (path.origin, path.destination) == ends

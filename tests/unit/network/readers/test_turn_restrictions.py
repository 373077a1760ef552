"""Turn restrictions of OpenStreetMap, from small maps written by hand."""

from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.network.readers import read_network
from ideal_dispatch.network.readers.turn_restrictions import restriction_kind

Ways = dict[int, tuple[list[int], dict[str, str]]]
Relation = tuple[dict[str, str], list[tuple[str, str, int]]]

# a crossing 1 with arms to 2 (west), 3 (east), 4 (north) and 5 (south), and a ring around it
CROSSING_PLACES = {1: (0, 0), 2: (-1, 0), 3: (1, 0), 4: (0, 1), 5: (0, -1)}
CROSSING: Ways = {
    10: ([2, 1], {}), 11: ([1, 3], {}), 12: ([1, 4], {}), 13: ([5, 1], {}),
    14: ([2, 4, 3, 5, 2], {}),
}  # fmt: skip
# two carriageways 1 → 2 → 3 and 6 → 5 → 4, a link 2 – 7 – 5 between them, joined at both ends
DUAL_PLACES = {1: (0, 0), 2: (1, 0), 3: (2, 0), 4: (0, 1), 5: (1, 1), 6: (2, 1), 7: (1, 0.5)}
ONE_WAY = {"oneway": "yes"}
DUAL: Ways = {
    20: ([1, 2], ONE_WAY), 21: ([2, 3], ONE_WAY), 22: ([6, 5], ONE_WAY), 23: ([5, 4], ONE_WAY),
    24: ([2, 7], {}), 27: ([7, 5], {}), 25: ([3, 6], {}), 26: ([4, 1], {}),
}  # fmt: skip


def _turn(kind: str, origin: int, via: int | list[int], to: int, **tags: str) -> Relation:
    """A relation; ``via`` is a node, or a list of ways. Keyword ``except_`` is ``except``."""
    between = [("node", "via", via)] if isinstance(via, int) else [("way", "via", w) for w in via]
    members = [("way", "from", origin), *between, ("way", "to", to)]
    named = {key.rstrip("_"): value for key, value in tags.items()}
    return {"type": "restriction", **({"restriction": kind} if kind else {}), **named}, members


def _read(
    folder: Path, places: Any, ways: Ways, relations: list[Relation], **options: Any
) -> RoadNetwork:
    def tagged(tags: dict[str, str]) -> str:
        return "".join(f'<tag k="{key}" v="{value}"/>' for key, value in tags.items())

    parts = [
        f'<node id="{node}" lon="{7 + x / 100}" lat="{43 + y / 100}"/>'
        for node, (x, y) in places.items()
    ]
    for way, (refs, tags) in ways.items():
        line = "".join(f'<nd ref="{ref}"/>' for ref in refs)
        parts.append(f'<way id="{way}">{line}{tagged({"highway": "residential", **tags})}</way>')
    for number, (tags, members) in enumerate(relations, 1):
        rows = "".join(f'<member type="{t}" role="{r}" ref="{i}"/>' for t, r, i in members)
        parts.append(f'<relation id="{number}">{rows}{tagged(tags)}</relation>')
    path = folder / "map.osm"
    path.write_text(f'<osm version="0.6">{"".join(parts)}</osm>')
    return read_network(path, **options)


def _by_nodes(network: RoadNetwork) -> set[tuple[int, ...]]:
    """The forbidden turns as the ids of the nodes passed."""
    found = set()
    for turn in network.forbidden_turns:
        nodes = network.path(turn).nodes(network)
        found.add(tuple(network.node_ids[nodes].tolist()))
    return found


def _report(network: RoadNetwork) -> dict[str, int]:
    dropped = network.provenance["report"]["dropped"]
    return {why: count for why, count in dropped.items() if why.startswith("turn restrictions")}


@pytest.mark.parametrize(
    ("relation", "forbidden"),
    [
        (_turn("no_left_turn", 10, 1, 12), {(2, 1, 4)}),
        (_turn("no_straight_on", 13, 1, 12), {(5, 1, 4)}),
        (_turn("no_u_turn", 10, 1, 10), {(2, 1, 2)}),
        (_turn("no_u_turn", 14, 4, 14), {(2, 4, 2), (3, 4, 3)}),
        (_turn("only_straight_on", 10, 1, 11), {(2, 1, 2), (2, 1, 4), (2, 1, 5)}),
        (_turn("only_right_turn", 10, 1, 13), {(2, 1, 2), (2, 1, 3), (2, 1, 4)}),
        (_turn("", 10, 1, 12, **{"restriction:motorcar": "no_left_turn"}), {(2, 1, 4)}),
        (_turn("", 10, 1, 12, **{"restriction:motor_vehicle": "no_left_turn"}), {(2, 1, 4)}),
        (_turn("no_left_turn", 10, 1, 12, except_="bicycle;taxi"), {(2, 1, 4)}),
    ],
)
def test_a_restriction_at_a_node(
    tmp_path: Path, relation: Relation, forbidden: set[tuple[int, ...]]
) -> None:
    network = _read(tmp_path, CROSSING_PLACES, CROSSING, [relation])
    assert _by_nodes(network) == forbidden
    assert _report(network) == {}
    assert network.provenance["report"]["read"]["turn restrictions"] == 1


@pytest.mark.parametrize(
    ("relation", "why"),
    [
        (_turn("", 10, 1, 12, **{"restriction:hgv": "no_left_turn"}), "for other vehicles"),
        (
            ({"type": "restriction:bus", "restriction": "no_u_turn"}, _turn("", 10, 1, 12)[1]),
            "for other vehicles",
        ),
        (
            _turn("no_left_turn", 10, 1, 12, except_="emergency"),
            "that exempt cars, emergency vehicles or buses",
        ),
        (
            _turn("no_left_turn", 10, 1, 12, except_="bicycle; psv"),
            "that exempt cars, emergency vehicles or buses",
        ),
        (
            _turn("", 10, 1, 12, **{"restriction:conditional": "no_left_turn @ (07:00-09:00)"}),
            "at some times only",
        ),
        (_turn("no_left_turn", 10, 1, 12, hour_on="07:00"), "at some times only"),
        (_turn("give_way", 10, 1, 12), "of an unknown kind"),
        (_turn("no_left_turn", 10, 1, 99), "on roads that are not in the network"),
        (_turn("no_left_turn", 10, 3, 11), "on roads that are not in the network"),
        (_turn("no_left_turn", 12, 4, 14), "that fit several turns"),
        (
            ({"type": "restriction", "restriction": "no_u_turn"}, [("way", "from", 10)]),
            "without from, via or to",
        ),
    ],
)
def test_what_does_not_count_is_counted(tmp_path: Path, relation: Relation, why: str) -> None:
    network = _read(tmp_path, CROSSING_PLACES, CROSSING, [relation])
    assert network.forbidden_turns == ()
    assert _report(network) == {f"turn restrictions {why}": 1}


@pytest.mark.parametrize("simplify", [True, False])
def test_no_turn_along_ways(tmp_path: Path, simplify: bool) -> None:
    relation = _turn("no_u_turn", 20, [24, 27], 23)
    network = _read(tmp_path, DUAL_PLACES, DUAL, [relation], simplify=simplify)
    middle = () if simplify else (7,)
    assert _by_nodes(network) == {(1, 2, *middle, 5, 4)}
    assert network.num_nodes == (6 if simplify else 7), "the middle of the link is no junction"


def test_the_only_turn_along_ways_forbids_to_leave_them(tmp_path: Path) -> None:
    network = _read(tmp_path, DUAL_PLACES, DUAL, [_turn("only_u_turn", 20, [24, 27], 23)])
    assert _by_nodes(network) == {(1, 2, 3), (1, 2, 5, 2)}
    assert _by_nodes(network) == _by_nodes(
        _read(tmp_path, DUAL_PLACES, DUAL, [_turn("only_u_turn", 20, [27, 24], 23)])
    )


def test_a_node_stays_where_going_straight_on_is_forbidden(tmp_path: Path) -> None:
    """Two ways of one street meet at node 6, where no driver would have a choice."""
    places = {**CROSSING_PLACES, 6: (0.5, 0)}
    ways: Ways = {**CROSSING, 11: ([1, 6], {}), 15: ([6, 3], {})}
    assert 6 not in _read(tmp_path, places, ways, []).node_ids
    network = _read(tmp_path, places, ways, [_turn("no_straight_on", 11, 6, 15)])
    assert _by_nodes(network) == {(1, 6, 3)}


def test_a_turn_back_where_no_node_is_left_is_gone(tmp_path: Path) -> None:
    places = {**CROSSING_PLACES, 6: (0.5, 0)}
    ways: Ways = {**CROSSING, 11: ([1, 6], {}), 15: ([6, 3], {})}
    relation = _turn("no_u_turn", 11, 6, 11)
    network = _read(tmp_path, places, ways, [relation])
    assert network.forbidden_turns == ()
    assert _report(network) == {"turn restrictions where simplification left no turn": 1}
    assert _by_nodes(_read(tmp_path, places, ways, [relation], simplify=False)) == {(1, 6, 1)}


def test_a_box_cuts_restrictions_with_their_roads(tmp_path: Path) -> None:
    relations = [
        _turn("no_left_turn", 10, 1, 12),
        _turn("no_right_turn", 10, 1, 13),
        _turn("only_straight_on", 12, 1, 13),
    ]
    box = (6.98, 42.999, 7.02, 43.02)  # without the south
    network = _read(tmp_path, CROSSING_PLACES, CROSSING, relations, box=box)
    assert _by_nodes(network) == {(4, 1, 4)}, "by way of node 2, where no choice is left"
    assert _report(network) == {"turn restrictions on roads that are not in the network": 2}


def test_a_restriction_that_leaves_no_way_on_is_dropped(tmp_path: Path) -> None:
    """The road on lies beyond the edge of the map; else nobody could leave node 2 again."""
    ways = {way: line for way, line in DUAL.items() if way != 21}
    ways[28] = ([1, 6], {})
    network = _read(tmp_path, DUAL_PLACES, ways, [_turn("no_u_turn", 20, [24, 27], 23)])
    assert _by_nodes(network) == {(1, 2, 5, 4)}, "one may turn back on the link"
    ways[24] = ([2, 7], ONE_WAY)
    network = _read(tmp_path, DUAL_PLACES, ways, [_turn("no_left_turn", 20, 2, 24)])
    assert network.forbidden_turns == ()
    assert _report(network) == {"turn restrictions that leave no way on": 1}


def test_the_most_special_key_counts() -> None:
    tags = {"type": "restriction", "restriction": "no_u_turn", "restriction:motorcar": "no_entry"}
    assert restriction_kind(tags) == "no_entry"
    kept = {"restriction": "no_u_turn", "restriction:conditional": "no_left_turn @ wet"}
    assert restriction_kind(kept) == "no_u_turn"

"""Turn restrictions of OpenStreetMap: which count for an ambulance, and the edges they forbid.

Kept: ``no_*`` and ``only_*`` at a node or along ways, for all vehicles or for cars.
Left out: those for other vehicles only, those that exempt cars, emergency vehicles or
buses (whose roads ambulances use, as :mod:`.osm_tags` says), and those that hold at some
times only.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ideal_dispatch.network.turns import Turn

_FOR_US = ("motorcar", "motor_vehicle")
_KEYS = (*(f"restriction:{vehicle}" for vehicle in _FOR_US), "restriction")  # the first counts
_EXEMPT = frozenset({*_FOR_US, "emergency", "bus", "psv"})
_TIMED = frozenset({"day_on", "day_off", "hour_on", "hour_off"})


class Restriction(NamedTuple):
    """Ways ``origin`` must not, or may ``only``, go on to ways ``onward``.

    ``via`` is a node, or the ways between. ``back`` is true of a U-turn.
    """

    origin: tuple[int, ...]
    via: int | tuple[int, ...]
    onward: tuple[int, ...]
    only: bool
    back: bool


def restriction_kind(tags: Mapping[str, str]) -> str:
    """Which turn is forbidden or the only one (``no_left_turn``), or why that does not count.

    >>> restriction_kind({"type": "restriction", "restriction": "no_u_turn"})
    'no_u_turn'
    >>> restriction_kind({"type": "restriction", "restriction:hgv": "no_u_turn"})
    'turn restrictions for other vehicles'
    """
    vehicle = tags.get("type", "").partition(":")[2]
    kind = next((tags[key] for key in _KEYS if key in tags), "")
    exempt = {word.strip() for word in tags.get("except", "").split(";")}
    timed = any(key.startswith("restriction") and key.endswith(":conditional") for key in tags)
    if not _TIMED.isdisjoint(tags) or (timed and not kind):
        return "turn restrictions at some times only"
    if not exempt.isdisjoint(_EXEMPT):
        return "turn restrictions that exempt cars, emergency vehicles or buses"
    if vehicle not in {"", *_FOR_US} or not kind:
        return "turn restrictions for other vehicles"
    if not kind.startswith(("no_", "only_")):
        return "turn restrictions of an unknown kind"
    return kind


class RoadEdges(NamedTuple):
    """Directed edges: the nodes at their ends, by the ids of the source, and their ways."""

    tail: Sequence[int]
    head: Sequence[int]
    way: Sequence[int]


def forbidden_turns(
    restrictions: Sequence[Restriction], edges: RoadEdges, dropped: Counter[str]
) -> list[list[Turn]]:
    """The sequences of edges that each restriction forbids; none is counted by reason."""
    of_way: dict[int, list[int]] = defaultdict(list)
    leaving: dict[int, list[int]] = defaultdict(list)
    for edge, (tail, way) in enumerate(zip(edges.tail, edges.way, strict=True)):
        of_way[way].append(edge)
        leaving[tail].append(edge)
    forbidden = []
    for restriction in restrictions:
        routes = sorted(set(_routes(restriction, edges, of_way)))
        if not routes:
            dropped["turn restrictions on roads that are not in the network"] += 1
        elif not _clear(restriction, routes):
            dropped["turn restrictions that fit several turns"] += 1
            routes = []
        forbidden.append(list(_others(routes, edges, leaving)) if restriction.only else routes)
    stuck = _stuck({turn for turns in forbidden for turn in turns}, edges, leaving)
    for turns in forbidden:
        before = len(turns)
        turns[:] = [turn for turn in turns if turn[:-1] not in stuck]
        if before and not turns:
            dropped["turn restrictions that leave no way on"] += 1
    return forbidden


def _stuck(turns: set[Turn], edges: RoadEdges, leaving: Mapping[int, list[int]]) -> set[Turn]:
    """Beginnings of forbidden turns after which every road on is forbidden.

    The road on that was meant lies outside the network, or the map contradicts itself.
    """

    def ends_one(driven: Turn) -> bool:
        return any(driven[i:] in turns for i in range(len(driven) - 1))

    return {
        behind
        for behind in {turn[:-1] for turn in turns}
        if all(ends_one((*behind, edge)) for edge in leaving[edges.head[behind[-1]]])
    }


def _clear(restriction: Restriction, routes: list[Turn]) -> bool:
    """Whether each way takes part with one edge, or the turn is back along the same way."""
    if restriction.back and restriction.origin == restriction.onward:
        return True
    firsts, lasts = ({route[end] for route in routes} for end in (0, -1))
    return len(firsts) <= len(restriction.origin) and len(lasts) <= len(restriction.onward)


def _routes(
    restriction: Restriction, edges: RoadEdges, of_way: Mapping[int, list[int]]
) -> Iterator[Turn]:
    """The ways to drive from the first ways to the last, as sequences of edges."""
    via, turns_back = restriction.via, restriction.back and restriction.origin == restriction.onward
    firsts, lasts = (
        [edge for way in ways for edge in of_way.get(way, ())]
        for ways in (restriction.origin, restriction.onward)
    )
    if isinstance(via, int):
        for first in (edge for edge in firsts if edges.head[edge] == via):
            for last in (edge for edge in lasts if edges.tail[edge] == via):
                if not turns_back or edges.head[last] == edges.tail[first]:
                    yield first, last
        return
    between = [edge for way in via for edge in of_way.get(way, ())]
    starts, ends = ({end[edge] for edge in between} for end in (edges.tail, edges.head))
    for first in (edge for edge in firsts if edges.head[edge] in starts):
        for last in (edge for edge in lasts if edges.tail[edge] in ends):
            along = _along(between, edges, edges.head[first], edges.tail[last])
            if along:
                yield first, *along, last


def _along(between: list[int], edges: RoadEdges, start: int, end: int) -> Turn | None:
    """The fewest edges of those between that lead from one node to another, but not none."""
    queue: deque[tuple[int, Turn]] = deque([(start, ())])
    seen = {start}
    while queue:
        node, behind = queue.popleft()
        for edge in between:
            ahead = edges.head[edge]
            if edges.tail[edge] == node and ahead not in seen:
                if ahead == end:
                    return *behind, edge
                seen.add(ahead)
                queue.append((ahead, (*behind, edge)))
    return None


def _others(
    routes: Sequence[Turn], edges: RoadEdges, leaving: Mapping[int, list[int]]
) -> Iterator[Turn]:
    """Every way to leave the only routes that are allowed."""
    allowed = {route[: size + 1] for route in routes for size in range(1, len(route))}
    for behind in sorted({route[:-1] for route in allowed}):
        for edge in leaving[edges.head[behind[-1]]]:
            if (*behind, edge) not in allowed:
                yield *behind, edge

"""Contests drawn in recorded traffic: calls at places where depots compete, every depot driven.

Every depot in the contest is driven in both worlds, so that the three issues of the
paper's introduction can be counted (:class:`~ideal_dispatch.evaluation.paper_issues.Contests`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from ideal_dispatch.arrays import IntArray
from ideal_dispatch.dispatch.situation import Assignment
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.call_maps import DrawnDrive
from ideal_dispatch.evaluation.paper_issues import MARGIN, Contests
from ideal_dispatch.network import Depot
from ideal_dispatch.replay.drive import DriveError, World, drive
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.source import RouteQuote

_MARGIN_S = 3600.0

Call = tuple[int, datetime]
"""A node, and when the call came in."""


@dataclass(frozen=True, slots=True)
class ContestParams:
    """Which calls are contested.

    ``nodes`` places at which the two nearest depots are within ``margin`` of
    each other on empty roads, ``calls`` at each, at random moments of
    ``hours`` (local clock) that leave an hour of recording to drive in. A call
    counts where quoted times, too, are within ``margin`` of the shortest.
    """

    nodes: int = 50
    calls: int = 8
    margin: float = MARGIN
    hours: tuple[tuple[int, int], ...] = ((7, 9), (17, 19))

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.calls < 1 or not self.margin > 0:
            raise InputError("contests need at least one node, one call and a margin above zero")


def contest(
    world: ReplayedTraffic,
    depots: Sequence[Depot],
    region: IntArray,
    params: ContestParams,
    rng: np.random.Generator,
) -> tuple[Contests, tuple[Call, ...]]:
    """Draw calls, ask the router, drive every depot in the contest; gives contests and calls.

    ``region`` is the number of the depot whose territory each node is in.
    """
    nodes = contested_nodes(world, depots, params, rng)
    rows, took = [], []
    for node in nodes.tolist():
        for at in _moments(world, params, rng):
            quotes = [world.quote(depot.node, node, at) for depot in depots]
            quoted = np.array([quote.duration_s for quote in quotes])
            contends = quoted <= (1 + params.margin) * quoted.min()
            if contends.sum() < 2:
                continue
            goes = contends.copy()
            goes[region[node]] = True
            try:
                took.append(
                    [[_took_s(world, i, quote, at, how) if goes[i] else np.nan
                      for i, quote in enumerate(quotes)] for how in World]
                )  # fmt: skip
            except DriveError:
                continue
            rows.append((node, at, quotes, contends, goes))
    if not rows:
        raise InputError(
            f"no contest among {nodes.size * params.calls} calls: quoted times were never within "
            f"{params.margin:.0%} of each other, or all drives left the recorded time"
        )
    by_depot = {
        name: np.array([
            [getattr(quote, name) if in_contest else np.nan
             for quote, in_contest in zip(quotes, goes, strict=True)]
            for _, _, quotes, _, goes in rows
        ])
        for name in ("duration_s", "optimistic_s", "pessimistic_s")
    }  # fmt: skip
    contests = Contests(
        region=region[[node for node, *_ in rows]],
        quoted_s=by_depot["duration_s"],
        optimistic_s=by_depot["optimistic_s"],
        pessimistic_s=by_depot["pessimistic_s"],
        took_s=np.moveaxis(np.array(took), 1, 0),
        contends=np.array([contends for *_, contends, _ in rows]),
    )
    return contests, tuple((node, at) for node, at, *_ in rows)


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """One call with the drives of two depots: first the favourite's, then its rival's."""

    node: int
    drives: tuple[DrawnDrive, ...]


def example(
    world: ReplayedTraffic,
    depots: Sequence[Depot],
    contests: Contests,
    calls: Sequence[Call],
    how: World,
) -> Example | None:
    """The most telling call, driven again for its trace."""
    call = contests.most_telling(how)
    if call is None:
        return None
    node, at = calls[call]
    drives = []
    for who, of in (("promised first", contests.favourite), ("promised second", contests.rival)):
        number = int(of[call])
        depot = depots[number]
        quote = world.quote(depot.node, node, at)
        done = drive(world, world.network, Assignment(number, quote.path), node, at, how)
        drives.append(
            DrawnDrive(
                who, depot, done.edges.tolist(), done.seconds.tolist(), done.expected_s.tolist()
            )
        )
    return Example(node, tuple(drives))


def contested_nodes(
    world: ReplayedTraffic, depots: Sequence[Depot], params: ContestParams, rng: np.random.Generator
) -> IntArray:
    """Random nodes whose two nearest depots are within the margin on empty roads."""
    if len(depots) < 2:
        raise InputError(f"a contest needs at least two depots, {len(depots)} given")
    network = world.network
    away_s = np.sort(
        [network.distances(network.free_flow_times_s, depot.node) for depot in depots], axis=0
    )
    near = np.isfinite(away_s).all(axis=0) & (away_s[0] > 0)
    with np.errstate(invalid="ignore"):
        near &= away_s[1] <= (1 + params.margin) * away_s[0]
    found = np.flatnonzero(near)
    if not found.size:
        raise InputError(
            f"no node has two depots within {params.margin:.0%} of each other on empty roads; "
            "allow a greater margin"
        )
    chosen = rng.choice(found, min(params.nodes, found.size), replace=False)
    return np.sort(chosen).astype(np.int32)


def _moments(
    world: ReplayedTraffic, params: ContestParams, rng: np.random.Generator
) -> list[datetime]:
    """Moments of one node's calls, uniform over the recorded time in the given hours."""
    recording = world.recording
    spans: list[tuple[datetime, float]] = []
    for stretch in recording.stretches:
        start, end = (recording.calendar.local(t) for t in (stretch.start, recording.end(stretch)))
        midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
        for begin, until in params.hours:
            first = max(start, midnight + timedelta(hours=begin))
            last = min(end - timedelta(seconds=_MARGIN_S), midnight + timedelta(hours=until))
            if last > first:
                spans.append((first, (last - first).total_seconds()))
    if not spans:
        hours = ", ".join(f"{begin}–{until}" for begin, until in params.hours)
        raise InputError(
            f"the recording has no time between {hours} o'clock with an hour left to drive in; "
            "choose other hours"
        )
    lengths = np.array([length for _, length in spans])
    where = np.sort(rng.uniform(0, lengths.sum(), params.calls))
    ends = np.cumsum(lengths)
    found = []
    for moment_s in where.tolist():
        span = int(np.searchsorted(ends, moment_s, side="right"))
        inside_s = moment_s - (ends[span] - lengths[span])
        found.append(spans[span][0] + timedelta(seconds=int(inside_s)))
    return found


def _took_s(
    world: ReplayedTraffic, station: int, quote: RouteQuote, at: datetime, how: World
) -> float:
    assignment = Assignment(station, quote.path)
    return drive(world, world.network, assignment, quote.path.destination, at, how).total_s

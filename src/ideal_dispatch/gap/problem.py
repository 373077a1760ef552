"""One gap question, checked once: roads, scenarios, depots, destination and primary path."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray, frozen, whole_number
from ideal_dispatch.compiled import kernel
from ideal_dispatch.errors import CertificateError, InputError, UnreachableError
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.depot import Depot, Source, as_sources, describe, source_node
from ideal_dispatch.network.shortest_path import search
from ideal_dispatch.scenarios import ScenarioSet
from ideal_dispatch.scenarios.metric_paths import path_matrix

NO_RADIUS = 1e-20
"""Below it no path gains a microsecond in any scenario: the set is its centre alone."""


@dataclass(frozen=True, slots=True, eq=False)
class GapProblem:
    """What every method needs: the question and what follows from it at once.

    ``primary_matrix`` is G(z₁); ``nominal_to_destination`` is d̂(v), the nominal
    time from every node, infinite where there is no way. Where turns are forbidden or
    edges closed, ``network`` is the unrolled one (:meth:`RoadNetwork.unrolled`), all else
    belongs to it, and ``edge`` leads back. Of the primary only its times matter: it was chosen
    by somebody else, perhaps with a forbidden turn, and need not connect there.

    A unit that is on an edge starts at a node of its own, from where an edge leads to the end of
    that edge: the rest of it, whose embedding is √share φ, as its time is that share of φᵀXφ in
    every scenario. These edges come after the first ``num_whole``.
    """

    network: RoadNetwork
    scenarios: ScenarioSet
    depots: IntArray
    destination: int
    primary: Path
    primary_matrix: FloatArray
    nominal_to_destination: FloatArray
    num_whole: int
    edge: IntArray | None = None

    @classmethod
    def ask(
        cls,
        network: RoadNetwork,
        scenarios: ScenarioSet,
        depots: Source | Sequence[Source],
        destination: int,
        primary: Path,
        primary_from: Source | None = None,
    ) -> "GapProblem":
        """The problem, or one clear line on what is wrong with it.

        The primary may start anywhere: its own depot is among ``depots`` only
        if it has a further unit. ``primary_from`` matters where it is on an edge.
        """
        if scenarios.num_edges != network.num_edges:
            raise InputError(
                f"scenarios are for {scenarios.num_edges} edges, "
                f"the network has {network.num_edges}"
            )
        given = as_sources(depots)
        if not given:
            raise InputError("no depot given: a second ambulance needs one to start from")
        for depot in given:
            if not 0 <= source_node(depot) < network.num_nodes:
                raise InputError(f"{describe(depot)} is not in the network")
        if not isinstance(primary, Path):
            raise InputError("the primary is not a Path; make one with network.path(edges)")
        origin = whole_number(primary.origin, "origin")
        if not (len(primary) and _connects(network.tail, network.head, primary.edges, origin)):
            primary = network.path(primary.edges, origin)  # says what is wrong
        last = int(network.head[primary.edges[-1]]) if len(primary) else primary.origin
        if last != destination:
            raise InputError(f"primary path ends at node {last}, not at node {destination}")
        destination = whole_number(destination, "target")
        rests, embeddings = _rests(network, [*given, primary_from]), scenarios.embeddings
        network, edge = network.unrolled(destination)
        whole, states = network.num_edges, network.num_nodes
        if edge is not None:
            scenarios = replace(scenarios, embeddings=embeddings[edge])
            arcs = np.searchsorted(edge, primary.edges).astype(np.int32)  # of many, any
            primary = replace(primary, edges=arcs)
        if rests:
            own = np.arange(whole, dtype=np.int32) if edge is None else edge
            edge = np.concatenate([own, [one.edge for one in rests]]).astype(np.int32)
            shares = np.array([one.ahead for one in rests])
            rest = np.sqrt(shares)[:, None] * embeddings[edge[whole:]]
            scenarios = replace(scenarios, embeddings=np.vstack([scenarios.embeddings, rest]))
            network = _with_starts(network, [one.node for one in rests])
        if primary_from in rests:
            first = whole + rests.index(primary_from)
            primary = replace(primary, edges=np.insert(primary.edges, 0, first))
        nodes = {states + rests.index(one) if one in rests else source_node(one) for one in given}
        starts = np.array(sorted(nodes), np.int32)
        target = frozen(np.array([destination], np.int32))
        to_destination = search(network.incoming, scenarios.nominal_times, target)
        if to_destination[starts].min() == np.inf:
            raise UnreachableError(
                f"node {destination} cannot be reached from "
                f"{' or '.join(map(describe, given))}; check one-way edges there"
            )
        matrix = path_matrix(scenarios.embeddings, primary.edges)
        return cls(
            network, scenarios, starts, destination, primary, matrix, to_destination, whole, edge
        )  # fmt: skip

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The problem for compiled descents, its ``MetricRoads`` first, in plain tuples."""
        centre = self.scenarios.embeddings, self.scenarios.nominal_times
        roads = (*self.network.outgoing, *centre, self.nominal_to_destination)
        return roads, self.depots, self.destination, self.primary_matrix, self.scenarios.radius

    def secondary(self, edges: IntArray) -> Path:
        """The path of the given edges, which a kernel found and knows to connect."""
        edges = edges[edges < self.num_whole]
        origin = int(self.network.tail[edges[0]]) if edges.size else self.destination
        return Path(edges if self.edge is None else self.edge[edges], origin, self.destination)

    def unrolled(self, path: Path, metric: FloatArray) -> Path:
        """A path of the network asked about as one of ``network``; refused where it cannot be.

        Where units on edges alone could drive it, the one goes that is first under the metric.
        """
        if self.edge is None:
            return self.network.path(path.edges, path.origin)
        rests = np.arange(self.num_whole, self.network.num_edges)
        if not 0 <= path.origin < self.network.num_nodes - rests.size:
            raise CertificateError(f"{path} starts at no node of the network")
        node, arcs = path.origin, []
        for edge in path.edges.tolist():
            first, stop = self.network.outgoing.start[node : node + 2]
            leaving = self.network.outgoing.edge[first:stop]
            arc = leaving[self.edge[leaving] == edge]
            if not arc.size:
                raise CertificateError(f"{path} breaks or makes a forbidden turn at edge {edge}")
            arcs.append(int(arc[0]))
            node = int(self.network.head[arc[0]])
        here = self.network.head[rests] == path.origin
        rests = rests[here & np.isin(self.network.tail[rests], self.depots)]
        if rests.size and path.origin not in self.depots:
            times = self.scenarios.times(metric, rests)
            return self.network.path([int(rests[times.argmin()]), *arcs])
        return self.network.path(arcs, path.origin)


def _rests(network: RoadNetwork, starts: Sequence[Source | None]) -> list[Depot]:
    """The starts that are on an edge, each once."""
    found = [one for one in starts if isinstance(one, Depot) and one.edge is not None]
    for one in found:
        there = 0 <= (one.edge or 0) < network.num_edges
        if not (there and network.head[one.edge] == one.node and 0.0 <= one.ahead <= 1.0):
            raise InputError(f"{one}: a share {one.ahead} of edge {one.edge} does not lead there")
    return list(dict.fromkeys(one for one in found if one.ahead > 0.0))


def _with_starts(network: RoadNetwork, heads: Sequence[int]) -> RoadNetwork:
    """With a node more for each of these, from which an edge leads there."""
    own = network.num_nodes + np.arange(len(heads))
    return RoadNetwork.from_arrays(
        np.append(network.tail, own), np.append(network.head, heads),
        np.append(network.length_m, np.ones(len(heads))), num_nodes=network.num_nodes + len(heads),
    )  # fmt: skip


@kernel
def _connects(tail, head, edges, origin):  # type: ignore[no-untyped-def]
    """Whether the edges exist and lead on from one another, the first from the origin."""
    here = origin
    for e in edges:
        if not 0 <= e < tail.size or tail[e] != here:
            return False
        here = head[e]
    return True

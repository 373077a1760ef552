"""One gap question, checked once: roads, scenarios, depots, destination and primary path."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray, frozen, whole_number
from ideal_dispatch.compiled import kernel
from ideal_dispatch.errors import InputError, UnreachableError
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.depot import Source, as_sources, describe, source_node
from ideal_dispatch.network.shortest_path import search
from ideal_dispatch.scenarios import ScenarioSet
from ideal_dispatch.scenarios.metric_paths import path_matrix

NO_RADIUS = 1e-20
"""Below it no path gains a microsecond in any scenario: the set is its centre alone."""


@dataclass(frozen=True, slots=True, eq=False)
class GapProblem:
    """What every method needs: the question and what follows from it at once.

    ``primary_matrix`` is G(z₁); ``nominal_to_destination`` is d̂(v), the nominal
    time from every node, infinite where there is no way.
    """

    network: RoadNetwork
    scenarios: ScenarioSet
    depots: IntArray
    destination: int
    primary: Path
    primary_matrix: FloatArray
    nominal_to_destination: FloatArray

    @classmethod
    def ask(
        cls,
        network: RoadNetwork,
        scenarios: ScenarioSet,
        depots: Source | Sequence[Source],
        destination: int,
        primary: Path,
    ) -> "GapProblem":
        """The problem, or one clear line on what is wrong with it.

        The primary may start anywhere: its own depot is among ``depots`` only
        if it has a further unit.
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
        nodes = np.array(sorted({source_node(depot) for depot in given}), np.int32)
        if not isinstance(primary, Path):
            raise InputError("the primary is not a Path; make one with network.path(edges)")
        origin = whole_number(primary.origin, "origin")
        if not (len(primary) and _connects(network.tail, network.head, primary.edges, origin)):
            primary = network.path(primary.edges, origin)  # says what is wrong
        last = int(network.head[primary.edges[-1]]) if len(primary) else primary.origin
        if last != destination:
            raise InputError(f"primary path ends at node {last}, not at node {destination}")
        destination = whole_number(destination, "target")
        target = frozen(np.array([destination], np.int32))
        to_destination = search(network.incoming, scenarios.nominal_times, target)
        if to_destination[nodes].min() == np.inf:
            raise UnreachableError(
                f"node {destination} cannot be reached from "
                f"{' or '.join(map(describe, given))}; check one-way edges there"
            )
        matrix = path_matrix(scenarios.embeddings, primary.edges)
        return cls(network, scenarios, nodes, destination, primary, matrix, to_destination)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The problem for compiled descents, its ``MetricRoads`` first, in plain tuples."""
        centre = self.scenarios.embeddings, self.scenarios.nominal_times
        roads = (*self.network.outgoing, *centre, self.nominal_to_destination)
        return roads, self.depots, self.destination, self.primary_matrix, self.scenarios.radius

    def secondary(self, edges: IntArray) -> Path:
        """The path of the given edges, which a kernel found and knows to connect."""
        origin = int(self.network.tail[edges[0]]) if edges.size else self.destination
        return Path(edges, origin, self.destination)


@kernel
def _connects(tail, head, edges, origin):  # type: ignore[no-untyped-def]
    """Whether the edges exist and lead on from one another, the first from the origin."""
    here = origin
    for e in edges:
        if not 0 <= e < tail.size or tail[e] != here:
            return False
        here = head[e]
    return True

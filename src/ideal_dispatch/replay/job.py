"""What a worker needs to replay incidents."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import IntArray, read_only, whole_number
from ideal_dispatch.dispatch.decision import Policy
from ideal_dispatch.dispatch.situation import Incident
from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.network import Depot
from ideal_dispatch.replay.log import dropped_text, line_text
from ideal_dispatch.replay.simulation import PolicyError, simulate_incident
from ideal_dispatch.traffic.routed_world import ReplayedWorld


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """All that a worker needs besides the incidents."""

    world: ReplayedWorld
    depots: tuple[Depot, ...]
    policies: tuple[Policy, ...]
    units: tuple[int, ...]
    region: IntArray | None
    seed: int

    def __post_init__(self) -> None:
        nodes = self.world.network.num_nodes
        if not self.depots or not self.policies:
            raise InputError("a replay needs at least one depot and one policy")
        for what, names in (
            ("depot", [depot.name for depot in self.depots]),
            ("policy", [policy.name for policy in self.policies]),
        ):
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise InputError(f"{what} {twice[0]} is there twice; give each its own name")
        for depot in self.depots:
            if not 0 <= depot.node < nodes:
                raise InputError(f"{depot} is not on the network (0 … {nodes - 1})")
        if len(self.units) != len(self.depots) or min(self.units) < 0 or not any(self.units):
            raise InputError(
                f"units {list(self.units)}: one number of zero or more is needed for each of "
                f"{len(self.depots)} depots, and one above zero"
            )
        if self.region is not None:
            region = read_only(self.region, np.int32, (nodes,), "region")
            if region.min() < 0 or region.max() >= len(self.depots):
                raise InputError(
                    f"region: every node needs one of {len(self.depots)} numbers from 0"
                )
            object.__setattr__(self, "region", region)
        if whole_number(self.seed, "seed") < 0:
            raise InputError(f"seed {self.seed}: zero or more is needed")

    def lines(self, incidents: Sequence[Incident]) -> bytes:
        """One line each, or why there is none."""
        return b"".join(self._line(incident).encode() + b"\n" for incident in incidents)

    def _line(self, incident: Incident) -> str:
        region = None if self.region is None else int(self.region[incident.node])
        try:
            entry = simulate_incident(
                self.world, incident, self.depots, self.policies,
                units=self.units, region=region, seed=self.seed,
            )  # fmt: skip
        except PolicyError:
            raise
        except IdealError as error:
            return dropped_text(incident.name, str(error))
        return line_text(entry)

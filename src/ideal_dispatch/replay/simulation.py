"""One incident replayed: every policy decides, and every ambulance drives in the same world."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ideal_dispatch.arrays import IntArray, read_only
from ideal_dispatch.dispatch.decision import Decision, Policy, decided
from ideal_dispatch.dispatch.situation import (
    Assignment,
    Incident,
    Readiness,
    Situation,
    TellsEdgeTimes,
    observe,
)
from ideal_dispatch.errors import IdealError, InputError, PluginError
from ideal_dispatch.network import Depot
from ideal_dispatch.ranges import Range
from ideal_dispatch.replay.drive import Drive, World, drive
from ideal_dispatch.replay.hindsight import hindsight_optimum
from ideal_dispatch.replay.incidents import generator
from ideal_dispatch.replay.log import drive_key, dropped_text, incident_entry, line_text
from ideal_dispatch.traffic.replayed_traffic import PresentTraffic, ReplayedTraffic


@dataclass(frozen=True, slots=True, eq=False)
class DecidedCall:
    """A call as the policies saw it, what each decided, and the ways to drive, by name."""

    situation: Situation
    decisions: Sequence[Decision]
    ways: Mapping[str, Assignment]


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """The traffic that calls are replayed in, and who decides about them.

    ``units`` are the free ambulances of each depot: two, where not given. ``region`` has a
    depot's number per node. Every ambulance drives in the same ``world``.
    """

    traffic: ReplayedTraffic | PresentTraffic
    depots: Sequence[Depot]
    policies: Sequence[Policy]
    units: Sequence[int] | None = None
    region: IntArray | None = None
    seed: int = 0
    world: World = World.EXPERIENCED

    def __post_init__(self) -> None:
        units = (2,) * len(self.depots) if self.units is None else tuple(self.units)
        if self.world not in tuple(World):
            raise InputError(f"world {self.world!r}: choose {' or '.join(World)}")
        for name, values in (("depots", tuple(self.depots)), ("policies", tuple(self.policies)),
                             ("units", units), ("world", World(self.world))):  # fmt: skip
            object.__setattr__(self, name, values)
        nodes = self.traffic.network.num_nodes
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
        if len(units) != len(self.depots) or min(units) < 0 or not any(units):
            raise InputError(
                f"units {list(units)}: one number of zero or more is needed for each of "
                f"{len(self.depots)} depots, and one above zero"
            )
        if self.region is not None:
            region = read_only(self.region, np.int32, (nodes,), "region")
            if region.min() < 0 or region.max() >= len(self.depots):
                raise InputError(
                    f"region: every node needs one of {len(self.depots)} numbers from 0"
                )
            object.__setattr__(self, "region", region)
        Range(whole=True).check(self.seed, "seed")

    def line(self, incident: Incident) -> str:
        """The incident's line of the log, or the line with the reason why there is none."""
        try:
            return line_text(self.entry(incident))
        except PluginError:
            raise
        except IdealError as error:
            return dropped_text(incident.name, str(error))

    def entry(self, incident: Incident) -> dict[str, Any]:
        """The incident's entry in the log; equal assignments are driven once."""
        traffic, call = self.traffic, self.decided(incident)
        return self.logged(call, {
            key: drive(traffic, traffic.network, way, incident.node, incident.at, self.world)
            for key, way in call.ways.items()
        })  # fmt: skip

    def decided(self, incident: Incident) -> DecidedCall:
        """What every policy decides, by the same quotes, of units on the road too.

        Policies see the situation at the call and nothing later; each has a
        generator that is seeded by ``seed``, the incident's name and its own name,
        so that adding a policy or an incident changes no other draw.
        """
        traffic, network, at = self.traffic, self.traffic.network, incident.at
        region = None if self.region is None else int(self.region[incident.node])
        road = incident.on_road
        ready = Readiness([*self.depots, *road], [*(self.units or ()), *[1] * len(road)], region)
        situation = observe(traffic, network, incident, traffic.context(at), ready)
        ways = {f"s{i}": Assignment(i, situation.quote(i).path) for i in situation.available}
        decisions = [
            decided(policy, situation, generator(self.seed, incident.name, policy.name))
            for policy in self.policies
        ]
        for decision in decisions:
            for assignment in (decision.primary, decision.second):
                if assignment is not None:
                    ways.setdefault(drive_key(assignment), assignment)
        return DecidedCall(situation, decisions, ways)

    def logged(self, call: DecidedCall, drives: Mapping[str, Drive]) -> dict[str, Any]:
        """The entry of a call whose ways were driven.

        The hindsight optimum is the better of the label setting and of the drives
        here: where streets are not FIFO, no drive of the entry beats it. In live traffic, and in
        instantaneous traffic of a router that gives no edge times, it is the best drive here.
        """
        situation, traffic = call.situation, self.traffic
        incident, network = situation.incident, situation.network
        best = [(call.ways[key].station, driven) for key, driven in drives.items()]
        known = self.world is World.EXPERIENCED or isinstance(traffic, TellsEdgeTimes)
        if known and isinstance(traffic, ReplayedTraffic):
            nodes = [situation.stations[i].depot.node for i in situation.available]
            optimum = hindsight_optimum(
                traffic, network, nodes, incident.node, incident.at, self.world
            )
            start = int(network.tail[optimum.edges[0]]) if optimum.edges.size else incident.node
            best.insert(0, (situation.available[nodes.index(start)], optimum))
        hindsight = min(best, key=lambda one: one[1].total_s)
        day = traffic.calendar.local(incident.at).date().isoformat()
        pairs = {key: (call.ways[key], driven) for key, driven in drives.items()}
        return incident_entry(situation, day, call.decisions, pairs, hindsight, self.world)

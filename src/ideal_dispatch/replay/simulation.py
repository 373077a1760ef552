"""One incident replayed: every policy decides, and every ambulance drives in the same worlds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from ideal_dispatch.arrays import IntArray, read_only, whole_number
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
from ideal_dispatch.replay.drive import Drive, World, drive
from ideal_dispatch.replay.hindsight import hindsight_optimum
from ideal_dispatch.replay.incidents import generator
from ideal_dispatch.replay.log import (
    drive_key,
    dropped_text,
    incident_entry,
    line_text,
    logged_depot,
)
from ideal_dispatch.traffic.present_traffic import PresentTraffic
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic

Drives = Mapping[str, tuple[Assignment, Mapping[World, Drive]]]
"""Every way that was driven, by its name in the log, and the drives by world."""


@dataclass(frozen=True, slots=True, eq=False)
class DecidedCall:
    """A call as the policies saw it, what each decided, and the ways to drive, by name."""

    situation: Situation
    decisions: Sequence[Decision]
    ways: Mapping[str, Assignment]


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """The traffic that calls are replayed in, and who decides about them.

    ``units`` are the free ambulances of each depot: two, where not told. ``region`` has a
    depot's number per node. Every ambulance drives in each of the ``worlds``.
    """

    traffic: ReplayedTraffic | PresentTraffic
    depots: Sequence[Depot]
    policies: Sequence[Policy]
    units: Sequence[int] | None = None
    region: IntArray | None = None
    seed: int = 0
    worlds: Sequence[World] = tuple(World)

    def __post_init__(self) -> None:
        units = (2,) * len(self.depots) if self.units is None else tuple(self.units)
        try:
            worlds = [World(world) for world in self.worlds]
        except ValueError:
            known = " and ".join(World)
            raise InputError(f"worlds {list(self.worlds)}: choose of {known}") from None
        for name, values in (("depots", self.depots), ("policies", self.policies),
                             ("units", units), ("worlds", worlds)):  # fmt: skip
            object.__setattr__(self, name, tuple(values))
        nodes = self.traffic.network.num_nodes
        if not self.depots or not self.policies or not self.worlds:
            raise InputError("a replay needs at least one depot, one policy and one world")
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
        if whole_number(self.seed, "seed") < 0:
            raise InputError(f"seed {self.seed}: zero or more is needed")

    def lines(self, incidents: Sequence[Incident]) -> bytes:
        """One line each, or why there is none."""
        return b"".join(self._line(incident).encode() + b"\n" for incident in incidents)

    def _line(self, incident: Incident) -> str:
        try:
            return line_text(self.entry(incident))
        except PluginError:
            raise
        except IdealError as error:
            return dropped_text(incident.name, str(error))

    def entry(self, incident: Incident) -> dict[str, Any]:
        """The incident's entry in the log.

        Equal assignments are driven once.
        """
        traffic, network, call = self.traffic, self.traffic.network, self.decided(incident)
        node, at = incident.node, incident.at
        return self.logged(call, {
            key: (way, {w: drive(traffic, network, way, node, at, w) for w in self.worlds})
            for key, way in call.ways.items()
        })  # fmt: skip

    def decided(self, incident: Incident) -> DecidedCall:
        """What every policy decides, by the same quotes, of units on the road too.

        Policies see the situation at the call and nothing later; each has a
        generator of its own, seeded by ``seed``, the incident's name and its own,
        so that adding a policy or an incident changes no other draw.
        """
        traffic, network, at = self.traffic, self.traffic.network, incident.at
        region = None if self.region is None else int(self.region[incident.node])
        road = incident.on_road
        ready = Readiness([*self.depots, *road], [*(self.units or ()), *[1] * len(road)], region)
        situation = observe(traffic, network, incident, traffic.context(at), ready)
        told = {f"s{i}": Assignment(i, situation.quote(i).path) for i in situation.available}
        decisions = [
            decided(policy, situation, generator(self.seed, incident.name, policy.name))
            for policy in self.policies
        ]
        for decision in decisions:
            for assignment in (decision.primary, decision.second):
                if assignment is not None:
                    told.setdefault(drive_key(assignment), assignment)
        return DecidedCall(situation, decisions, told)

    def logged(self, call: DecidedCall, drives: Drives) -> dict[str, Any]:
        """The entry of a call whose ways were driven.

        The hindsight optimum is the better of the label setting and of the drives
        here: where streets are not FIFO, no drive of the entry beats it. In live traffic, and in
        instantaneous traffic of a router that tells no edge times, it is the best drive here.
        """
        situation, traffic = call.situation, self.traffic
        hindsight = {
            w: _best(traffic, situation, w, [(way, driven[w]) for way, driven in drives.values()])
            for w in self.worlds
        }
        day = traffic.calendar.local(situation.incident.at).date().isoformat()
        return incident_entry(situation, day, call.decisions, drives, hindsight)


def resimulate(
    entry: Mapping[str, Any], traffic: ReplayedTraffic, policies: Sequence[Policy], seed: int
) -> dict[str, Any]:
    """The entry again, from its incident, stations, territory and worlds alone.

    A unit on the road is a station like any other.
    """
    said, stations, region = entry["incident"], entry["stations"], entry["region"]
    replay = Replay(
        traffic,
        [logged_depot(station) for station in stations],
        policies,
        [station["units"] for station in stations],
        None if region is None else np.full(traffic.network.num_nodes, region, np.int32),
        seed,
        [World(name) for name in entry["hindsight"]],
    )
    return replay.entry(Incident(said["name"], said["node"], datetime.fromisoformat(said["at"])))


def _best(
    traffic: ReplayedTraffic | PresentTraffic,
    situation: Situation,
    world: World,
    drives: Sequence[tuple[Assignment, Drive]],
) -> tuple[int, Drive]:
    """Station and drive of the earliest arrival that is known."""
    incident, network = situation.incident, situation.network
    nodes = [situation.stations[i].depot.node for i in situation.available]
    found = [(assignment.station, driven) for assignment, driven in drives]
    known = world is World.EXPERIENCED or isinstance(traffic, TellsEdgeTimes)
    if known and isinstance(traffic, ReplayedTraffic):
        optimum = hindsight_optimum(traffic, network, nodes, incident.node, incident.at, world)
        start = int(network.tail[optimum.edges[0]]) if optimum.edges.size else incident.node
        found.insert(0, (situation.available[nodes.index(start)], optimum))
    return min(found, key=lambda one: one[1].total_s)

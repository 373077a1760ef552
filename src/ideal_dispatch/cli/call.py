"""The call that the options of ``ideal decide`` describe, as a dispatcher would know it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from ideal_dispatch.cli.options import read_moment
from ideal_dispatch.cli.places import depots_of
from ideal_dispatch.errors import InputError

if TYPE_CHECKING:
    from ideal_dispatch.cities import City
    from ideal_dispatch.context import Context
    from ideal_dispatch.dispatch import Situation
    from ideal_dispatch.dispatch.trace import Trace
    from ideal_dispatch.forecast import Model
    from ideal_dispatch.network import Depot, RoadNetwork
    from ideal_dispatch.traffic.source import TrafficSource

TRAIN = "train one with `ideal train` and give it as --model"


@dataclass(frozen=True)
class Area:
    """The roads and depots around a call; ``city`` is the embedded one, where it is that."""

    network: "RoadNetwork"
    depots: "tuple[Depot, ...]"
    city: "City | None"

    @classmethod
    def read(cls, network_file: Path | None, depots_file: Path | None) -> "Area":
        """The network and depots that are told, or the embedded city."""
        from ideal_dispatch.cities import harbour_city
        from ideal_dispatch.network import RoadNetwork

        city = harbour_city() if network_file is None else None
        network = city.network if city is not None else RoadNetwork.load(str(network_file))
        if depots_file is not None:
            return cls(network, tuple(depots_of(depots_file, network)), None)
        if city is None:
            raise InputError("--network needs --depots: whose ambulances are there?")
        return cls(network, city.depots, city)


@dataclass(frozen=True)
class CallOptions:
    """What the options say about a call."""

    node: int | None
    lon: float | None
    lat: float | None
    units: tuple[str, ...]
    primary: str | None
    at: str | None
    traffic_file: Path | None
    time_zone: str
    country: str
    seed: int

    def situation(self, area: Area, model: "Model | None", trace: "Trace") -> "Situation":
        """What is known when the call comes in: times from the traffic told, or the model's own."""
        from ideal_dispatch.dispatch import Assignment, Incident, observe

        source, context = self._traffic(area, model, trace)
        moment, depots, node = context.at, area.depots, self._node(area, trace)
        sent = None
        if self.primary is not None:
            station = _depot("--primary", self.primary, depots)
            sent = Assignment(station, source.quote(depots[station].node, node, moment).path)
        return observe(
            source, area.network, Incident("call", node, moment), context, depots,
            units=_units(depots, self.units),
            region=None if area.city is None else int(area.city.region[node]),
            sent=sent,
            trace=trace,
        )  # fmt: skip

    def _traffic(
        self, area: Area, model: "Model | None", trace: "Trace"
    ) -> "tuple[TrafficSource, Context]":
        """Who tells travel times, and the moment of the call."""
        if self.traffic_file is not None:
            from ideal_dispatch.traffic.recorded import RecordedWorld
            from ideal_dispatch.traffic.recording import RecordedTraffic

            with trace.step("recorded traffic") as facts:
                recording = RecordedTraffic.load(self.traffic_file, area.network)
                facts["days"] = len(recording.days)
            if self.at is None:
                raise InputError(
                    "--traffic needs --at: a moment of the recording, which begins at "
                    f"{recording.stretches[0].start.isoformat()}"
                )
            return RecordedWorld(recording), recording.context(read_moment("--at", self.at))
        if model is None:
            raise InputError(f"no travel times: give --traffic, or a model ({TRAIN})")
        from ideal_dispatch.context import Calendar
        from ideal_dispatch.dispatch.forecast_router import ForecastRouter

        moment = datetime.now(UTC) if self.at is None else read_moment("--at", self.at)
        clock = area.city or self
        context = Calendar(clock.time_zone, clock.country).context(moment)
        return ForecastRouter(model, area.network, context), context

    def _node(self, area: Area, trace: "Trace") -> int:
        network = area.network
        if self.node is not None:
            if self.lon is not None or self.lat is not None:
                raise InputError("--node and --lon/--lat both name the incident; give one of them")
            if not 0 <= self.node < network.num_nodes:
                raise InputError(
                    f"--node {self.node}: not a node of the network (0 … {network.num_nodes - 1})"
                )
            return self.node
        if self.lon is not None and self.lat is not None:
            with trace.step("snapping") as facts:
                snap = network.snap(self.lon, self.lat)
                facts |= {"node": snap.node, "distance_m": round(snap.distance_m, 1)}
            return snap.node
        if self.lon is not None or self.lat is not None:
            raise InputError("--lon and --lat belong together; give both")
        if area.city is None:
            raise InputError("where is the incident? Give --node, or --lon and --lat")
        import numpy as np

        return int(np.random.default_rng(self.seed).integers(network.num_nodes))


def _units(depots: "tuple[Depot, ...]", told: tuple[str, ...]) -> list[int]:
    units = [2] * len(depots)
    for text in told:
        name, equals, count = text.rpartition("=")
        if not equals or not count.strip().isdecimal():
            raise InputError(f"--depot {text}: write it as NAME=UNITS, as in {depots[0].name}=1")
        units[_depot("--depot", name.strip(), depots)] = int(count)
    return units


def _depot(option: str, name: str, depots: "tuple[Depot, ...]") -> int:
    names = [depot.name for depot in depots]
    if name not in names:
        near = get_close_matches(name, names, 1)
        advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
        raise InputError(f"{option} {name}: no such depot; {advice}")
    return names.index(name)

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
    from ideal_dispatch.dispatch import Situation
    from ideal_dispatch.dispatch.fitted import FittedParts
    from ideal_dispatch.dispatch.trace import Trace
    from ideal_dispatch.network import Depot, RoadNetwork

TRAIN = "train one with `ideal train` and give it as --model"


@dataclass(frozen=True)
class Place:
    """Where the call is: a city with all it knows, or a network and its depots."""

    network: "RoadNetwork"
    depots: "tuple[Depot, ...]"
    city: "City | None"


@dataclass(frozen=True)
class CallOptions:
    """What the options say about the incident and the free units."""

    node: int | None
    lon: float | None
    lat: float | None
    units: tuple[str, ...]
    primary: str | None
    seed: int


def read_place(network_file: Path | None, depots_file: Path | None) -> Place:
    """The network and depots that are told, or the embedded city."""
    from ideal_dispatch.cities import harbour_city
    from ideal_dispatch.network import RoadNetwork

    city = harbour_city() if network_file is None else None
    network = city.network if city is not None else RoadNetwork.load(str(network_file))
    if depots_file is not None:
        return Place(network, tuple(depots_of(depots_file, network)), None)
    if city is None:
        raise InputError("--network needs --depots: whose ambulances are there?")
    return Place(network, city.depots, city)


def situation_of(
    place: Place,
    parts: "FittedParts",
    traffic_file: Path | None,
    at: str | None,
    told: CallOptions,
    time_zone: str,
    country: str,
    trace: "Trace",
) -> "Situation":
    """What is known when the call comes in: times from the traffic told, or the model's own."""
    from ideal_dispatch.context import Calendar
    from ideal_dispatch.dispatch import Assignment, Incident, observe
    from ideal_dispatch.dispatch.forecast_router import ForecastRouter
    from ideal_dispatch.traffic.recorded import RecordedWorld
    from ideal_dispatch.traffic.recording import RecordedTraffic

    network, city = place.network, place.city
    source: RecordedWorld | ForecastRouter
    if traffic_file is not None:
        with trace.step("recorded traffic") as facts:
            world = source = RecordedWorld(RecordedTraffic.load(traffic_file, network))
            facts["days"] = len(world.recording.days)
        if at is None:
            raise InputError(
                "--traffic needs --at: a moment of the recording, which begins at "
                f"{world.recording.stretches[0].start.isoformat()}"
            )
        moment = read_moment("--at", at)
        context = world.recording.context(moment)
    elif parts.model is not None:
        moment = datetime.now(UTC) if at is None else read_moment("--at", at)
        if city is not None:
            time_zone, country = city.time_zone, city.country
        context = Calendar(time_zone, country).context(moment)
        source = ForecastRouter(parts.model, network, context)
    else:
        raise InputError(f"no travel times: give --traffic, or a model ({TRAIN})")
    node = _node(place, told, trace)
    sent = None
    if told.primary is not None:
        station = _depot("--primary", told.primary, place.depots)
        quote = source.quote(place.depots[station].node, node, moment)
        sent = Assignment(station, quote.path)
    return observe(
        source, network, Incident("call", node, moment), context, place.depots,
        units=_units(place.depots, told.units),
        region=None if city is None else int(city.region[node]),
        sent=sent,
        trace=trace,
    )  # fmt: skip


def _node(place: Place, told: CallOptions, trace: "Trace") -> int:
    network = place.network
    if told.node is not None:
        if told.lon is not None or told.lat is not None:
            raise InputError("--node and --lon/--lat both name the incident; give one of them")
        if not 0 <= told.node < network.num_nodes:
            raise InputError(
                f"--node {told.node}: not a node of the network (0 … {network.num_nodes - 1})"
            )
        return told.node
    if told.lon is not None and told.lat is not None:
        with trace.step("snapping") as facts:
            snap = network.snap(told.lon, told.lat)
            facts |= {"node": snap.node, "distance_m": round(snap.distance_m, 1)}
        return snap.node
    if told.lon is not None or told.lat is not None:
        raise InputError("--lon and --lat belong together; give both")
    if place.city is None:
        raise InputError("where is the incident? Give --node, or --lon and --lat")
    import numpy as np

    return int(np.random.default_rng(told.seed).integers(network.num_nodes))


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

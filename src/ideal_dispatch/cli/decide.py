"""``ideal decide``: one call, one decision, for people and as JSON."""

from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ideal_dispatch.cli.moments import read_moment
from ideal_dispatch.errors import InputError

if TYPE_CHECKING:
    from ideal_dispatch.cities import City
    from ideal_dispatch.context import Calendar
    from ideal_dispatch.dispatch import Policy, Situation
    from ideal_dispatch.dispatch.fitted import Fitted
    from ideal_dispatch.dispatch.trace import Trace
    from ideal_dispatch.network import Depot, RoadNetwork

EPILOG = """Examples:

  ideal decide --model model/ --node 700

  ideal decide --model model/ --node 700 --trace

  ideal decide --model model/ --traffic city.traffic --at 2023-05-08T08:10+08:00
  --lon 114.15 --lat 22.28 --depot "Kelp Point=1" --json

  ideal decide --traffic city.traffic --at 2023-05-08T08:10+08:00 --node 700
  --policy interval --threshold 60
"""

USUAL_COST = 0.01
_TRAIN = "train one with `ideal train` and give it as --model"


def decide(
    model_folder: Annotated[
        Path | None, typer.Option("--model", help="A directory written by `ideal train`.")
    ] = None,
    traffic_file: Annotated[
        Path | None,
        typer.Option(
            "--traffic",
            help="Recorded traffic (.traffic) to ask for times; without, the model's own.",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(help="When the call came in, such as 2023-05-08T08:10+08:00; now by default."),
    ] = None,
    node: Annotated[
        int | None,
        typer.Option(help="Where it is: a junction by its number; or give --lon and --lat."),
    ] = None,
    lon: Annotated[float | None, typer.Option(help="Where it is: longitude in degrees.")] = None,
    lat: Annotated[float | None, typer.Option(help="Where it is: latitude in degrees.")] = None,
    units: Annotated[
        list[str] | None,
        typer.Option(
            "--depot",
            metavar="NAME=UNITS",
            help="How many ambulances are free there; 2 at each depot by default.",
        ),
    ] = None,
    policy: Annotated[
        str, typer.Option(help="Who decides: ideal, paper-ideal, router, interval, …")
    ] = "ideal",
    threshold: Annotated[
        str | None,
        typer.Option(help="Send a second if it is worth more seconds than this; or always."),
    ] = None,
    curve: Annotated[
        str | None,
        typer.Option(help="Survival curve behind the threshold; waalewijn-2001 by default."),
    ] = None,
    cost: Annotated[
        float | None,
        typer.Option(
            help="What a second ambulance must bring: lives saved per call; 0.01 by default."
        ),
    ] = None,
    drift_folder: Annotated[
        Path | None,
        typer.Option(
            "--drift",
            help="A folder with what was learned about a router's errors (from a replay).",
        ),
    ] = None,
    gain_file: Annotated[
        Path | None,
        typer.Option("--gain", help="A gain.json from a replay: how far gains vary."),
    ] = None,
    network_file: Annotated[
        Path | None,
        typer.Option("--network", help="Your city's .network file; without, the embedded city."),
    ] = None,
    depots_file: Annotated[
        Path | None,
        typer.Option("--depots", help="CSV with name, lon, lat; needed with --network."),
    ] = None,
    time_zone: Annotated[
        str, typer.Option(help="The city's clock (with --traffic it is known).")
    ] = ("Asia/Hong_Kong"),
    country: Annotated[
        str, typer.Option(help="Whose public holidays (with --traffic it is known).")
    ] = "HK",
    seed: Annotated[int, typer.Option(min=0, help="Another number, other random choices.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    traced: Annotated[
        bool, typer.Option("--trace", help="Show every step, what it gave and how long it took.")
    ] = False,
) -> None:
    """Decide who drives to a call, and whether a second ambulance is worth it.

    Without --traffic the model's own times stand in for a live router. The
    threshold is seconds (--threshold), or what a second ambulance costs over
    what a second of time is worth (--cost, --curve).
    """
    import numpy as np

    from ideal_dispatch.cli.decision_view import Answer
    from ideal_dispatch.cli.terminal import stages
    from ideal_dispatch.dispatch.trace import UNTRACED, Trace

    trace = Trace() if traced else UNTRACED
    limit = _threshold(threshold, curve, cost)
    with stages("Deciding") as progress:
        progress("loading")
        with trace.step("city and model") as facts:
            place = _place(network_file, depots_file)
            parts = _parts(model_folder, drift_folder, gain_file)
            chosen = _policy(policy, limit, parts)
            facts |= {"nodes": place.network.num_nodes, "edges": place.network.num_edges}
            if parts.model is not None:
                facts["model"] = parts.model.checksum
        situation = _situation(
            place, parts, traffic_file, at, _Asked(node, lon, lat, tuple(units or ()), seed),
            time_zone, country, trace,
        )  # fmt: skip
        progress("searching other roads")
        answer = Answer.of(chosen, situation, lambda: np.random.default_rng(seed), place.city)
    if as_json:
        answer.print_json()
    else:
        answer.print()


@dataclass(frozen=True)
class _Place:
    """Where the call is: a city with all it knows, or a network and its depots."""

    network: "RoadNetwork"
    depots: "tuple[Depot, ...]"
    city: "City | None"


@dataclass(frozen=True)
class _Asked:
    """What was said about the incident and the free units."""

    node: int | None
    lon: float | None
    lat: float | None
    units: tuple[str, ...]
    seed: int


def _threshold(seconds: str | None, curve: str | None, cost: float | None) -> Any:
    """The threshold as an experiment file would say it."""
    if seconds is None:
        table: dict[str, Any] = {"cost": USUAL_COST if cost is None else cost}
        return table | ({} if curve is None else {"curve": curve})
    if curve is not None or cost is not None:
        raise InputError("--threshold is in seconds, --curve and --cost make one: choose one way")
    try:
        return seconds if seconds == "always" else float(seconds)
    except ValueError:
        raise InputError(f"--threshold {seconds}: seconds or always is needed") from None


def _place(network_file: Path | None, depots_file: Path | None) -> _Place:
    from ideal_dispatch.cities import harbour_city
    from ideal_dispatch.network import RoadNetwork
    from ideal_dispatch.network.csv_files import read_depots

    city = harbour_city() if network_file is None else None
    network = city.network if city is not None else RoadNetwork.load(str(network_file))
    if depots_file is not None:
        depots, elsewhere = read_depots(depots_file, network)
        if not depots:
            raise InputError(f"{depots_file}: no depot lies on this network; {elsewhere[0]}")
        return _Place(network, tuple(depots), None)
    if city is None:
        raise InputError("--network needs --depots: whose ambulances are there?")
    return _Place(network, city.depots, city)


def _parts(model: Path | None, drift: Path | None, gain: Path | None) -> "Fitted":
    from ideal_dispatch.dispatch.expected_gain import GainModel
    from ideal_dispatch.dispatch.fitted import Fitted
    from ideal_dispatch.forecast import Model
    from ideal_dispatch.forecast.drift import DriftModel

    spread = None if gain is None else GainModel.load(gain)
    return Fitted(
        None if model is None else Model.load(model),
        None if drift is None else DriftModel.load(drift),
        spread,
        drift_gain=spread,
    )


def _policy(kind: str, threshold: Any, parts: "Fitted") -> "Policy":
    from dataclasses import fields

    from ideal_dispatch.dispatch.settings import KINDS, policies_from, threshold_from

    offered = [name for name in KINDS if name not in ("learned-trigger", "quarter-hour")]
    if kind not in offered:
        raise InputError(f"--policy {kind}: choose one of {', '.join(offered)}")
    threshold_from(threshold)  # complaints about it name no table
    names = {field.name for field in fields(KINDS[kind])}
    if "model" in names and parts.model is None:
        raise InputError(f"--policy {kind} needs a trained model: {_TRAIN}")
    table = {"kind": kind} | ({"threshold": threshold} if "threshold" in names else {})
    if kind == "ideal" and parts.drift is not None:
        table["use_drift"] = True
    return policies_from({kind: table}, parts)[0]


def _situation(
    place: _Place,
    parts: "Fitted",
    traffic_file: Path | None,
    at: str | None,
    asked: _Asked,
    time_zone: str,
    country: str,
    trace: "Trace",
) -> "Situation":
    from ideal_dispatch.context import Calendar
    from ideal_dispatch.dispatch import Incident, observe
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
        calendar = Calendar(time_zone, country) if city is None else _calendar(city)
        context = calendar.context(moment)
        source = ForecastRouter(parts.model, network, context)
    else:
        raise InputError(f"no travel times: give --traffic, or a model ({_TRAIN})")
    node = _node(place, asked, trace)
    return observe(
        source, network, Incident("call", node, moment), context, place.depots,
        units=_units(place.depots, asked.units),
        region=None if city is None else int(city.region[node]),
        trace=trace,
    )  # fmt: skip


def _calendar(city: "City") -> "Calendar":
    from ideal_dispatch.context import Calendar

    return Calendar(city.time_zone, city.country)


def _node(place: _Place, asked: _Asked, trace: "Trace") -> int:
    network = place.network
    if asked.node is not None:
        if asked.lon is not None or asked.lat is not None:
            raise InputError("--node and --lon/--lat both name the incident; give one of them")
        if not 0 <= asked.node < network.num_nodes:
            raise InputError(
                f"--node {asked.node}: not a node of the network (0 … {network.num_nodes - 1})"
            )
        return asked.node
    if asked.lon is not None and asked.lat is not None:
        with trace.step("snapping") as facts:
            snap = network.snap(asked.lon, asked.lat)
            facts |= {"node": snap.node, "distance_m": round(snap.distance_m, 1)}
        return snap.node
    if asked.lon is not None or asked.lat is not None:
        raise InputError("--lon and --lat belong together; give both")
    if place.city is None:
        raise InputError("where is the incident? Give --node, or --lon and --lat")
    import numpy as np

    return int(np.random.default_rng(asked.seed).integers(network.num_nodes))


def _units(depots: "tuple[Depot, ...]", told: tuple[str, ...]) -> list[int]:
    names = [depot.name for depot in depots]
    units = [2] * len(depots)
    for text in told:
        name, equals, count = text.rpartition("=")
        if not equals or not count.strip().isdecimal():
            raise InputError(f"--depot {text}: write it as NAME=UNITS, as in {names[0]}=1")
        if name.strip() not in names:
            near = get_close_matches(name.strip(), names, 1)
            advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
            raise InputError(f"--depot {name.strip()}: no such depot; {advice}")
        units[names.index(name.strip())] = int(count)
    return units

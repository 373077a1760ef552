"""``ideal decide``: one call, one decision, for people and as JSON."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ideal_dispatch.cli.options import CityOptions, check_clock, read_moment
from ideal_dispatch.errors import InputError
from ideal_dispatch.ranges import Whole

if TYPE_CHECKING:
    from ideal_dispatch.cities import City
    from ideal_dispatch.dispatch import Decision, Policy, Situation
    from ideal_dispatch.dispatch.policy_tables import FittedParts
    from ideal_dispatch.dispatch.situation import Trace
    from ideal_dispatch.dispatch.threshold import Threshold
    from ideal_dispatch.forecast.response_time import ResponseModel
    from ideal_dispatch.gap import DcaStep

_TRAIN = "train one with `ideal train` and give it as --model"


@dataclass(frozen=True, slots=True)
class CallOptions:
    """Where and when the call is, what traffic there is, and which ambulances are free."""

    traffic_file: Path | None = None
    at: str | None = None
    node: int | None = None
    lon: float | None = None
    lat: float | None = None
    depot: list[str] | None = None
    on_road: list[str] | None = None
    kind: list[str] | None = None
    primary: str | None = None
    closed: list[str] | None = None

    def situation(self, city: "City", anywhere: int | None, trace: "Trace") -> "Situation":
        """What is known when the call comes in; it is ``anywhere`` where no place is told."""
        from ideal_dispatch.traffic.recorded_router import RecordedRouter
        from ideal_dispatch.traffic.recording import RecordedTraffic

        free = {}
        for text in self.depot or ():
            name, equals, count = text.rpartition("=")
            if not equals or not count.strip().isdecimal():
                example = city.depots[0].name
                raise InputError(f"--depot {text}: write it as NAME=UNITS, as in {example}=1")
            free[name.strip()] = int(count)
        road = dict(_on_road(text) for text in self.on_road or ())
        kinds = dict(_kind(text) for text in self.kind or ())
        router = context = None
        moment = None if self.at is None else read_moment("--at", self.at)
        if self.traffic_file is not None:
            with trace.step("recorded traffic") as facts:
                recording = RecordedTraffic.load(self.traffic_file, city.network, driven=False)
                router = RecordedRouter(recording)
                facts["days"] = len(router.recording.days)
            if moment is None:
                raise InputError(
                    "--traffic needs --at: a moment of the recording, which begins at "
                    f"{router.recording.stretches[0].start.isoformat()}"
                )
            context = router.recording.context(moment)
        elif city.model is None:
            raise InputError(f"no travel times: give --traffic, or a model ({_TRAIN})")
        told = (self.node, self.lon, self.lat)
        try:
            return city.call(
                node=anywhere if told == (None, None, None) else self.node,
                lon=self.lon, lat=self.lat, at=moment, units=free, on_road=road, kinds=kinds,
                sent=self.primary,
                traffic=router, context=context, trace=trace,
            )  # fmt: skip
        except InputError as error:
            raise type(error)(_by_option(str(error), [*free], [*kinds])) from None


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """The rule that decides, its threshold, and what it was fitted with."""

    policy: str = "ideal"
    threshold: str | None = None
    curve: str | None = None
    cost: float | None = None
    fleet_file: Path | None = None
    responses_file: Path | None = None

    def made(self, parts: "FittedParts") -> "Policy":
        """The policy, fitted."""
        from ideal_dispatch.dispatch import policy_tables as tables
        from ideal_dispatch.plugins import parameters

        threshold = self._threshold()
        takes = parameters(tables.policy_class(self.policy, "--policy"))
        table: dict[str, Any] = {"kind": self.policy}
        if threshold is not None:
            # checked where the policy takes none, too
            rule = tables.threshold_from(threshold, priced=parts.priced)
            table |= {"threshold": rule} if "threshold" in takes else {}
        if "model" in takes and parts.model is None:
            raise InputError(f"--policy {self.policy} needs a trained model: {_TRAIN}")
        try:
            return tables.advising_policy(table, parts, "--policy")
        except InputError as error:
            raise InputError(str(error).replace("[--policy]", "--policy")) from None

    def _threshold(self) -> Any:
        """The threshold as an experiment file would say it; None if it was not given."""
        from ideal_dispatch.dispatch.threshold import USUAL_COST

        given = {"curve": self.curve, "cost": self.cost}
        clinical = {name: value for name, value in given.items() if value is not None}
        if self.fleet_file is not None and (self.threshold is not None or clinical):
            raise InputError("--fleet says what a second costs: leave out --threshold, --cost "
                             "and --curve")  # fmt: skip
        if self.threshold is None:
            return {"cost": USUAL_COST} | clinical if clinical else None
        if clinical:
            raise InputError(
                "--threshold is in seconds, --curve and --cost make one: choose one way"
            )
        try:
            return "always" if self.threshold == "always" else float(self.threshold)
        except ValueError:
            raise InputError(f"--threshold {self.threshold}: seconds or always is needed") from None

    def parts(self, city: "City") -> "FittedParts":
        """What policies are fitted with; response times are the model's own unless given."""
        from ideal_dispatch.dispatch.policy_tables import FittedParts
        from ideal_dispatch.forecast.response_time import ResponseModel

        times = city.responses
        if self.responses_file is not None:
            drives = "" if city.model is None else city.model.checksum
            times = ResponseModel.load(self.responses_file, drives)
        return FittedParts(city.model, times, priced=self._priced(city, times))

    def _priced(self, city: "City", responses: "ResponseModel | None") -> "Threshold | None":
        """The threshold by the fleet of a file, where one is given."""
        if self.fleet_file is None:
            return None
        from ideal_dispatch.fleet.priced import FleetTable, priced_threshold
        from ideal_dispatch.toml_tables import built, complaints_about, read_toml

        tables, folder = read_toml(self.fleet_file), self.fleet_file.parent
        with complaints_about(self.fleet_file):
            if "fleet" not in tables:
                raise InputError("there is no [fleet] table; see docs/service.md")
            table = built(FleetTable, tables["fleet"], "fleet")
            return priced_threshold(
                table,
                city.network,
                city.depots,
                model=city.model,
                responses=responses,
                folder=folder,
            )


def decide(
    place: CityOptions,
    call: CallOptions,
    rule: PolicyOptions,
    seed: Whole = 0,
    json: bool = False,
    trace: bool = False,
    trace_gap: bool = False,
) -> None:
    r"""Decide who drives to a call, and whether a second ambulance is worth it.

    Without --network and --model it decides in the embedded city, by the model
    that comes with it. Travel times come from --model, --traffic or both. A
    second one goes where the time it is worth exceeds a threshold: seconds that
    you say (--threshold), as many as save --cost lives by a published --curve
    of survival, or as many as save what its absence costs the others (--fleet).
    Without --node, or --lon and --lat, the call is at a random place of the
    embedded city.

    Options:
      --model FOLDER  A folder made by `ideal train`; the embedded city brings its own.
      --time-zone ZONE  The city's clock (with --traffic it is known).
      --country CODE  Whose public holidays: two letters (with --traffic they are known).
      --territories FILE  Your territories, for --policy region: a .geojson of polygons with a
          property depot, or a .csv with depot, and node or lon and lat.
      --traffic FILE  A .traffic file to take travel times from; by default the model's own are
          taken.
      --at TIME  When the call came in, such as 2023-05-08T08:10+08:00; now by default.
      --node NUMBER  Where the call is: a junction of the network; or give --lon and --lat.
      --lon DEGREES  Where the call is: its longitude.
      --lat DEGREES  Where the call is: its latitude.
      --depot NAME=UNITS  How many ambulances are free at a depot, besides one already sent; 2 by
          default; may be repeated.
      --on-road UNIT=LON,LAT  A free unit that is on the road, and where; may be repeated.
      --kind NAME=KIND  The kind of a depot's units or of a unit, as your unit log names it; may be
          repeated.
      --primary DEPOT  The depot or unit whose ambulance was already sent; the quickest by default.
      --closed EDGES  Roads that are closed: numbers of edges, as in 12,13, or a .geojson of lines
          along them or polygons around them; may be repeated.
      --policy NAME  The rule that decides: ideal (ours), paper, router, router-dual, region,
          interval, …, or a class of your own as module:Name.
      --threshold SECONDS  Send a second ambulance if it is worth more seconds than this; or write
          always.
      --curve NAME  The published curve that says how survival falls with time; waalewijn-2001 by
          default.
      --cost LIVES  What a second ambulance must bring, in lives saved each time it is sent; 0.001
          by default, one in a thousand.
      --fleet FILE  A .toml with the [fleet] table of the service's settings: the cost is then what
          the unit's absence costs the other calls, with as many units free as there are.
      --json  Print the answer for programs (JSON).
      --trace  Show every step, what it gave and how long it took.

    For specialists:
      --responses FILE  How much times vary: response_times.json, fitted on a unit log by `ideal
          races` or on trips by `ideal train`. By default the one beside the model, else published
          spreads.
      --trace-gap  Show every step of the paper's Algorithm 2 on this call: the gap, the decrease
          W_k, the second path. The decision stays as it is.

    Examples:
      ideal decide
      ideal decide --node 700 --trace
      ideal decide --node 700 --primary "Kelp Point" --trace-gap
      ideal decide --model model/ --node 700
      ideal decide --model model/ --traffic city.traffic \
        --at 2023-05-08T08:10+08:00 --lon 114.15 --lat 22.28 \
        --depot "Kelp Point=1" --json
      ideal decide --traffic city.traffic --at 2023-05-08T08:10+08:00 \
        --node 700 --policy interval --threshold 60
    """
    import numpy as np

    from ideal_dispatch.cli.decision_view import print_answer, print_json
    from ideal_dispatch.cli.terminal import stages
    from ideal_dispatch.dispatch import Answer
    from ideal_dispatch.dispatch import decide as decided
    from ideal_dispatch.dispatch.situation import UNTRACED, Trace
    from ideal_dispatch.forecast.response_time import ResponseModel
    from ideal_dispatch.network.closing import read_closed

    if call.traffic_file is None:
        check_clock(place.network_file, place.time_zone, place.country)
    steps = Trace() if trace else UNTRACED
    with stages("Deciding") as progress:
        progress("loading")
        with steps.step("city and model") as facts:
            city = place.city()
            if call.closed:
                closed = read_closed(city.network, call.closed)
                city = replace(city, network=city.network.closing(closed))
            parts = rule.parts(city)
            policy = rule.made(parts)
            facts |= {"nodes": city.network.num_nodes, "edges": city.network.num_edges}
            if parts.model is not None:
                facts["model"] = parts.model.checksum
        anywhere = None
        if place.network_file is None:
            anywhere = int(np.random.default_rng(seed).integers(city.network.num_nodes))
        situation = call.situation(city, anywhere, steps)
        progress("searching other roads")
        made = decided(situation, policy=policy, rng=np.random.default_rng(seed))
        times = ResponseModel.published() if parts.responses is None else parts.responses
        answer = Answer.of(made, getattr(policy, "threshold", None), situation.reasons, times)
        searched = _searched(made, seed) if trace_gap else None
    if json:
        print_json(answer, searched)
    else:
        print_answer(answer, city, searched)


def _searched(made: "Decision", seed: int) -> "tuple[DcaStep, ...]":
    """The steps of Algorithm 2 on the question of a decision, drawn as its policy draws."""
    import numpy as np

    from ideal_dispatch.dispatch.candidate import situation_steps

    if made.outlook is None:
        raise InputError(
            f"--trace-gap: policy {made.policy} makes no scenario set; choose --policy ideal or "
            "paper"
        )
    rng = np.random.default_rng(seed)
    steps = situation_steps(made.about, made.outlook, made.primary, rng)
    if not steps:
        raise InputError("--trace-gap: no second unit is free, so there is no gap; see --depot")
    return steps


def _on_road(text: str) -> tuple[str, tuple[float, float]]:
    """A unit and its place, from NAME=LON,LAT."""
    name, _, place = text.rpartition("=")
    try:
        lon, lat = (float(part) for part in place.split(","))
    except ValueError:
        name = ""
    if not name.strip():
        raise InputError(f"--on-road {text}: write it as UNIT=LON,LAT, as in A132=114.17,22.28")
    return name.strip(), (lon, lat)


def _kind(text: str) -> tuple[str, str]:
    """A depot or unit and its kind, from NAME=KIND."""
    name, _, kind = (part.strip() for part in text.rpartition("="))
    if not name or not kind:
        raise InputError(f"--kind {text}: write it as NAME=KIND, as in A132=medic")
    return name, kind


def _by_option(words: str, counted: list[str], kinds: list[str]) -> str:
    """A complaint about an argument of the call as one about its option."""
    depot, colon, rest = words.removeprefix("depot ").partition(": no such depot")
    if colon:
        option = "--depot" if depot in counted else "--kind" if depot in kinds else "--primary"
        return f"{option} {depot}{colon}{rest}"
    if words.startswith(("node ", "lon ", "where is the call")):
        return re.sub(r"(?<!a )\b(node|lon|lat)\b", r"--\1", words)
    return words

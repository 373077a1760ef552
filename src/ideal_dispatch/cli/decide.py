"""``ideal decide``: one call, one decision, for people and as JSON."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ideal_dispatch.cli.call import TRAIN, Area, CallOptions
from ideal_dispatch.cli.options import SeedOption, flag, option
from ideal_dispatch.cli.places import DepotsOption, NetworkOption
from ideal_dispatch.errors import InputError

if TYPE_CHECKING:
    from ideal_dispatch.dispatch import Policy
    from ideal_dispatch.dispatch.fitted import FittedParts

EPILOG = """\
Examples:
  ideal decide
  ideal decide --node 700 --trace
  ideal decide --node 700 --primary "Kelp Point"
  ideal decide --model model/ --node 700
  ideal decide --model model/ --traffic city.traffic \\
    --at 2023-05-08T08:10+08:00 --lon 114.15 --lat 22.28 \\
    --depot "Kelp Point=1" --json
  ideal decide --traffic city.traffic --at 2023-05-08T08:10+08:00 \\
    --node 700 --policy interval --threshold 60
"""


def decide(
    model_folder: Annotated[
        Path | None,
        option(
            "FOLDER", "A folder made by `ideal train`; the embedded city brings its own.", "--model"
        ),
    ] = None,
    traffic_file: Annotated[
        Path | None,
        option(
            "FILE",
            "A .traffic file to take travel times from; by default the model's own are taken.",
            "--traffic",
        ),
    ] = None,
    at: Annotated[
        str | None,
        option("TIME", "When the call came in, such as 2023-05-08T08:10+08:00; now by default."),
    ] = None,
    node: Annotated[
        int | None,
        option("NUMBER", "Where the call is: a junction of the network; or give --lon and --lat."),
    ] = None,
    lon: Annotated[float | None, option("DEGREES", "Where the call is: its longitude.")] = None,
    lat: Annotated[float | None, option("DEGREES", "Where the call is: its latitude.")] = None,
    units: Annotated[
        list[str] | None,
        option(
            "NAME=UNITS",
            "How many ambulances are free at a depot, besides one already sent; 2 by default; "
            "may be repeated.",
            "--depot",
        ),
    ] = None,
    primary: Annotated[
        str | None,
        option("DEPOT", "The depot whose ambulance was already sent; the quickest by default."),
    ] = None,
    policy: Annotated[
        str,
        option(
            "NAME",
            "The rule that decides: ideal (ours), paper-ideal, router, router-dual, region, "
            "interval, …, or a class of your own as module:Name.",
        ),
    ] = "ideal",
    threshold: Annotated[
        str | None,
        option(
            "SECONDS",
            "Send a second ambulance if it is worth more seconds than this; or write always.",
        ),
    ] = None,
    curve: Annotated[
        str | None,
        option(
            "NAME",
            "The published curve that says how survival falls with time; waalewijn-2001 by "
            "default.",
        ),
    ] = None,
    cost: Annotated[
        float | None,
        option(
            "LIVES",
            "What a second ambulance must bring, in lives saved each time it is sent; 0.01 "
            "by default, one in a hundred.",
        ),
    ] = None,
    drift_folder: Annotated[
        Path | None,
        option(
            "FOLDER", "What a replay has learned about a router's errors.", "--drift", special=True
        ),
    ] = None,
    gain_file: Annotated[
        Path | None,
        option(
            "FILE",
            "What a replay has learned about how much gains vary: its gain.json; the embedded "
            "city's own model brings one.",
            "--gain",
            special=True,
        ),
    ] = None,
    network_file: NetworkOption = None,
    depots_file: DepotsOption = None,
    time_zone: Annotated[
        str, option("ZONE", "The city's clock (with --traffic it is known).")
    ] = "Asia/Hong_Kong",
    country: Annotated[
        str,
        option("CODE", "Whose public holidays: two letters (with --traffic they are known)."),
    ] = "HK",
    seed: SeedOption = 0,
    as_json: Annotated[bool, flag("--json", "Print the answer for programs (JSON).")] = False,
    traced: Annotated[
        bool, flag("--trace", "Show every step, what it gave and how long it took.")
    ] = False,
) -> None:
    """Decide who drives to a call, and whether a second ambulance is worth it.

    Without --network and --model it decides in the embedded city, by the model
    that comes with it. Travel times come from --model, --traffic or both. A
    second one goes where the time it is worth exceeds a threshold: seconds that
    you say (--threshold), or as many as save --cost lives by a published --curve
    of survival. Without --node, or --lon and --lat, the call is at a random place
    of the embedded city.
    """
    import numpy as np

    from ideal_dispatch.cities import harbour_gain_file, harbour_model_folder
    from ideal_dispatch.cli.decision_view import print_answer, print_json
    from ideal_dispatch.cli.terminal import stages
    from ideal_dispatch.dispatch import Answer
    from ideal_dispatch.dispatch import decide as decided
    from ideal_dispatch.dispatch.trace import UNTRACED, Trace

    trace = Trace() if traced else UNTRACED
    limit = _threshold(threshold, curve, cost)
    with stages("Deciding") as progress:
        progress("loading")
        with trace.step("city and model") as facts:
            area = Area.read(network_file, depots_file)
            if network_file is None and model_folder is None:
                model_folder = harbour_model_folder()
                gain_file = gain_file or harbour_gain_file()
            parts = _parts(model_folder, drift_folder, gain_file)
            chosen = _policy(policy, limit, parts)
            facts |= {"nodes": area.network.num_nodes, "edges": area.network.num_edges}
            if parts.model is not None:
                facts["model"] = parts.model.checksum
        told = CallOptions(
            node, lon, lat, tuple(units or ()), primary, at, traffic_file, time_zone, country, seed
        )
        situation = told.situation(area, parts.model, trace)
        progress("searching other roads")
        made = decided(situation, policy=chosen, rng=np.random.default_rng(seed))
        answer = Answer.of(made, getattr(chosen, "threshold", None), situation.reasons)
    if as_json:
        print_json(answer)
    else:
        print_answer(answer, area.city)


def _threshold(seconds: str | None, curve: str | None, cost: float | None) -> Any:
    """The threshold as an experiment file would say it."""
    if seconds is None:
        from ideal_dispatch.dispatch.threshold import USUAL_COST

        table: dict[str, Any] = {"cost": USUAL_COST if cost is None else cost}
        return table | ({} if curve is None else {"curve": curve})
    if curve is not None or cost is not None:
        raise InputError("--threshold is in seconds, --curve and --cost make one: choose one way")
    try:
        return seconds if seconds == "always" else float(seconds)
    except ValueError:
        raise InputError(f"--threshold {seconds}: seconds or always is needed") from None


def _parts(model: Path | None, drift: Path | None, gain: Path | None) -> "FittedParts":
    from ideal_dispatch.dispatch.expected_gain import GainModel
    from ideal_dispatch.dispatch.fitted import FittedParts
    from ideal_dispatch.forecast import Model
    from ideal_dispatch.forecast.drift import DriftModel

    spread = None if gain is None else GainModel.load(gain)
    return FittedParts(
        None if model is None else Model.load(model),
        None if drift is None else DriftModel.load(drift),
        spread,
        drift_gain=spread,
    )


def _policy(kind: str, threshold: Any, parts: "FittedParts") -> "Policy":
    from ideal_dispatch.dispatch.settings import policies_from, policy_class, threshold_from
    from ideal_dispatch.plugins import parameters

    threshold_from(threshold)  # complaints about it name no table
    takes = parameters(policy_class(kind, "--policy"))
    if "model" in takes and parts.model is None:
        raise InputError(f"--policy {kind} needs a trained model: {TRAIN}")
    table = {"kind": kind} | ({"threshold": threshold} if "threshold" in takes else {})
    if "drift" in takes and parts.drift is not None:
        table["use_drift"] = True
    try:
        return policies_from({kind: table}, parts)[0]
    except InputError as error:
        raise InputError(str(error).replace(f"[policies.{kind}]", "--policy")) from None

"""The model card: what a model is, learned from, and good for, in words."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ideal_dispatch.network.time_bounds import TimeBounds

if TYPE_CHECKING:
    from ideal_dispatch.forecast.model import Model


def model_card(model: "Model") -> str:
    """Markdown made of the manifest alone."""
    details = model.details
    lines = [
        "# Model card",
        "",
        "Travel times of ambulances on the roads of one city, and how far they may be off, for "
        "the decision whether a second ambulance is worth sending. It advises a dispatcher; it "
        "decides nothing.",
        "",
        f"- checksum `{model.checksum}`, network `{model.network_checksum}`, "
        f"context encoding `{model.encoding.checksum}`",
        f"- edges by {_FEATURES[model.architecture.features]}",
        f"- embeddings of dimension {model.architecture.dimension} with a "
        f"{model.architecture.head} head",
        *_bounds(model.bounds),
    ]
    if "rescaled" in details:
        lines.append(
            f"- all times rescaled by {details['rescaled']:.3f} from local trips; accuracy and "
            "coverage below were measured before that, where the model was trained"
        )
    lines += _data(details.get("data", {})) + _accuracy(details)
    lines += _radius(model, details.get("radius", {}))
    lines += _shape(details.get("shape", {}))
    lines += [
        "## Limits",
        "",
        "- Times are of past ambulances under blue lights where the records are; a router's "
        "estimates are of ordinary cars.",
        "- The shape of the scenario set (which roads slow down together) is weakly identified: "
        "trips fix how long embeddings are, hardly where they point. The set is rich by "
        "construction; treat its correlations as plausible, not as measured.",
        "- A context unlike all training contexts is flagged with every forecast; so is another "
        "network. Neither has been tested.",
        "- An unknown weather value counts as the mean of training, one beyond all seen as the "
        "nearest seen. A month, weekday or holiday of too few training trips "
        f"(under {model.seen.least_trips}) changes no time.",
        "- Turn restrictions, and closures not in the network, are unknown to it.",
        "",
        "## Made by",
        "",
        *(f"- {name} {version}" for name, version in sorted(details.get("versions", {}).items())),
        "",
    ]
    return "\n".join(lines)


_PARTS = {"train": "its own training", "validation": "held-out", "test": "test"}
_FEATURES = {
    "attributes": "the paper's 20 attributes: it can be carried to another city, with a local "
    "scale (`ideal model rescale`)",
    "location": "their attributes, headings and places: it knows this city and no other",
}


def _bounds(bounds: TimeBounds) -> list[str]:
    speeds = bounds.as_dict()["fastest_kmh"]
    return [
        "- no scenario is faster than "
        + ", ".join(f"{name} {kmh:g}" for name, kmh in speeds.items())
        + f" km/h, {bounds.over_limit_kmh:g} km/h above the speed limit or "
        f"{bounds.over_limit:g} times the limit, whichever is most; none is slower than "
        f"{bounds.crawl_kmh:g} km/h with {bounds.wait_s:g} s of waiting on each road; expected "
        f"times keep inside these bounds by a factor of {bounds.margin:g}",
        "- no road's expected time leaves the range that the training contexts gave it",
    ]


def _data(data: dict[str, Any]) -> list[str]:
    if not data:
        return [""]
    lines = ["", "## Learned from", ""]
    lines.append(
        f"- {data['trips']:,} trips: {data['train']:,} to learn from, {data['validation']:,} to "
        f"stop and to calibrate with, {data['test']:,} to test; split by {data['split']}"
    )
    if data.get("first"):
        lines.append(f"- from {data['first']} to {data['last']}")
    lines.append(f"- weather: {data['weather']}")
    lines.append(f"- data hash `{data['checksum']}`")
    return [*lines, ""]


def _accuracy(details: Mapping[str, Any]) -> list[str]:
    scores = details.get("scores", [])
    if not scores:
        return []
    scored_on = _PARTS[details.get("data", {}).get("scored_on", "test")]
    return [
        f"## Accuracy on {scored_on} trips",
        "",
        "| prediction | MAE s | MAPE % | P90 s |",
        "|---|---|---|---|",
        *(
            f"| {row['name']} | {row['mae_s']:.1f} | {row['mape_percent']:.1f} "
            f"| {row['p90_s']:.1f} |"
            for row in scores
        ),
        "",
    ]


def _radius(model: "Model", radius: dict[str, Any]) -> list[str]:
    if not radius:
        return []
    rule = model.radius_rule
    lines = ["## Radius of the scenario set", ""]
    aim = f" at level {rule.level:g}" if rule.level is not None else ""
    lines.append(
        f"- fitted with the {rule.loss.replace('_', ' ')} loss{aim}, scaled by {rule.scale:.3f}"
    )
    if radius.get("coverage") is not None:
        lines.append(
            f"- {100 * radius['coverage']:.1f} % of {radius['trips']:,} test trips took no longer "
            "than the slowest scenario of their context"
        )
    lines.append(f"- median radius {radius['median']:.4f}, target radii zero for "
                 f"{100 * radius['zero_share']:.0f} % of training trips")  # fmt: skip
    lines += [f"- warning: {line}" for line in radius.get("warnings", [])]
    return [*lines, ""]


def _shape(shape: dict[str, Any]) -> list[str]:
    if not shape:
        return []
    distance, overlap = shape["by_distance"], shape["by_overlap"]
    return [
        "## Shape of the scenario set",
        "",
        f"- effective rank {shape['effective_rank']:.1f} of {shape['dimension']}; "
        f"‖G‖/tr G of a trip {_number(shape['concentration'])}, where 1 would mean that "
        "scenarios only rescale whole trips",
        f"- correlation of edge times it implies: {_number(distance[0])} within 250 m, "
        f"{_number(distance[3])} at 1–2 km; of two trips that share no road "
        f"{_number(overlap[0])}, that share half to three quarters {_number(overlap[3])}",
        "",
    ]


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"

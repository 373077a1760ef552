"""What a second ambulance on a given way is worth, and the ways there are to choose from."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.controls import alternative
from ideal_dispatch.dispatch.expected_gain import (
    GainFeatures,
    GainModel,
    expected_positive_part_s,
)
from ideal_dispatch.dispatch.scenario_gap import Outlook, on_path
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.dispatch.way import (
    Way,
    differing,
    drivable_s,
    gain_features,
    overlap,
    quoted,
    unquoted,
)
from ideal_dispatch.forecast import Model
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.scenarios import ScenarioSet, target_radius

Second = Literal["other-depot", "alternative", "gap-path"]
"""Where a second's way may come from."""

USUAL_SECONDS: tuple[Second, ...] = ("other-depot", "alternative", "gap-path")
"""What our form considers unless told: training days of every city tried favoured all."""

OTHER_DEPOT: tuple[Second, ...] = ("other-depot",)

_USUAL_LEVEL = 0.8  # what a radius that aims at no coverage is taken to cover


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """What a second is expected to save, and from what that follows.

    T₁ − T₂ is ``mean_s`` + ``spread_s`` · t₃; ``features`` are those of the quotes;
    ``gain_s`` is E[(T₁ − T₂)⁺].
    """

    way: Way
    features: GainFeatures
    mean_s: float
    spread_s: float
    times_from: str
    spread_from: str
    gain_s: float = field(init=False)

    def __post_init__(self) -> None:
        gain_s = float(expected_positive_part_s(self.mean_s, self.spread_s))
        object.__setattr__(self, "gain_s", gain_s)

    @property
    def details(self) -> dict[str, Any]:
        """For the log; with what came about, the features are rows to fit a gain on."""
        columns = [column.name for column in fields(GainFeatures)]
        values = {name: float(getattr(self.features, name)) for name in columns}
        return {
            "second": self.way.kind,
            "second_s": round(self.way.expected_s, 3),
            "expected_gain_s": round(self.gain_s, 3),
            "spread_s": round(self.spread_s, 3),
            "times_from": self.times_from,
            "spread_from": self.spread_from,
            **{k: None if math.isnan(v) else round(v, 3) for k, v in values.items()},
        }


def worth(
    situation: Situation,
    first: Way,
    second: Way,
    seen: Outlook | None,
    *,
    model: Model | None,
    gain: GainModel | None,
    corrected: bool,
) -> Worth:
    """The second's worth by the quotes and a fitted gain, else by the forecast."""
    features = gain_features(situation.network, first, second)
    mean_s, times_from = float(features.mean_s), "corrected quotes" if corrected else "quotes"
    if gain is not None:
        mean_s, spread_s = float(gain.mean_s(features)), float(gain.spread_s(features))
        return Worth(second, features, mean_s, spread_s, times_from, "replays")
    assert seen is not None  # for mypy: a policy has a gain or a model
    assert model is not None
    if not corrected:
        nominal = seen.scenarios.nominal_times
        mean_s = first.path.time_s(nominal) - second.path.time_s(nominal)
        times_from = "forecast" if seen.centre == "forecast" else "router times"
    spread_s = forecast_spread_s(
        situation.network, seen.scenarios, first.path, second.path, model.radius_rule.level
    )
    return Worth(second, features, mean_s, spread_s, times_from, "forecast")


def forecast_spread_s(
    network: RoadNetwork, scenarios: ScenarioSet, first: Path, second: Path, level: float | None
) -> float:
    """The spread of T₁ − T₂ that the calibration of the radius suggests.

    A radius that covers the share ``level`` of trips puts the slowest scenario
    of a trip at that quantile of its time, so its reach is known for both. To
    second order the set correlates two paths like their matrices G, and the
    difference is taken to be a Student-t of three degrees.
    """
    from scipy.special import stdtrit  # a fifth of a second to import, and seldom needed

    share = level if level is not None and level > 0.5 else _USUAL_LEVEL
    matrices = [scenarios.path_matrix(path) for path in (first, second)]
    sizes = [float(np.linalg.norm(matrix)) for matrix in matrices]
    together = float(np.sum(matrices[0] * matrices[1])) / (math.prod(sizes) or 1.0)
    one, other = (_reach_s(network, scenarios, path) for path in (first, second))
    variance = one**2 + other**2 - 2.0 * together * one * other
    return math.sqrt(max(variance, 0.0)) / float(stdtrit(GainModel.degrees, share))


def _reach_s(network: RoadNetwork, scenarios: ScenarioSet, path: Path) -> float:
    """How much longer than nominal a trip takes in its slowest scenario, to second order.

    Whoever drives takes the fastest way in every scenario. The radius of one
    longer trip is known exactly, and radii grow with the square of the delay.
    """
    ends = path.origin, path.destination
    nominal_s = network.shortest_path(scenarios.nominal_times, *ends).time_s(
        scenarios.nominal_times
    )
    delay_s = math.sqrt(scenarios.radius) * nominal_s / 2  # a first guess at the reach
    if delay_s == 0.0:
        return 0.0
    radius = target_radius(
        network, scenarios.embeddings, *ends, nominal_s + delay_s, tolerance=0.01
    ).upper
    return delay_s * math.sqrt(scenarios.radius / radius)


def ways(
    situation: Situation,
    first: Way,
    routes: list[Way],
    gap_path: Path | None,
    seen: Outlook | None,
    edge_drift_s: FloatArray | None,
    kinds: tuple[Second, ...],
    overlap_limit: float,
) -> Iterator[Way]:
    """The second's ways of the given kinds that are different enough from the first's.

    ``routes`` are the router's from all available stations, the first's among them.
    """
    network, station = situation.network, first.assignment.station
    if "other-depot" in kinds:
        yield from (way for way in routes if way.assignment.station != station)
    if "alternative" in kinds:
        other, quote = alternative(situation, station), situation.stations[station].alternative
        shared = 1.0 if other is None else overlap(network, first.path, other.path)
        if other is not None and quote is not None and shared <= overlap_limit:
            yield quoted(network, "alternative", other, quote, edge_drift_s)
    if "gap-path" in kinds and gap_path is not None and seen is not None:
        follow = differing(network, gap_path, first.path)
        if follow and overlap(network, first.path, gap_path) <= overlap_limit:
            assignment = on_path(situation, station, gap_path, follow)
            seconds = _path_s(situation, first, gap_path, seen, edge_drift_s)
            seconds = drivable_s(network, gap_path, seconds)
            yield unquoted("gap path", assignment, seconds, situation.quote(assignment.station))


def _path_s(
    situation: Situation, first: Way, path: Path, seen: Outlook, edge_drift_s: FloatArray | None
) -> float:
    """When a path that no router quoted is expected.

    By the router's edge times where it tells them; else by the forecast's,
    scaled so that they give the primary's own expected time.
    """
    if situation.router_times_s is not None:
        drift_s = 0.0 if edge_drift_s is None else path.time_s(edge_drift_s)
        return path.time_s(situation.router_times_s) + drift_s
    nominal = seen.scenarios.nominal_times
    primary_s = first.path.time_s(nominal)
    scale = first.expected_s / primary_s if primary_s > 0.0 else 1.0
    return scale * path.time_s(nominal)

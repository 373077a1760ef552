"""What a second ambulance is worth: the time it is expected to save, and what it saves in lives."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ideal_dispatch.dispatch.candidate import Candidate
from ideal_dispatch.dispatch.expected_gain import (
    GainFeatures,
    GainModel,
    expected_positive_part_s,
    positive_probability,
)
from ideal_dispatch.dispatch.path_pair import unshared_s
from ideal_dispatch.dispatch.scenario_gap import Outlook
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.dispatch.survival import SurvivalCurve
from ideal_dispatch.forecast import Model
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.scenarios import ScenarioSet, target_radius

LEAST_SOONER_S = 30.0
"""Seconds by which another unit must be expected sooner to be named: its crew has yet to leave."""

LEAST_SURE = 0.8
"""How probable it must be that it is sooner at all."""

_USUAL_LEVEL = 0.8  # what a radius that aims at no coverage is taken to cover


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """What a second ambulance is expected to save, and from what that follows.

    T₁ − T₂ is ``mean_s`` + ``spread_s`` · t₃; ``features`` are those of the quotes.
    ``gain_s`` is E[(T₁ − T₂)⁺]. ``times_from`` and ``spread_from`` say in words where
    mean and spread come from. ``curve`` turns seconds into survival where the primary
    is expected after ``primary_s``.
    """

    candidate: Candidate
    features: GainFeatures
    mean_s: float
    spread_s: float
    times_from: str
    spread_from: str
    curve: SurvivalCurve
    primary_s: float
    gain_s: float = field(init=False)

    def __post_init__(self) -> None:
        gain_s = float(expected_positive_part_s(self.mean_s, self.spread_s))
        object.__setattr__(self, "gain_s", gain_s)

    @property
    def survival_gain(self) -> float:
        """Lives saved per call: the slope of the curve times the expected seconds."""
        return float(self.curve.slope_per_s(self.primary_s) * self.gain_s)


def worth_of(
    situation: Situation,
    first: Candidate,
    outlook: Outlook | None,
    second: Candidate,
    *,
    model: Model | None,
    gain: GainModel | None,
    curve: SurvivalCurve,
    corrected: bool,
) -> Worth:
    """The worth of a second ambulance beside the first.

    By the quotes, ``corrected`` by a drift or not, and a fitted ``gain``; without one by
    the ``outlook`` of ``model``.
    """
    features = gain_features(situation.network, first, second)
    mean_s, times_from = float(features.mean_s), "corrected quotes" if corrected else "quotes"
    if gain is not None:
        mean_s, spread_s = float(gain.mean_s(features)), float(gain.spread_s(features))
    else:
        assert outlook is not None  # for mypy: a policy has a gain or a model
        assert model is not None
        if not corrected:
            nominal = outlook.scenarios.nominal_times
            mean_s = first.path.time_s(nominal) - second.path.time_s(nominal)
            times_from = "forecast" if outlook.centre == "forecast" else "router times"
        spread_s = forecast_spread_s(
            situation.network, outlook.scenarios, first.path, second.path, model.radius_rule.level
        )
    spread_from = "forecast" if gain is None else "replays"
    return Worth(
        second, features, mean_s, spread_s, times_from, spread_from, curve, first.expected_s
    )


def gain_features(network: RoadNetwork, first: Candidate, second: Candidate) -> GainFeatures:
    """What :class:`GainModel` asks about a primary and a second."""
    return GainFeatures(
        first.expected_s - second.expected_s,
        unshared_s(network, first.path, first.expected_s, second.path, second.expected_s),
        first.above_s,
        first.below_s,
        second.above_s,
        second.below_s,
    )


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

    The driver takes the fastest path in every scenario. The radius of one
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


@dataclass(frozen=True, slots=True)
class SoonerUnit:
    """A better primary: a depot whose unit is expected so many seconds sooner than the one sent.

    ``units`` are free there. ``probability`` is that of arriving before the primary at
    all, by the spread of the expected gain.
    """

    depot: str
    units: int
    seconds: float
    probability: float


def sooner_unit(
    situation: Situation, primary: int, worths: Iterable[Worth], least_s: float
) -> SoonerUnit | None:
    """The unit of another station than the primary's that is expected soonest.

    It would leave now, the primary has been driving for ``situation.sent_ago_s``.
    None where none is sooner by more than ``least_s``, or none surely enough.
    """
    found = []
    for one in worths:
        station, lead_s = one.candidate.assignment.station, one.mean_s - situation.sent_ago_s
        probability = positive_probability(lead_s, one.spread_s)
        if station != primary and lead_s > least_s and probability >= LEAST_SURE:
            depot, units = situation.stations[station].depot.name, situation.stations[station].units
            found.append(SoonerUnit(depot, units, round(lead_s, 1), round(probability, 3)))
    return max(found, key=lambda one: one.seconds, default=None)

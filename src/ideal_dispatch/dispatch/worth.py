"""What a second ambulance is worth: the time it is expected to save, and what it saves in lives."""

import math
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from ideal_dispatch.dispatch.candidate import Candidate
from ideal_dispatch.dispatch.expected_gain import (
    GainFeatures,
    GainModel,
    expected_positive_part_s,
    positive_probability,
)
from ideal_dispatch.dispatch.path_pair import unshared_s
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.dispatch.survival import SurvivalCurve
from ideal_dispatch.files import check_source
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.response_time import ResponseModel, ResponsePair, ResponseTime
from ideal_dispatch.network import RoadNetwork

Gains = GainModel | ResponseModel
"""How much gains vary: as replays of drives showed, or as a log of whole responses did."""


def load_gain(path: str | os.PathLike[str], model: Model | None = None) -> Gains:
    """Read a replay's ``gain.json`` or fitted response times, or say what the file is instead.

    Response times that were fitted on other drives than those of ``model`` are warned about.
    """
    check_source(path)
    with open(path, encoding="utf-8", errors="replace") as file:
        responses = ResponseModel.FORMAT in file.read(200)
    if not responses:
        return GainModel.load(path)
    times = ResponseModel.load(path)
    if model is not None and times.drive not in ("", model.checksum):
        warnings.warn(
            f"{os.fspath(path)}: fitted on drives by {times.drive}, not by this model "
            f"({model.checksum}): its forecasts are not scaled as they should be; fit response "
            "times with `ideal races --model`",
            stacklevel=2,
        )
    return times


LEAST_SOONER_S = 30.0
"""Seconds by which another unit must be expected sooner to be named: its crew has yet to leave."""

LEAST_SURE = 0.8
"""How probable it must be that it is sooner at all."""


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """What a second ambulance is expected to save, and from what that follows.

    T₁ − T₂ is ``mean_s`` + ``spread_s`` · t₃, or has that mean and √3 ``spread_s`` as its
    standard deviation; ``features`` are those of the quotes. ``gain_s`` is E[(T₁ − T₂)⁺],
    ``second_first`` the probability that it arrives before the primary, and
    ``survival_gain`` the lives that it saves per call by ``curve``. T are drives where
    ``gain`` was fitted on replays, else responses: turnout and drive. ``times_from`` and
    ``spread_from`` say in words where mean and spread come from. The primary is expected
    ``primary_s`` after it was sent; what it has driven already counts.
    """

    candidate: Candidate
    features: GainFeatures
    mean_s: float
    spread_s: float
    times_from: str
    spread_from: str
    curve: SurvivalCurve
    primary_s: float
    gain_s: float
    second_first: float
    survival_gain: float


def worth_of(
    situation: Situation,
    first: Candidate,
    second: Candidate,
    *,
    gain: Gains,
    curve: SurvivalCurve,
    corrected: bool,
) -> Worth:
    """The worth of a second ambulance beside the first; ``corrected`` by a drift, or not.

    By responses the change in survival is computed directly. By drives it is the
    slope of the curve times the expected seconds, which is its first order.
    """
    features = gain_features(situation.network, first, second)
    told = "corrected quotes" if corrected else "quotes"
    told = "forecast" if situation.forecast is not None and not corrected else told
    ago_s = situation.sent_ago_s
    if isinstance(gain, GainModel):
        mean_s, spread_s = float(gain.mean_s(features)) - ago_s, float(gain.spread_s(features))
        gain_s = float(expected_positive_part_s(mean_s, spread_s))
        return Worth(
            second, features, mean_s, spread_s, told, "replays", curve, first.expected_s, gain_s,
            positive_probability(mean_s, spread_s),
            float(curve.slope_per_s(first.expected_s) * gain_s),
        )  # fmt: skip
    driving_s = first.expected_s + second.expected_s
    together = 1.0 - float(features.unshared_s) / driving_s if driving_s > 0.0 else 1.0
    primary, other = (response_of(situation, one, gain) for one in (first, second))
    primary = primary.after(ago_s)
    pair = ResponsePair(primary, other, min(max(together, 0.0), 1.0))
    survival_gain = pair.survival_gain(lambda later_s: curve.probability(ago_s + later_s))
    return Worth(
        second, features, float(pair.mean_s), float(pair.deviation_s) / math.sqrt(3.0), told,
        gain.source, curve, ago_s + float(primary.mean_s), float(pair.gain_s),
        float(pair.second_first), float(survival_gain),
    )  # fmt: skip


def response_of(situation: Situation, one: Candidate, gain: ResponseModel) -> ResponseTime:
    """The response of a candidate; a router's quote is the mean of its drive."""
    depot = situation.stations[one.assignment.station].depot
    return gain.of(
        one.expected_s,
        station=depot.name,
        hour=situation.context.at.hour,
        kind=depot.kind,
        on_road=depot.on_road,
        quoted=situation.forecast is None,
        rolling=depot.rolling,
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

    It would leave now. None where none is sooner by more than ``least_s``, or none surely enough.
    """
    found = []
    for one in worths:
        number = one.candidate.assignment.station
        if number != primary and one.mean_s > least_s and one.second_first >= LEAST_SURE:
            station = situation.stations[number]
            seconds, probability = round(one.mean_s, 1), round(one.second_first, 3)
            found.append(SoonerUnit(station.depot.name, station.units, seconds, probability))
    return max(found, key=lambda one: one.seconds, default=None)

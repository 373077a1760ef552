"""What a second ambulance is worth: the time it is expected to save, and what it saves in lives."""

import math
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from ideal_dispatch.dispatch.arrival import Arrival, arrival_of
from ideal_dispatch.dispatch.candidate import Candidate
from ideal_dispatch.dispatch.expected_gain import (
    GainFeatures,
    GainModel,
    expected_positive_part_s,
    positive_probability,
)
from ideal_dispatch.dispatch.path_pair import together, unshared_s
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.dispatch.survival import SurvivalCurve
from ideal_dispatch.errors import FileFormatError
from ideal_dispatch.files import check_source
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.response_time import ResponseModel, ResponsePair
from ideal_dispatch.network import RoadNetwork

Gains = GainModel | ResponseModel
"""How much times vary: as replays of drives showed, or as a log of whole responses did."""


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


def load_responses(path: str | os.PathLike[str], model: Model | None = None) -> ResponseModel:
    """Read fitted response times, or say in one line what the file is instead."""
    found = load_gain(path, model)
    if isinstance(found, GainModel):
        raise FileFormatError(
            f"{os.fspath(path)}: a gain fitted on replays, which knows drives alone; fit response "
            "times with `ideal races`"
        )
    return found


LEAST_SOONER_S = 30.0
"""Seconds by which another unit must be expected sooner to be named."""

LEAST_SURE = 0.8
"""How probable it must be that it is sooner at all."""


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """What a second ambulance is expected to save, and from what that follows.

    ``arrivals`` are T₁ and T₂, those of the primary and of the second. ``gain_s`` is
    E[(T₁ − T₂)⁺], ``second_first`` the probability that the second arrives before the primary, and
    ``survival_gain`` the lives that it saves per call by ``curve``. T₁ − T₂ has the mean
    ``mean_s`` and the standard deviation √3 ``spread_s``. ``primary_s`` is when the primary is
    expected, counted from when it was sent. ``times_from`` and ``spread_from`` say in words where
    mean and spread come from; ``features`` are those of the quotes.

    By a :class:`GainModel`, fitted on replays, T are drives and there are no arrivals: T₁ − T₂ is
    ``mean_s`` + ``spread_s`` · t₃.
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
    arrivals: tuple[Arrival, Arrival] | None = None


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

    By arrivals the change in survival is computed directly. By drives it is the
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
            second, features, mean_s, spread_s, told, "replays", curve, first.drive_s, gain_s,
            positive_probability(mean_s, spread_s),
            float(curve.slope_per_s(first.drive_s) * gain_s),
        )  # fmt: skip
    one = arrival_of(situation, first.assignment.station, first.drive_s, gain, first=True)
    other = arrival_of(situation, second.assignment.station, second.drive_s, gain)
    drives = first.path, first.drive_s, second.path, second.drive_s
    pair = ResponsePair(one.time, other.time, together(situation.network, *drives))
    survival_gain = pair.survival_gain(lambda later_s: curve.probability(ago_s + later_s))
    return Worth(
        second, features, one.expected_s - other.expected_s,
        float(pair.deviation_s) / math.sqrt(3.0), told, gain.source, curve,
        ago_s + one.expected_s, float(pair.gain_s), min(float(pair.second_first), 1.0),
        float(survival_gain), (one, other),
    )  # fmt: skip


def gain_features(network: RoadNetwork, first: Candidate, second: Candidate) -> GainFeatures:
    """What :class:`GainModel` asks about a primary and a second."""
    return GainFeatures(
        first.drive_s - second.drive_s,
        unshared_s(network, first.path, first.drive_s, second.path, second.drive_s),
        first.above_s,
        first.below_s,
        second.above_s,
        second.below_s,
    )


@dataclass(frozen=True, slots=True)
class SoonerUnit:
    """A better primary: a free unit that arrives so many seconds sooner than the one sent.

    ``unit`` is its id, where known. ``probability`` is that of arriving before the primary at all.
    """

    depot: str
    unit: str | None
    seconds: float
    probability: float


def sooner_unit(
    situation: Situation, primary: int, worths: Iterable[Worth], least_s: float
) -> SoonerUnit | None:
    """The unit of another station than the primary's that is expected soonest, if sent now.

    None where no unit is sooner by more than ``least_s`` with a chance of ``LEAST_SURE``.
    """
    found = []
    for one in worths:
        number = one.candidate.assignment.station
        if number != primary and one.mean_s > least_s and one.second_first >= LEAST_SURE:
            station = situation.stations[number]
            depot, unit = station.depot.home or station.depot.name, next(iter(station.ids), None)
            seconds, probability = round(one.mean_s, 1), round(one.second_first, 3)
            found.append(SoonerUnit(depot, unit, seconds, probability))
    return max(found, key=lambda one: one.seconds, default=None)

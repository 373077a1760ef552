"""What a second ambulance is worth: the time it is expected to save, and what it saves in lives."""

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from ideal_dispatch.dispatch.arrival import Arrival, arrival_of
from ideal_dispatch.dispatch.candidate import Candidate
from ideal_dispatch.dispatch.path_pair import together
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.dispatch.survival import SurvivalCurve
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.response_time import ResponseModel, ResponsePair


def load_responses(path: str | os.PathLike[str], model: Model | None = None) -> ResponseModel:
    """Read fitted response times, or say in one line what the file is instead.

    Response times that were fitted on other drives than those of ``model`` are warned about.
    """
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
"""Seconds by which another unit must be expected sooner to be named."""

LEAST_SURE = 0.8
"""How probable it must be that it is sooner at all."""


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """What a second ambulance is expected to save, and from what that follows.

    ``arrivals`` are T₁ and T₂, those of the primary and of the second. ``gain_s`` is
    E[(T₁ − T₂)⁺], ``second_first`` the probability that the second arrives before the primary, and
    ``survival_gain`` the lives that it saves per call by ``curve``. T₁ − T₂ has the mean
    ``mean_s`` and the standard deviation ``spread_s``. ``primary_s`` is when the primary is
    expected, counted from when it was sent. ``times_from`` and ``spread_from`` say in words where
    mean and spread come from.
    """

    candidate: Candidate
    arrivals: tuple[Arrival, Arrival]
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
    responses: ResponseModel,
    curve: SurvivalCurve,
) -> Worth:
    """The worth of a second ambulance beside the first."""
    one = arrival_of(situation, first.assignment.station, first.drive_s, responses, first=True)
    other = arrival_of(situation, second.assignment.station, second.drive_s, responses)
    drives = first.path, first.drive_s, second.path, second.drive_s
    pair = ResponsePair(one.time, other.time, together(situation.network, *drives))
    ago_s = situation.sent_ago_s
    return Worth(
        candidate=second,
        arrivals=(one, other),
        mean_s=one.expected_s - other.expected_s,
        spread_s=float(pair.deviation_s),
        times_from="quotes" if situation.forecast is None else "forecast",
        spread_from=responses.source,
        curve=curve,
        primary_s=ago_s + one.expected_s,
        gain_s=float(pair.gain_s),
        second_first=min(float(pair.second_first), 1.0),
        survival_gain=float(pair.survival_gain(lambda later_s: curve.probability(ago_s + later_s))),
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

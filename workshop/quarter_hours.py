"""Quotes corrected by the clock alone: a control for anything that learns a router's drift.

``kind = "workshop.quarter_hours:QuarterHourPolicy"`` in an experiment file.
"""

import os
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

import numpy as np

from ideal_dispatch.archive import JsonKind
from ideal_dispatch.arrays import numbers
from ideal_dispatch.dispatch.candidate import OTHER_DEPOT, SecondKind
from ideal_dispatch.dispatch.decision import Decision
from ideal_dispatch.dispatch.expected_gain import GainModel
from ideal_dispatch.dispatch.ideal import Ideal
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.dispatch.threshold import AT_ZERO, Threshold
from ideal_dispatch.errors import InputError
from ideal_dispatch.replay.fitting import Training
from ideal_dispatch.traffic.source import RouteQuote

QUARTERS = 96
_FILE = JsonKind(
    "ideal-dispatch quarter hours", 2, "file of quarter hours", "fit and save it again", oldest=2
)


@dataclass(frozen=True, slots=True)
class QuarterHours:
    """What drives took over what was quoted, on average, in each quarter hour of the local day.

    A quarter of which nothing is known has the ratio 1. ``gain`` was fitted on quotes that
    were multiplied by the ratios of other days.
    """

    seconds: ClassVar[tuple[SecondKind, ...]] = OTHER_DEPOT
    ratios: tuple[float, ...]
    gain: GainModel

    def __post_init__(self) -> None:
        ratios = numbers(self.ratios, np.float64, "quarter hours")
        if ratios.shape != (QUARTERS,) or not ((ratios > 0) & (ratios < np.inf)).all():
            raise InputError(f"quarter hours: {QUARTERS} ratios above zero are needed")
        object.__setattr__(self, "ratios", tuple(ratios.tolist()))

    @classmethod
    def fit(cls, training: Training) -> "QuarterHours":
        """The ratios of all dates, and the gain of quotes corrected by those of other dates."""
        apart: dict[str, tuple[float, ...]] = {}
        for own, others, _ in training.halves():
            apart |= dict.fromkeys(own, mean_ratios(training, others))

        def ratio(incident: Mapping[str, Any]) -> float:
            return apart[incident["day"]][quarter_of(datetime.fromisoformat(incident["at"]))]

        return cls(mean_ratios(training, training.dates), training.gain(OTHER_DEPOT, ratio))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file that :meth:`load` turns into equal ratios."""
        _FILE.write(path, {"ratios": self.ratios, "gain": asdict(self.gain)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "QuarterHours":
        """Read ratios, or say in one line why the file holds none."""
        with _FILE.reading(path) as content:
            return cls(tuple(content["ratios"]), GainModel(**content["gain"]))


def mean_ratios(training: Training, dates: Collection[str]) -> tuple[float, ...]:
    """The mean ratio of each quarter hour of some dates; unknown outcomes are left out."""
    lines, local = training.quotes(dates).lines, training.ground.recording.calendar.local
    quoted = np.array([line.times["duration_s"] for line in lines])
    realised = np.array([line.realised_s for line in lines])
    used = np.isfinite(realised) & np.isfinite(quoted) & (quoted > 0) & (realised > 0)
    quarter = np.array([quarter_of(local(line.asked_at)) for line in lines], np.int64)[used]
    sums = np.bincount(quarter, realised[used] / quoted[used], QUARTERS)
    counts = np.bincount(quarter, minlength=QUARTERS)
    return tuple(np.where(counts > 0, sums / np.maximum(counts, 1), 1.0).tolist())


def quarter_of(at: datetime) -> int:
    """The number of the quarter hour, from 0 at midnight."""
    return 4 * at.hour + at.minute // 15


@dataclass(frozen=True, slots=True)
class QuarterHourPolicy:
    """Our form on quotes that are multiplied by their quarter hour's ratio.

    The second is another depot's route and the score its expected gain.
    """

    role: ClassVar[str] = "control"
    learns: ClassVar[Mapping[str, type]] = {"hours": QuarterHours}
    hours: QuarterHours
    threshold: Threshold = AT_ZERO
    name: str = "quarter-hour"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        ratio = self.hours.ratios[quarter_of(situation.context.at)]
        ours = Ideal(
            None, self.hours.gain, None, self.threshold, seconds=OTHER_DEPOT, name=self.name
        )
        made = ours.decide(_scaled(situation, ratio), rng)
        return replace(made, situation=situation, facts={"quarter_hour_ratio": round(ratio, 4)})


def _scaled(situation: Situation, ratio: float) -> Situation:
    """The same situation with a router that says so many times as much."""
    times = situation.router_times_s
    stations = tuple(
        replace(
            one,
            quote=_scaled_quote(one.quote, ratio),
            alternative=_scaled_quote(one.alternative, ratio),
        )
        for one in situation.stations
    )
    times = None if times is None else times * ratio
    return replace(situation, stations=stations, router_times_s=times)


def _scaled_quote(quote: RouteQuote | None, ratio: float) -> RouteQuote | None:
    if quote is None:
        return None
    times = ("duration_s", "next_segment_s", "optimistic_s", "pessimistic_s")
    return replace(quote, **{name: ratio * getattr(quote, name) for name in times})

"""Quotes corrected by the clock alone: a control for anything that learns a router's drift."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ideal_dispatch.archive import JsonKind
from ideal_dispatch.arrays import numbers, whole_number
from ideal_dispatch.dispatch.candidate import OTHER_DEPOT
from ideal_dispatch.dispatch.decision import Decision
from ideal_dispatch.dispatch.expected_gain import GainModel
from ideal_dispatch.dispatch.ideal import Ideal
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.dispatch.threshold import AT_ZERO, Threshold
from ideal_dispatch.errors import InputError
from ideal_dispatch.traffic.source import RouteQuote

QUARTERS = 96
_FILE = JsonKind(
    "ideal-dispatch quarter hours", 1, "ratios of quarter hours", "fit and save it again"
)


@dataclass(frozen=True, slots=True)
class QuarterHours:
    """What drives took over what was quoted, on average, in each quarter hour of the local day.

    A quarter of which nothing is known has the ratio 1. ``rows`` were fitted on.
    """

    ratios: tuple[float, ...]
    rows: int = 0

    def __post_init__(self) -> None:
        ratios = numbers(self.ratios, np.float64, "quarter hours")
        if ratios.shape != (QUARTERS,) or not ((ratios > 0) & (ratios < np.inf)).all():
            raise InputError(f"quarter hours: {QUARTERS} ratios above zero are needed")
        object.__setattr__(self, "ratios", tuple(ratios.tolist()))
        if whole_number(self.rows, "quarter hours: rows") < 0:
            raise InputError(f"quarter hours: rows is {self.rows}; it must be zero or more")

    @classmethod
    def fit(
        cls, at: Sequence[datetime], quoted_s: npt.ArrayLike, realised_s: npt.ArrayLike
    ) -> "QuarterHours":
        """Mean ratios of quotes asked for at local times ``at``; unknown outcomes are left out."""
        quoted = numbers(quoted_s, np.float64, "quoted seconds")
        realised = numbers(realised_s, np.float64, "realised seconds")
        if not quoted.shape == realised.shape == (len(at),):
            raise InputError(
                f"quarter hours: {len(at)} moments, {quoted.size} quotes and {realised.size} "
                "outcomes; one of each is needed"
            )
        used = np.isfinite(realised) & np.isfinite(quoted) & (quoted > 0) & (realised > 0)
        quarter = np.array([quarter_of(moment) for moment in at], np.int64)[used]
        sums = np.bincount(quarter, realised[used] / quoted[used], QUARTERS)
        counts = np.bincount(quarter, minlength=QUARTERS)
        ratios = np.where(counts > 0, sums / np.maximum(counts, 1), 1.0)
        return cls(tuple(ratios.tolist()), int(used.sum()))

    def ratio(self, at: datetime) -> float:
        """The factor on quotes of a local moment."""
        return self.ratios[quarter_of(at)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file that :meth:`load` turns into equal ratios."""
        _FILE.write(path, {"ratios": self.ratios, "rows": self.rows})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "QuarterHours":
        """Read ratios, or say in one line why the file holds none."""
        return _FILE.read(path, lambda content: cls(tuple(content["ratios"]), content["rows"]))


def quarter_of(at: datetime) -> int:
    """The number of the quarter hour, from 0 at midnight."""
    return 4 * at.hour + at.minute // 15


@dataclass(frozen=True, slots=True)
class QuarterHourPolicy:
    """Our form on quotes that are multiplied by their quarter hour's ratio.

    The second is another depot's route and the score its expected gain, by a
    ``hours_gain`` that was fitted on quotes corrected in the same way.
    """

    role: ClassVar[str] = "control"
    hours: QuarterHours
    hours_gain: GainModel
    threshold: Threshold = AT_ZERO
    name: str = "quarter-hour"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        ratio = self.hours.ratio(situation.context.at)
        ours = Ideal(
            None, self.hours_gain, None, self.threshold, seconds=OTHER_DEPOT, name=self.name
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

"""How well it was known at the call in which races the second unit would arrive first.

A race is an incident to which two units of different stations were sent together and
both arrived. Here its two candidates are columns; everything that was expected of
them comes with it, so that judging is arithmetic on arrays.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.report import Interval

OURS, RANDOM = "ideal", "random"
SHARES = (0.25, 0.5, 0.75)
"""Shares of races with a second unit at which rankings are compared."""

_RESAMPLES = 2000


@dataclass(frozen=True, eq=False, repr=False)
class JudgedRaces:
    """Races, what was expected of their units, and how urgently each ranking asked for a second.

    ``took_s`` are both candidates' seconds from dispatch to scene, ``day`` numbers the
    races' days. ``expected_s`` has every predictor's mean of both, by which it chooses
    its primary; ``predicted_s`` the one number it is held to, the median where it
    knows a distribution. ``scores`` are a ranking's: a second is sent where they are
    high. ``gain_s`` and ``second_first`` are what ours expects of the second unit: seconds
    saved, and the probability that it arrives first. The primary of a race is the
    candidate that ours expects first; in a tie, the first column.
    """

    took_s: FloatArray
    day: IntArray
    expected_s: Mapping[str, FloatArray]
    predicted_s: Mapping[str, FloatArray]
    scores: Mapping[str, FloatArray]
    gain_s: FloatArray
    second_first: FloatArray
    seed: int = 0

    def __post_init__(self) -> None:
        if not len(self.took_s):
            raise InputError("there is no race to judge; choose an earlier date, or give more rows")
        if OURS not in self.expected_s:
            raise InputError(f"expected_s: {OURS} is missing, which chooses the primary")

    def __len__(self) -> int:
        return len(self.took_s)

    def select(self, rows: BoolArray) -> "JudgedRaces":
        """Some of the races."""
        expected_s, predicted_s, scores = (
            {name: values[rows] for name, values in table.items()}
            for table in (self.expected_s, self.predicted_s, self.scores)
        )
        return JudgedRaces(
            self.took_s[rows], self.day[rows], expected_s, predicted_s, scores,
            self.gain_s[rows], self.second_first[rows], self.seed,
        )  # fmt: skip

    @classmethod
    def together(cls, parts: Sequence["JudgedRaces"]) -> "JudgedRaces":
        """The races of all parts, with the rankings and predictors that all of them have."""

        def joined(name: str) -> Any:
            values = [getattr(part, name) for part in parts]
            if not isinstance(values[0], dict):
                return np.concatenate(values)
            shared = [key for key in values[0] if all(key in table for table in values)]
            return {key: np.concatenate([table[key] for table in values]) for key in shared}

        names = (field.name for field in fields(cls) if field.name != "seed")
        return cls(**{name: joined(name) for name in names}, seed=parts[0].seed)

    # --- what happened ----------------------------------------------------------

    @cached_property
    def primary(self) -> npt.NDArray[np.int64]:
        """The column of the unit that ours expects first."""
        return np.asarray(self.expected_s[OURS].argmin(axis=1))

    @cached_property
    def primary_s(self) -> FloatArray:
        """Seconds that the primary took."""
        return np.asarray(self.of_primary(self.took_s))

    @cached_property
    def second_s(self) -> FloatArray:
        """Seconds that the other unit took."""
        return np.asarray(self.of_second(self.took_s))

    @cached_property
    def saved_s(self) -> FloatArray:
        """Seconds that the second unit saved: (T₁ − T₂)⁺."""
        return np.maximum(self.primary_s - self.second_s, 0.0)

    @cached_property
    def came_first(self) -> BoolArray:
        """Where the second unit arrived before the primary."""
        return self.second_s < self.primary_s

    def of_primary(self, values: npt.NDArray[Any]) -> Any:
        """The primary's value of every race, from one for each candidate."""
        return values[np.arange(len(self)), self.primary]

    def of_second(self, values: npt.NDArray[Any]) -> Any:
        """The second unit's value of every race, from one for each candidate."""
        return values[np.arange(len(self)), 1 - self.primary]

    # --- what a ranking is worth --------------------------------------------------

    @property
    def rankings(self) -> tuple[str, ...]:
        """The rankings, and at the end chance."""
        return (*self.scores, RANDOM)

    def saved_at(self, ranking: str, shares: Iterable[float] = SHARES) -> FloatArray:
        """Seconds saved per call where the ranking sends a second to these shares of races."""
        return np.asarray(saved_at(self._score(ranking), self.saved_s, shares)[0])

    def saved_intervals(self, ranking: str, shares: Iterable[float] = SHARES) -> list[Interval]:
        """The same with intervals, whole days drawn again."""
        shares = tuple(shares)
        drawn = saved_at(self._score(ranking), self.saved_s, shares, self._draws)
        return intervals(self.saved_at(ranking, shares), drawn)

    def shares_kept(self, ranking: str, shares: Iterable[float] = SHARES) -> list[Interval]:
        """Which share of what all second units save the ranking keeps; whole days drawn again."""
        both = (*shares, 1.0)
        found = saved_at(self._score(ranking), self.saved_s, both)[0]
        drawn = saved_at(self._score(ranking), self.saved_s, both, self._draws)
        with np.errstate(invalid="ignore"):
            return intervals(found[:-1] / found[-1], drawn[:, :-1] / drawn[:, -1:])

    def auc(self, ranking: str) -> Interval:
        """The chance that a race the second won is ranked above one it lost."""
        score = self._score(ranking)
        found = area_under_curve(score, self.came_first)[0]
        drawn = area_under_curve(score, self.came_first, self._draws)
        return intervals(np.array([found]), drawn[:, None])[0]

    def saved_beyond(self, ranking: str, other: str, share: float) -> Interval:
        """Seconds per call that one ranking saves more than another at the same share."""
        one, two = (
            [saved_at(self._score(name), self.saved_s, (share,), w) for w in (None, self._draws)]
            for name in (ranking, other)
        )
        return intervals((one[0] - two[0])[0], one[1] - two[1])[0]

    def _score(self, ranking: str) -> FloatArray:
        return np.zeros(len(self)) if ranking == RANDOM else self.scores[ranking]

    # --- calibration ----------------------------------------------------------------

    @cached_property
    def gain_ratio(self) -> Interval:
        """Mean expected over mean realised gain; whole days drawn again."""
        return self.ratio(self.gain_s, self.saved_s)

    def mean(self, values: npt.NDArray[Any]) -> Interval:
        """The mean over the races, with an interval by days."""
        return self.ratio(values, np.ones(len(self)))

    def ratio(self, above: npt.NDArray[Any], below: npt.NDArray[Any]) -> Interval:
        """Σ above / Σ below over the races, with an interval by days."""
        with np.errstate(invalid="ignore", divide="ignore"):
            found = np.array([above.sum() / below.sum()])
            return intervals(found, ((self._draws @ above) / (self._draws @ below))[:, None])[0]

    # --- predictors -------------------------------------------------------------------

    def mean_primary_s(self, predictor: str) -> Interval:
        """The mean arrival of the unit that this predictor expects first."""
        return self.mean(self._chosen_s(predictor))

    def primary_beyond(self, predictor: str, other: str) -> Interval:
        """How much later one predictor's primary arrives than another's."""
        return self.mean(self._chosen_s(predictor) - self._chosen_s(other))

    def _chosen_s(self, predictor: str) -> FloatArray:
        chosen = self.expected_s[predictor].argmin(axis=1)
        return np.asarray(self.took_s[np.arange(len(self)), chosen])

    def mae_s(self, predictor: str) -> Interval:
        """Mean absolute error over both units of all races."""
        return self.mean(np.abs(self.predicted_s[predictor] - self.took_s).mean(axis=1))

    # --- all of it --------------------------------------------------------------------

    def as_dict(self) -> dict[str, Any]:
        """The figures of ``races.json``; seconds are per call."""
        return {
            "races": len(self),
            "second_first_share": float(self.came_first.mean()),
            "always_saved_s": float(self.saved_s.mean()),
            "mean_primary_s": {name: self.mean_primary_s(name).mean for name in self.expected_s},
            "auc": {name: self.auc(name).mean for name in self.rankings},
            "saved_s": {
                name: {f"{s:g}": float(v) for s, v in zip(SHARES, self.saved_at(name), strict=True)}
                for name in self.rankings
            },
            "gain_ratio": self.gain_ratio.mean,
            "mae_s": {name: self.mae_s(name).mean for name in self.predicted_s},
        }

    @property
    def days(self) -> int:
        """How many days have a race."""
        return int(np.unique(self.day).size)

    @cached_property
    def _draws(self) -> FloatArray:
        """How often each race counts in each of the draws of whole days."""
        return day_draws(self.day, self.seed)


# --- arithmetic ---------------------------------------------------------------------


def day_draws(day: npt.NDArray[Any], seed: int = 0, draws: int = _RESAMPLES) -> FloatArray:
    """(draws, races): how often each race counts where whole days are drawn with replacement.

    Races of one day share its traffic and its crews, so that days are drawn, not
    races. One day says nothing about others: then there are no draws.
    """
    _, number = np.unique(day, return_inverse=True)
    days = int(number.max()) + 1 if number.size else 0
    if days < 2:
        return np.empty((0, number.size))
    counts = np.random.default_rng(seed).multinomial(days, np.full(days, 1 / days), draws)
    return counts[:, number].astype(np.float64)


def intervals(found: FloatArray, drawn: FloatArray) -> list[Interval]:
    """Each value with the middle 95 % of its column of draws; NaN ends without draws."""
    if not len(drawn):
        return [Interval(float(value)) for value in found]
    low, high = np.nanquantile(drawn, (0.025, 0.975), axis=0)
    return [Interval(*map(float, three)) for three in zip(found, low, high, strict=True)]


def saved_at(
    score: FloatArray,
    saved_s: FloatArray,
    shares: Iterable[float],
    weights: FloatArray | None = None,
) -> FloatArray:
    """(draws, shares): seconds saved per call where the highest scores get a second unit.

    Exactly the share is sent: the last race to get a second counts by the fraction
    that belongs to it, and races of one score share what is left for them. So a
    ranking that knows nothing saves the same share of the seconds. Each row of
    ``weights`` says how often each race counts; once, without.
    """
    asked = np.asarray(tuple(shares), np.float64)
    if ((asked < 0) | (asked > 1)).any():
        raise InputError(f"shares {asked.tolist()}: a share lies between 0 and 1")
    order, starts = _descending(score)
    rows = np.ones((1, score.size)) if weights is None else weights
    sent = np.cumsum(np.add.reduceat(rows[:, order], starts, axis=1), axis=1)
    saved = np.cumsum(np.add.reduceat(rows[:, order] * saved_s[order], starts, axis=1), axis=1)
    found = np.empty((len(rows), asked.size))
    for number, (x, y) in enumerate(zip(sent, saved, strict=True)):
        found[number] = np.interp(asked * x[-1], np.r_[0.0, x], np.r_[0.0, y]) / x[-1]
    return found


def area_under_curve(
    score: FloatArray, happened: BoolArray, weights: FloatArray | None = None
) -> FloatArray:
    """(draws,): the chance that a race with the event scores above one without; ties count half.

    NaN where all or none have the event.
    """
    order, starts = _descending(score)
    rows = np.ones((1, score.size)) if weights is None else weights
    event = np.where(happened, 1.0, 0.0)[order]
    yes = np.add.reduceat(rows[:, order] * event, starts, axis=1)
    no = np.add.reduceat(rows[:, order] * (1.0 - event), starts, axis=1)
    above = np.cumsum(yes, axis=1) - yes / 2.0  # events before each group of equal scores
    with np.errstate(invalid="ignore"):
        area: FloatArray = (above * no).sum(axis=1) / (yes.sum(axis=1) * no.sum(axis=1))
    return area


def _descending(score: FloatArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Races from the highest score down, and where in that order each score begins."""
    if np.isnan(score).any():
        raise InputError(f"race {int(np.isnan(score).argmax())}: its score is not a number")
    order = np.argsort(-score, kind="stable")
    return order, np.flatnonzero(np.r_[True, np.diff(score[order]) != 0.0])

"""A running dispatch, looked at again: the second goes on, stands down, or one is sent now.

While two units are on their way, time passes and news comes in: one leaves, one is seen on the
road, one arrives, one breaks down. Their arrivals say what the second may still save. Symbols:
T₁, T₂ the arrivals of the first and the second (:mod:`ideal_dispatch.dispatch.arrival`), b the
seconds that have passed since the first was sent, S the survival curve, a the chance that the
call is an arrest. The second still saves a · E[S(b + min(T₁, T₂)) − S(b + T₁)] lives, and keeping
it costs the other calls C, the price of its absence until one of the two arrives.

Advice is never an order, and it does not flap. The second is to stand down below
``STAND_DOWN_BELOW`` · C, and to go on again only above ``KEEP_ABOVE`` · C. Estimates
change the advice only while it has changed fewer than ``MOST_CHANGES`` times, and not within
``PAUSE_S`` of the change before. That a unit arrived or broke down is a fact: it changes the
advice at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ideal_dispatch.arrays import non_negative
from ideal_dispatch.dispatch.answer import chance_words
from ideal_dispatch.dispatch.arrival import Arrival
from ideal_dispatch.dispatch.survival import SurvivalCurve
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.response_time import ResponsePair

SURELY_FIRST = 0.02
"""The first counts as first where the second is first with a lesser chance than this."""

IN_DOUBT_AGAIN = 0.04
"""The chance above which a first that was sure is so no longer."""

STAND_DOWN_BELOW = 0.8
"""The second stands down where it saves less than this many times its cost."""

KEEP_ABOVE = 1.2
"""It goes on again where it saves more than this many times its cost."""

SEND_ABOVE = 2.0
"""One more is sent where it saves more than this many times its cost."""

SEND_CHANCE = 0.25
"""And where it would be first with at least this chance: a unit that costs nothing is no reason."""

MOST_CHANGES = 3
"""Changes of an advice in one dispatch after which only facts change it."""

PAUSE_S = 30.0
"""The least time between two of them."""

_BOTH = "{saves} of 10,000 lives, and its absence costs {cost}."
WORDS: Mapping[str, str] = {
    "under_way": "Both units are on their way.",
    "first_arrived": "The first unit is at the scene.",
    "second_arrived": "The second unit is at the scene.",
    "second_needed": "The arrival of the first unit is unknown: the second is needed.",
    "nobody_coming": "The arrival of the first unit is unknown, and no other is coming.",
    "second_lost": "The second unit is out of service, or its arrival is unknown.",
    "surely_first": "The first unit will be there first: "
    "the chance that the second is sooner is {chance}.",
    "may_be_first": "The chance that the second unit is first: {chance}.",
    "worth_its_price": f"The second unit is worth its price: it still saves {_BOTH}",
    "not_worth_its_price": f"The second unit is not worth its price: it still saves {_BOTH}",
    "send_another": f"Another unit sent now would save {_BOTH}",
    "no_other_needed": f"Another unit is not needed: it would save {_BOTH}",
    "changed_just_now": "The advice stays: it changed a moment ago.",
    "changed_often": "The advice stays: it has changed {changes} times.",
    "behind_closed_roads": "Only closed roads lead there; the times assume that they are open.",
    "first_not_seen": "The first unit was last seen {minutes} min ago.",
    "second_not_seen": "The second unit was last seen {minutes} min ago.",
    "other_not_seen": "The unit that could go was last seen {minutes} min ago; "
    "it counts as at its station.",
}
"""Reasons of an advice in English, by their codes."""

Advice = Literal["keep", "stand_down", "send_one"]
State = Literal["ready", "under_way", "arrived", "lost"]


@dataclass(frozen=True, slots=True, eq=False)
class UnitProgress:
    """One unit of a dispatch, and its arrival.

    A "ready" unit is not on its way and could be sent now. One that is "lost" is out of service,
    or its arrival cannot be predicted. Only ready units and those under way have an arrival.
    """

    state: State
    arrival: Arrival | None = None

    def __post_init__(self) -> None:
        if (self.arrival is not None) != (self.state in ("ready", "under_way")):
            raise InputError(
                f"unit that is {self.state}: a unit has an arrival if it is ready or under way, "
                "and only then"
            )

    @property
    def expected_s(self) -> float | None:
        """The expected seconds until it is at the scene; None where they are not known."""
        if self.arrival is None:
            return 0.0 if self.state == "arrived" else None
        return self.arrival.expected_s


ARRIVED = UnitProgress("arrived")
LOST = UnitProgress("lost")


@dataclass(frozen=True, slots=True)
class ReasonCode:
    """A reason as its code and its numbers: a chance, lives, minutes or how often."""

    code: str
    values: Mapping[str, float] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The reason as a sentence."""
        shown = {name: _SHOWN[name](value) for name, value in self.values.items()}
        return WORDS[self.code].format(**shown)


@dataclass(frozen=True, slots=True)
class Reassessment:
    """What is advised of a running dispatch ``at_s`` seconds after its first unit was sent.

    ``reasons`` say why, the most important first. ``first_s`` and ``second_s`` are the expected
    seconds until both arrive, ``second_first`` is the chance that the second is first. It still
    ``saves`` so many lives, and keeping it has a ``cost`` in lives. None means not known.
    ``changes`` counts how often the advice has changed, "keep" being the first; ``changed_s`` is
    when it last did.
    """

    advice: Advice
    reasons: tuple[ReasonCode, ...]
    at_s: float
    first_s: float | None = None
    second_s: float | None = None
    second_first: float | None = None
    saves: float | None = None
    cost: float | None = None
    changes: int = 0
    changed_s: float | None = None

    @property
    def reason(self) -> str:
        """All reasons in words."""
        return " ".join(one.words for one in self.reasons)


def away_s(first: UnitProgress, second: UnitProgress, together: float = 0.0) -> float | None:
    """For how long the second is still away if it is kept: until one of both is there.

    None where it is not known. A price is asked for so many seconds.
    """
    if "arrived" in (first.state, second.state):
        return 0.0
    if first.arrival is None or second.arrival is None:
        one = first.arrival or second.arrival
        return None if one is None else one.expected_s
    pair = ResponsePair(first.arrival.time, second.arrival.time, together)
    return max(first.arrival.expected_s - float(pair.gain_s), 0.0)


def reassess(
    first: UnitProgress,
    second: UnitProgress,
    *,
    before_s: float,
    curve: SurvivalCurve,
    cost_lives: float,
    arrest_chance: float = 1.0,
    by_price: bool = True,
    last: Reassessment | None = None,
    together: float = 0.0,
) -> Reassessment:
    """What to do with the second of a dispatch, ``before_s`` after its first was sent.

    ``second`` is the unit that is on its way; where it was stood down or never left, the best
    unit that could be sent now. ``cost_lives`` is the price of its absence from now on, see
    :func:`away_s`. Unless it goes ``by_price``, a second is stood down only where the first is at
    the scene or almost certainly will be first. ``last`` is what was said before. ``together`` is
    the share of both drives on the same roads.
    """
    before_s = non_negative(before_s, "time since the first unit was sent", seconds=True)
    cost = non_negative(cost_lives, "cost of the second unit in lives")
    if not 0.0 <= arrest_chance <= 1.0:
        raise InputError(f"arrest_chance {arrest_chance}: a number from 0 to 1 is needed")
    chance: float | None = None
    saves: float | None = None
    if first.arrival is not None and second.arrival is not None:
        pair = ResponsePair(first.arrival.time, second.arrival.time, together)
        gain = pair.survival_gain(lambda later_s: curve.probability(before_s + later_s))
        chance, saves = float(pair.second_first), arrest_chance * float(gain)
    elif first.state == "arrived":
        chance = saves = 0.0

    before: Advice = "keep" if last is None else last.advice
    changes, changed_s = (0, None) if last is None else (last.changes, last.changed_s)
    fact = _by_facts(first, second, before)
    if fact is not None:
        advice, *reasons = fact
    else:
        assert chance is not None
        assert saves is not None
        advice, *reasons = _by_estimate(chance, saves, cost, second, before, by_price)
        paused = changed_s is not None and before_s - changed_s < PAUSE_S
        if advice != before and (paused or changes >= MOST_CHANGES):
            advice = before
            often = ReasonCode("changed_often", {"changes": changes})
            reasons.append(ReasonCode("changed_just_now") if paused else often)
    if advice != before:
        changes, changed_s = changes + 1, before_s
    return Reassessment(
        advice, tuple(reasons), before_s, first.expected_s, second.expected_s, chance, saves, cost,
        changes, changed_s,
    )  # fmt: skip


def _by_facts(
    first: UnitProgress, second: UnitProgress, before: Advice
) -> tuple[Advice, ReasonCode] | None:
    """What follows from an arrival or a breakdown; None where both are still to come."""
    idle = second.state == "ready"
    rest: Advice
    if first.state == "arrived":
        rest = "keep" if idle and before != "stand_down" else "stand_down"
        return rest, ReasonCode("first_arrived")
    if second.state == "arrived":
        return "keep", ReasonCode("second_arrived")
    if first.state == "lost":
        if second.state == "under_way":
            return "keep", ReasonCode("second_needed")
        return "send_one", ReasonCode("nobody_coming")
    if second.state == "lost":
        rest = "keep" if before == "send_one" else before
        return rest, ReasonCode("second_lost")
    return None


def _by_estimate(
    chance: float, saves: float, cost: float, second: UnitProgress, before: Advice, by_price: bool
) -> tuple[Advice, ReasonCode]:
    """What follows from what is expected, with hysteresis around the advice before."""
    lives = {"saves": saves, "cost": cost}
    if second.state == "ready":
        enough = KEEP_ABOVE if before == "send_one" else SEND_ABOVE
        if saves > enough * cost and chance > SEND_CHANCE:
            return "send_one", ReasonCode("send_another", lives)
        rest: Advice = "keep" if before == "send_one" else before
        return rest, ReasonCode("no_other_needed", lives)
    stood_down = before == "stand_down"
    if chance < (IN_DOUBT_AGAIN if stood_down else SURELY_FIRST):
        return "stand_down", ReasonCode("surely_first", {"chance": chance})
    if not by_price:
        return "keep", ReasonCode("may_be_first", {"chance": chance})
    if saves < (KEEP_ABOVE if stood_down else STAND_DOWN_BELOW) * cost:
        return "stand_down", ReasonCode("not_worth_its_price", lives)
    return "keep", ReasonCode("worth_its_price", lives)


def _of_10_000(lives: float) -> str:
    """To two digits, as people write numbers: 130 and not 1.3e+02."""
    if 0.0 < lives < 5e-7:
        return "less than 0.005"
    return f"{float(f'{1e4 * lives:.2g}'):.15g}"


_SHOWN: Mapping[str, Callable[[float], str]] = {
    "saves": _of_10_000, "cost": _of_10_000, "chance": chance_words,
    "changes": str, "minutes": lambda minutes: f"{minutes:.0f}",
}  # fmt: skip

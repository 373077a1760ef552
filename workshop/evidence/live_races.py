"""Real races replayed with what would have been known live, and the second stood down by it.

The log has no places: live news is that a unit has left. Each race is looked at each 15 s, and
when a unit leaves, until somebody arrives. Response times were fitted on the years before.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.arrival import FORGOTTEN, Arrival, rolling, waiting
from ideal_dispatch.dispatch.reassessment import (
    ARRIVED,
    Reassessment,
    UnitProgress,
    away_s,
    reassess,
)
from ideal_dispatch.dispatch.survival import CURVES, USUAL_CURVE
from ideal_dispatch.dispatch.threshold import USUAL_COST
from ideal_dispatch.evaluation.race_judgement import JudgedRaces
from ideal_dispatch.evaluation.race_study import RaceStudy, StudySettings, study_races
from ideal_dispatch.forecast.response_time import Effects, ResponseModel
from ideal_dispatch.records.responses import Responses
from ideal_dispatch.report import Cell, Column, Interval, Table

SETTINGS = StudySettings(date(2012, 1, 1), "year", regressions=False)
"""As `make race-evidence` judges Lancaster: each year by the years before it."""

PRICES = (3e-4, USUAL_COST, 1e-2)
"""Lives that a quarter of an hour of a unit costs the others: cheap, usual, dear."""

LOOK_S = 15.0
DEALT = 200
"""How often the same moments are dealt to the races at random."""

Trust = Literal["believed", "not told", "forgotten"]
RULES: Mapping[Trust, str] = {
    "believed": "by its price, told who has left",
    "not told": "by its price, not told",
    "forgotten": "told, but some forget to say so (after the look)",
}
"""What is made of the news that a unit has left: the first two as the protocol has them."""

_HOLD_S = 900.0
_CURVE = CURVES[USUAL_CURVE]

PROTOCOL = (
    "**Data.** Lancaster County, Nebraska, 2010 to 2016 (MIT licence), the races of "
    "[its page](lancaster.md): two ambulances or medics dispatched within five seconds, both on "
    "scene. The log has no places, so that live news is that a unit has left.",
    "**Protocol**, fixed before the replay was looked at; the races themselves had been judged "
    "before. Each year is judged by response times fitted on the years before it. The primary is "
    "the unit that they expect first. Each 15 s, and when a unit leaves, the rule of the service "
    "is asked, until somebody arrives; the first time that it says *stand down*, the second is "
    "stood down, and stays so. Every call counts as a cardiac arrest. A quarter of an hour of a "
    "unit costs 0.001 lives, the order of what [fleets](fleet_price.md) showed; 0.0003 and 0.01 "
    "stand beside it. The last is also the usual price where one call in ten is an arrest. "
    "Minutes are those on the way: what a unit does at the scene is not counted, so that never "
    "standing down looks cheaper than it is. Intervals hold 95 %, whole days drawn again.",
    "**Beside it**: the same rule that does not know who has left, but only that nobody has "
    "arrived; and the same moments of standing down, dealt to the races at random, 200 times. A "
    "rule that knows something must keep more than that for the same minutes.",
)


@dataclass(frozen=True, slots=True)
class LoggedUnit:
    """What the log tells of a unit, in seconds after it was sent; ``left_s`` may be NaN.

    ``model`` has the response times of its station, kind and hour, as the years before tell.
    """

    left_s: float
    there_s: float
    model: ResponseModel


def known(unit: LoggedUnit, now_s: float, trust: Trust) -> UnitProgress:
    """What would have been known of a unit."""
    if now_s >= unit.there_s:
        return ARRIVED
    if trust == "not told" or math.isnan(unit.left_s):
        arrival = Arrival(unit.model.of(math.nan).after(now_s))
    elif now_s < unit.left_s:
        forgotten = 0.0 if trust == "believed" else FORGOTTEN
        arrival = waiting(unit.model, math.nan, now_s, forgotten=forgotten)
    else:
        arrival = rolling(unit.model, math.nan, now_s - max(unit.left_s, 0.0))
    return UnitProgress("under_way", arrival)


def stood_down_s(
    first: LoggedUnit,
    second: LoggedUnit,
    prices: Sequence[float],
    trust: Trust,
) -> list[float]:
    """For each price, when the second is stood down before anybody arrives; infinite for not."""
    end_s = min(first.there_s, second.there_s)
    moments = set(np.arange(LOOK_S, end_s, LOOK_S).tolist())
    if trust != "not told":
        moments |= {unit.left_s for unit in (first, second) if 0.0 < unit.left_s < end_s}
    said: dict[float, Reassessment | None] = dict.fromkeys(prices)
    stood_s = dict.fromkeys(prices, math.inf)
    for now_s in sorted(moments):
        one, two = (known(unit, now_s, trust) for unit in (first, second))
        held_s = away_s(one, two)
        assert held_s is not None
        for price in [each for each in prices if stood_s[each] == math.inf]:
            said[price] = found = reassess(
                one, two, before_s=now_s, curve=_CURVE, cost_lives=price * held_s / _HOLD_S,
                last=said[price],
            )  # fmt: skip
            if found.advice == "stand_down":
                stood_s[price] = now_s
    return [stood_s[price] for price in prices]


@dataclass(frozen=True, slots=True, eq=False)
class LiveRaces:
    """Races, and by trust the moment at which each price stands the second down, a column each.

    ``left_s`` is when the second said that it left.
    """

    judged: JudgedRaces
    stood_s: Mapping[Trust, FloatArray]
    left_s: FloatArray

    @classmethod
    def of(cls, responses: Responses) -> "LiveRaces":
        """All races of a log from 2012 on."""
        study = study_races(responses, SETTINGS)
        races = _races(study)
        moments = {
            trust: np.array([stood_down_s(*race, PRICES, trust) for race in races])
            for trust in RULES
        }
        return cls(study.judged, moments, np.array([second.left_s for _, second in races]))

    @property
    def first_s(self) -> FloatArray:
        """The first arrival of either unit."""
        return np.minimum(self.judged.primary_s, self.judged.second_s)

    def lives(self, kept: Any) -> FloatArray:
        """The lives that the second saves in every race; nothing where it is not ``kept``."""
        saved = _CURVE.probability(self.first_s) - _CURVE.probability(self.judged.primary_s)
        return np.where(kept, saved, 0.0)

    def row(self, name: str, stood_s: FloatArray, price: float | None) -> tuple[Cell, ...]:
        """What comes of standing the second down at these moments, if they come in time."""
        judged, first_s = self.judged, self.first_s
        kept = ~(stood_s < first_s)
        held_min = np.where(kept, first_s, stood_s) / 60.0
        saved_s = np.where(kept, judged.saved_s, 0.0)
        freed = first_s / 60.0 - held_min
        net = None
        if price is not None:
            worth = price * freed * 60.0 / _HOLD_S - (self.lives(True) - self.lives(kept))
            net = judged.mean(1000.0 * worth)
        return (
            name, None if price is None else f"{price:g}", float((~kept).mean()),
            judged.mean(saved_s), judged.ratio(saved_s, judged.saved_s),
            float(1000.0 * self.lives(kept).mean()), float(held_min.mean()), judged.mean(freed),
            net,
        )  # fmt: skip

    def dealt(self, name: str, stood_s: FloatArray, price: float) -> tuple[Cell, ...]:
        """The same moments dealt at random, the mean of many times; no intervals."""
        rng = np.random.default_rng(0)
        rows = [self.row(name, rng.permutation(stood_s), price)[2:] for _ in range(DEALT)]
        means = (float(np.mean([_plain(cell) for cell in one])) for one in zip(*rows, strict=True))
        return (name, f"{price:g}", *means)

    @property
    def table(self) -> Table:
        """A row for each rule and price."""
        never = self.row("at first arrival", np.full(len(self.judged), math.inf), None)
        both_s = np.maximum(self.judged.primary_s, self.judged.second_s)
        way = self.judged.mean((self.first_s - both_s) / 60.0)
        rows: list[tuple[Cell, ...]] = [
            ("never stood down", *never[1:6], float(both_s.mean() / 60.0), way, None), never
        ]  # fmt: skip
        for place, price in enumerate(PRICES):
            for trust, name in RULES.items():
                rows.append(self.row(name, self.stood_s[trust][:, place], price))
            dealt = self.stood_s["believed"][:, place]
            rows.append(self.dealt("the first rule's moments at random", dealt, price))
        return Table(
            "races",
            "Lancaster County, ambulances",
            (Column("the second is"), Column("price"), Column("stood down early %", percent=True),
             Column("seconds saved"), Column("% of all", 0, percent=True),
             Column("of 1,000 lives"), Column("held, min", 2),
             Column("freed against first arrival, min", 2, signed=True),
             Column("net, of 1,000 lives", 2, signed=True)),
            tuple(rows),
            frozenset(range(2, len(rows), len(RULES) + 1)),
            note=f"{len(self.judged):,} races of {self.judged.days:,} days. Seconds, lives and "
            "minutes are per race. Held: minutes on the way of the unit that is not first. Price: "
            "lives a quarter of an hour. Net: the price of the minutes that are freed, less the "
            "lives that are not saved any more, against first arrival.",
        )  # fmt: skip


def race_words(races: LiveRaces) -> list[str]:
    """What came out of the races, for and against the rule."""
    judged, place = races.judged, PRICES.index(USUAL_COST)
    lines = []
    for trust, name in RULES.items():
        row = races.row("", races.stood_s[trust][:, place], USUAL_COST)
        kept, freed, net = (cell for cell in row[4:] if isinstance(cell, Interval))
        sure = "not sure" if net.low <= 0.0 <= net.high else "a gain" if net.low > 0.0 else "a loss"
        lines.append(
            f"- **{name[0].upper()}{name[1:]}**, at the usual price: {100 * kept.mean:.0f} % of "
            f"the seconds remain, and {freed.mean:.2f} unit minutes are freed for each race. In "
            f"lives, against first arrival: {sure} ({net.mean:+.2f} of 1,000)."
        )
    beside = []
    for number, price in enumerate(PRICES):
        moments = races.stood_s["believed"][:, number]
        own, dealt = races.row("", moments, price), races.dealt("", moments, price)
        beside.append(
            f"at {price:g} {100 * _plain(own[4]):.0f} against {100 * _plain(dealt[4]):.0f} % of "
            f"the seconds and {_plain(own[5]):.1f} against {_plain(dealt[5]):.1f} of 1,000 lives "
            "remain"
        )
    lines.append(f"- **Against the same moments at random**, the first rule: {'; '.join(beside)}.")
    stood_s = races.stood_s["believed"][:, place]
    lost = (stood_s < races.first_s) & (judged.saved_s > 0.0)
    silent = lost & ~(races.left_s <= stood_s)
    rest_s = (judged.second_s - races.left_s)[silent]
    usual = np.nanmedian(judged.second_s - races.left_s)
    text = (
        f"**What went wrong.** At the usual price {int(lost.sum())} of "
        f"{int((stood_s < races.first_s).sum())} seconds that were stood down would have been "
        f"first. {int(silent.sum())} of them had not said that they left"
    )
    if rest_s.size:
        text += (
            f"; when they did, they were there after {np.nanmedian(rest_s):.0f} s in the median, "
            f"where all seconds need {usual:.0f} s. Probably they drove before they said so, or "
            "straight to the scene: many crews are volunteers. To believe that a unit stands "
            "still because it has not spoken is wrong here. After this look the service's rule "
            f"was given a chance of {100 * FORGOTTEN:.0f} % that a crew leaves and does not say "
            "so, the only number that was tried. Its rows are a second look at the same races, "
            "and no result"
        )
    return ["\n".join(lines).replace("(-", "(−"), f"{text}."]


def _plain(cell: Cell) -> float:
    if isinstance(cell, Interval):
        return cell.mean
    assert isinstance(cell, float)
    return cell


def _races(study: RaceStudy) -> list[tuple[LoggedUnit, LoggedUnit]]:
    """The primary and the second of each race."""
    log, found = study.responses, []
    for rows, window, primary in zip(
        study.races.rows, study.window, study.judged.primary, strict=True
    ):
        fitted = study.windows[window].response
        assert fitted.unplaced is not None
        units = []
        for row in rows:
            who = str(log.station[row]), int(log.hour[row]), str(log.kind[row])
            turnout, whole = (
                Effects(float(each.median_s(*who)), each.spread)  # looked up once, not at each look
                for each in (fitted.turnout, fitted.unplaced)
            )
            model = replace(fitted, turnout=turnout, unplaced=whole)
            units.append(LoggedUnit(float(log.turnout_s[row]), float(log.response_s[row]), model))
        found.append((units[primary], units[1 - primary]))
    return found

"""The three issues of the paper's introduction, counted on the calls of a replay.

Issue 1: the static region sends the wrong depot. Issue 2: the depot that looked
better at departure loses on the way. Issue 3: the router's optimistic–pessimistic
ranges overlap, so they decide nothing.
"""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.log import read_log
from ideal_dispatch.replay.run import LOG

WORLDS = tuple(World)
MARGIN = 0.25
"""Two depots race where the longer quote is at most so much above the shorter."""

_TIMES = ("duration_s", "optimistic_s", "pessimistic_s")


@dataclass(frozen=True, slots=True, eq=False)
class Races:
    """Calls and what became of every depot in the race: rows are calls, columns depots.

    ``quoted_s``, ``optimistic_s`` and ``pessimistic_s`` are of the moment of
    the call; ``took_s`` has one more axis in front, of :data:`WORLDS`. NaN
    where a depot was not in the race: its quote was more than the margin above
    the shortest, and it is not the region's. ``region`` is the depot of the
    node's static territory. Of the calls drawn, ``apart`` were no race and
    ``ran_out`` left the recorded time.
    """

    node: IntArray
    at: tuple[datetime, ...]
    region: IntArray
    quoted_s: FloatArray
    optimistic_s: FloatArray
    pessimistic_s: FloatArray
    took_s: FloatArray
    contends: BoolArray
    apart: int
    ran_out: int

    def __len__(self) -> int:
        return self.node.size

    @property
    def favourite(self) -> IntArray:
        """The depot with the shortest quote."""
        return np.asarray(np.nanargmin(self.quoted_s, axis=1), np.int32)

    @property
    def rival(self) -> IntArray:
        """The depot with the second shortest quote."""
        return np.asarray(np.argsort(self.quoted_s, axis=1, kind="stable")[:, 1], np.int32)

    def _of(self, values: FloatArray, depot: IntArray) -> FloatArray:
        return np.asarray(values[..., np.arange(len(self)), depot])

    def region_share(self) -> FloatArray:
        """Issue 1, by world: how often no other depot would have been sooner than the region's."""
        best = self._of(self.took_s, self.region) <= np.nanmin(self.took_s, axis=2)
        return np.asarray(best.mean(axis=1))

    def lost_s(self) -> FloatArray:
        """Issue 2, (worlds, calls): by how much the favourite arrives after the best contender."""
        best: FloatArray = np.where(self.contends, self.took_s, np.inf).min(axis=2)
        return self._of(self.took_s, self.favourite) - best

    def reversal_share(self) -> FloatArray:
        """Issue 2, by world: how often another contender arrives before the favourite."""
        return np.asarray((self.lost_s() > 0).mean(axis=1))

    def overlap_share(self) -> float:
        """Issue 3: how often the ranges of favourite and rival meet, be it in one value."""
        return float((self._common_s() >= 0).mean())

    def overlap_s(self) -> FloatArray:
        """Issue 3: seconds that the ranges of favourite and rival have in common, or 0."""
        return np.maximum(self._common_s(), 0.0)

    def _common_s(self) -> FloatArray:
        """Where negative, the gap between the two ranges."""
        pair = self.favourite, self.rival
        ends = np.minimum(*(self._of(self.pessimistic_s, depot) for depot in pair))
        begins = np.maximum(*(self._of(self.optimistic_s, depot) for depot in pair))
        return np.asarray(ends - begins)

    def mean_s(self) -> FloatArray:
        """Mean realised time of favourite and rival, by world."""
        both = [self._of(self.took_s, depot) for depot in (self.favourite, self.rival)]
        return np.asarray((both[0] + both[1]).mean(axis=1) / 2)

    def most_telling(self, world: World) -> int | None:
        """The call in which the favourite loses most to its rival; None where it never does."""
        number = WORLDS.index(world)
        took_s = self.took_s[number]
        lost = self._of(took_s, self.favourite) - self._of(took_s, self.rival)
        return int(lost.argmax()) if len(self) and lost.max() > 0 else None


def races_of(outcomes: Outcomes) -> tuple[Races, tuple[int, ...]] | None:
    """The run's calls as races, and the number of each in the log.

    A call is a race where the router promises two depots within the margin of
    each other, The log has every depot's quote and drive,
    so no traffic is needed. None where no call is a race.
    """
    found, numbers, apart = [], [], 0
    for number, entry in enumerate(read_log(outcomes.folder / LOG)):
        row = _row(entry)
        if row is None:
            apart += 1
        else:
            found.append(row)
            numbers.append(number)
    if not found:
        return None
    columns = {name: np.array([row[name] for row in found]) for name in (*_TIMES, "contends")}
    races = Races(
        node=np.array([row["node"] for row in found], np.int32),
        at=tuple(row["at"] for row in found),
        region=np.array([row["region"] for row in found], np.int32),
        quoted_s=columns["duration_s"],
        optimistic_s=columns["optimistic_s"],
        pessimistic_s=columns["pessimistic_s"],
        took_s=np.moveaxis(np.array([row["took_s"] for row in found]), 1, 0),
        contends=columns["contends"],
        apart=apart,
        ran_out=len(outcomes.manifest.get("dropped") or ()),
    )
    return races, tuple(numbers)


def _row(entry: dict[str, Any]) -> dict[str, Any] | None:
    """One call, or None where it is no race."""
    stations, region = entry["stations"], entry["region"]
    there = [bool(s["quote"]) and f"s{i}" in entry["drives"] for i, s in enumerate(stations)]
    times = {
        name: np.array([_known(s["quote"], name) if ok else math.nan
                        for s, ok in zip(stations, there, strict=True)])
        for name in _TIMES
    }  # fmt: skip
    quoted = times["duration_s"]
    if region is None or not there[region]:
        return None
    contends = quoted <= (1 + MARGIN) * np.nanmin(quoted)
    if contends.sum() < 2:
        return None
    goes = contends.copy()
    goes[region] = True
    took_s = [
        [math.fsum(entry["drives"][f"s{i}"][how]["seconds"]) if ok else math.nan
         for i, ok in enumerate(goes)]
        for how in WORLDS
    ]  # fmt: skip
    return {
        **{name: np.where(goes, values, np.nan) for name, values in times.items()},
        "node": entry["incident"]["node"],
        "at": datetime.fromisoformat(entry["incident"]["at"]),
        "region": region,
        "took_s": took_s,
        "contends": contends,
    }


def _known(quote: dict[str, Any], name: str) -> float:
    """A time of a quote; a range that is not known is the duration."""
    value = quote[name]
    return float(quote["duration_s"] if value is None else value)

"""The three issues of the paper's introduction, counted on the calls of a replay.

Issue 1: the static region sends the wrong depot. Issue 2: the depot that looked
better at departure loses on the way. Issue 3: the router's optimistic–pessimistic
ranges overlap, so they decide nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray, IntArray
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.pages import ACCENT, INK, MUTED, ORANGE, PURPLE, named_bars, plain_axes
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.log import read_log
from ideal_dispatch.replay.run import LOG

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARGIN = 0.25
"""A call is contested where a second quote is at most so much above the shortest."""

PAPER_REGION, PAPER_OVERLAP, PAPER_OVERLAP_S, PAPER_MEAN_S = 0.56, 0.995, 377.0, 596.0
"""What the paper's introduction reports of its 50 nodes."""

_RECORDED = (ACCENT, ORANGE, PURPLE)
_LONGEST_NAME = 16


@dataclass(frozen=True, slots=True, eq=False)
class Contests:
    """Calls and what became of every depot in the contest: rows are calls, columns depots.

    ``quoted_s``, ``optimistic_s`` and ``pessimistic_s`` are of the moment of
    the call; ``took_s`` has one more axis in front, of ``worlds``. NaN
    where a depot was not in the contest: its quote was more than the margin above
    the shortest, and it is not the region's. ``region`` is the depot of the
    node's static territory.
    """

    region: IntArray
    quoted_s: FloatArray
    optimistic_s: FloatArray
    pessimistic_s: FloatArray
    took_s: FloatArray
    contends: BoolArray
    worlds: tuple[World, ...] = tuple(World)

    def __len__(self) -> int:
        return self.region.size

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
        took_s = self.took_s[self.worlds.index(world)]
        lost = self._of(took_s, self.favourite) - self._of(took_s, self.rival)
        return int(lost.argmax()) if len(self) and lost.max() > 0 else None


def contests_of(outcomes: Outcomes) -> tuple[Contests, tuple[int, ...]] | None:
    """The run's calls as contests, and the number of each in the log.

    A call is a contest where the router promises two depots within the margin of
    each other. The log has every depot's quote and drive, so no traffic is
    needed. None where no call is a contest.
    """
    worlds, log = tuple(World(name) for name in outcomes.best_s), read_log(outcomes.folder / LOG)
    depots = len(outcomes.manifest.get("depots", ())) or None  # units on the road come after them
    rows = {number: _row(entry, worlds, depots) for number, entry in enumerate(log)}
    found = {number: row for number, row in rows.items() if row is not None}
    if not found:
        return None
    columns = {
        name: np.array([row[name] for row in found.values()]) for name in next(iter(found.values()))
    }
    columns["took_s"] = np.moveaxis(columns["took_s"], 1, 0)
    return Contests(**columns, worlds=worlds), tuple(found)


def _row(
    entry: dict[str, Any], worlds: tuple[World, ...], depots: int | None
) -> dict[str, Any] | None:
    """The fields of :class:`Contests` for one call, or None where its depots have no contest."""
    stations, drives, region = entry["stations"][:depots], entry["drives"], entry["region"]
    quotes = [one["quote"] if f"s{i}" in drives else None for i, one in enumerate(stations)]
    if region is None or not quotes[region]:
        return None
    quoted, optimistic, pessimistic = (
        np.array([_known(quote, name) for quote in quotes])
        for name in ("duration_s", "optimistic_s", "pessimistic_s")
    )
    contends = quoted <= (1 + MARGIN) * np.nanmin(quoted)
    if contends.sum() < 2:
        return None
    goes = contends.copy()
    goes[region] = True
    took_s = [
        [math.fsum(drives[f"s{i}"][how]["seconds"]) if ok else math.nan
         for i, ok in enumerate(goes)]
        for how in worlds
    ]  # fmt: skip
    return {
        "region": np.int32(region),
        "quoted_s": np.where(goes, quoted, np.nan),
        "optimistic_s": np.where(goes, optimistic, np.nan),
        "pessimistic_s": np.where(goes, pessimistic, np.nan),
        "took_s": took_s,
        "contends": contends,
    }


def _known(quote: dict[str, Any] | None, name: str) -> float:
    """A time of a quote; a range that is not known is the duration."""
    if not quote:
        return math.nan
    return float(quote["duration_s"] if quote[name] is None else quote[name])


# --- drawn --------------------------------------------------------------------------


def issues(named: Sequence[tuple[str, Contests]]) -> "Figure":
    """The three issues of the introduction: shares of calls, with the paper's own beside them."""
    count = sum(len(contests.worlds) for _, contests in named)
    figure, panels = plain_axes(3, 1.3 + 0.42 * (1 + count))
    region = [("paper", PAPER_REGION, f"{100 * PAPER_REGION:.0f} %", MUTED)]
    loses = [("", 0.0, "not given", MUTED)]
    both = [("paper", PAPER_OVERLAP, f"{100 * PAPER_OVERLAP} %, {PAPER_OVERLAP_S:.0f} s", MUTED)]
    for (name, contests), colour in zip(named, _RECORDED, strict=False):
        for world, share, late, lost_s in zip(
            contests.worlds,
            contests.region_share(),
            contests.reversal_share(),
            contests.lost_s(),
            strict=True,
        ):
            region.append((f"{_short(name)}, {world}", share, f"{100 * share:.0f} %", colour))
            by = f" by {lost_s[lost_s > 0].mean():.0f} s" if late > 0 else ""
            loses.append(("", late, f"{100 * late:.0f} %{by}", colour))
        meet, seconds = contests.overlap_share(), contests.overlap_s().mean()
        both.append((_short(name), meet, f"{100 * meet:.0f} %, {seconds:.0f} s", colour))
    for axes, title, bars in (
        (panels[0], "1  Region's depot is the best", region),
        (panels[1], "2  Promised best depot loses", loses),
        (panels[2], "3  Router's ranges overlap", both),
    ):
        names, lengths, texts, colours = zip(*bars, strict=True)
        named_bars(axes, names, 100 * np.array(lengths), texts, colours)
        axes.set(xlim=(0, 165), xlabel="% of the calls")
        axes.set_xticks(range(0, 101, 25))
        axes.set_title(title, fontsize=10, color=INK, loc="left")
    return figure


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"

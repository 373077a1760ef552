"""The figures of a run's report, in the order of telling, and what their captions say."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.evaluation import figures
from ideal_dispatch.evaluation.incident_map import Way, draw_ways
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.races import WORLDS, Races, races_of
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.pages import ACCENT, INK, MUTED, ORANGE, PURPLE, SMALL_PT, WIDTH_IN, plain_axes
from ideal_dispatch.replay.drive import World

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Progress = Callable[[str], None]

PAPER_REGION, PAPER_OVERLAP, PAPER_OVERLAP_S, PAPER_MEAN_S = 0.56, 0.995, 377.0, 596.0
"""What the paper's introduction reports of its 50 nodes."""

_RECORDED = (ACCENT, ORANGE, PURPLE)
_LONGEST_NAME = 16

CAPTIONS = {
    "issues": "The three issues of the paper's introduction, in its figures and on the calls of "
    "this run whose two nearest depots the router promises within a quarter of each other, in "
    "both worlds. How often no depot beats that of the static region; how often the promised best "
    "arrives later than another, and by how much; how often the router's optimistic-pessimistic "
    "ranges meet, and how many seconds they share.",
    "forecast": "The call in which the depot with the shortest quote loses most to the next. "
    "Above, both drives; below, the total time promised on the way: time elapsed plus the rest.",
    "arrivals": "Left: mean seconds that second ambulances save against the router's one "
    "ambulance, by how many calls get one; higher is better, and of two policies at the same "
    "place the higher buys more with the same ambulances. A circle is a policy at its own "
    "threshold, as set; a diamond has no choice of volume; thin "
    "grey lines are controls, named in the figure of regret below. "
    "Right: calls that no ambulance has reached after so many minutes of driving, for one "
    "ambulance and for always two, on a scale that shows the last few; lower is better. Dashed "
    "lines mark 8 and 12 minutes.",
    "candidate-optimal": "Share of incidents on which a strategy is no later than the best drive "
    "of the paper's candidate set: every depot's adaptive drive and the printed policy's second "
    "path.",
    "pareto": "Regret against the paper's candidate set by dispatch volume, every threshold of "
    "every policy, with a circle for its own; lower and further left is better. Left the mean, "
    "right the mean of the worst 5 %. A policy whose path is not in the set may fall below zero.",
    "regret-cdf": "Share of incidents with at most so much regret; a curve further up and left is "
    "better. Rare regrets beyond the right end are not drawn.",
}

_FIGURES: "dict[str, Callable[[Judged], Figure]]" = {
    "arrivals": figures.arrivals,
    "candidate-optimal": figures.candidate_bars,
    "pareto": figures.pareto,
    "regret-cdf": figures.regret_cdf,
}


def report_figures(
    judged: Judged, network: RoadNetwork | None, progress: Progress
) -> "Iterator[tuple[str, Figure]]":
    """Names and figures; the map among the motivating ones needs the network."""
    progress("issues")
    yield from _issues(judged, network).items()
    for name, make in _FIGURES.items():
        progress(f"figure {name}")
        yield name, make(judged)


def _issues(judged: Judged, network: RoadNetwork | None) -> "dict[str, Figure]":
    """The three issues of the paper's introduction on the calls of the run, where some race."""
    outcomes = judged.outcomes
    found = races_of(outcomes)
    if found is None:
        return {}
    races, numbers = found
    drawn = {"issues": issues([("this run", races)])}
    world = World(outcomes.worlds[-1])
    call = races.most_telling(world)
    if network is not None and call is not None:
        entry = outcomes.entries({numbers[call]})[numbers[call]]
        pair = (("promised first", races.favourite), ("promised second", races.rival))
        ways = [Way.of(who, entry, f"s{depot[call]}", world) for who, depot in pair]
        drawn["forecast"] = draw_ways(network, entry["incident"]["node"], ways)
    return drawn


def issues(named: Sequence[tuple[str, Races]]) -> "Figure":
    """The three issues of the introduction: shares of calls, with the paper's own beside them."""
    figure, (first, second, third) = plain_axes(3, (WIDTH_IN, 1.3 + 0.42 * (1 + 2 * len(named))))
    labels, colours = ["paper"], [MUTED]
    region, reversal, words = [PAPER_REGION], [0.0], ["not given"]
    overlap, ranges = [PAPER_OVERLAP], [f"{100 * PAPER_OVERLAP} %, {PAPER_OVERLAP_S:.0f} s"]
    for (name, races), colour in zip(named, _RECORDED, strict=False):
        for number, world in enumerate(WORLDS):
            labels.append(f"{_short(name)}, {world}")
            region.append(float(races.region_share()[number]))
            lost = races.lost_s()[number]
            reversal.append(float((lost > 0).mean()))
            by = f" by {lost[lost > 0].mean():.0f} s" if (lost > 0).any() else ""
            words.append(f"{100 * reversal[-1]:.0f} %{by}")
        overlap.append(races.overlap_share())
        ranges.append(f"{100 * overlap[-1]:.0f} %, {races.overlap_s().mean():.0f} s")
        colours += [colour, colour]
    rows = np.arange(len(labels), dtype=float)
    shares = [f"{100 * share:.0f} %" for share in region]
    _bars(first, rows, region, shares, colours, "1  The region's depot is the best")
    _bars(second, rows, reversal, words, colours, "2  The promised best depot loses")
    wide = np.concatenate([[0.0], 1.5 + 2 * np.arange(len(named))])
    _bars(third, wide, overlap, ranges, [MUTED, *colours[1::2]], "3  The router's ranges overlap")
    first.set_yticks(rows, labels)
    second.set_yticks(rows, [])
    third.set_yticks(wide, ["paper", *(_short(name) for name, _ in named)])
    for axes in (first, second, third):
        axes.set_ylim(rows[-1] + 0.5, -0.5)
    return figure


def _bars(
    axes: "Axes", places: FloatArray, shares: Sequence[float], texts: Sequence[str],
    colours: Sequence[str], title: str,
) -> None:  # fmt: skip
    heights = np.where(places % 1 > 0, 1.66, 0.66)  # a bar for both worlds is as high as two
    axes.barh(places, 100 * np.array(shares), color=colours, height=heights)
    for place, share, text in zip(places, shares, texts, strict=True):
        axes.annotate(text, (100 * share, place), xytext=(4, 0), textcoords="offset points",
                      va="center", fontsize=SMALL_PT, color=INK)  # fmt: skip
    axes.set(xlim=(0, 165), xlabel="% of the calls")
    axes.set_xticks(range(0, 101, 25))
    axes.tick_params(axis="y", length=0)
    axes.set_title(title, fontsize=10, color=INK, loc="left")


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"

"""The figures of a run's report, in the order of telling, and what their captions say."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ideal_dispatch.evaluation import figures, race_figures
from ideal_dispatch.evaluation.races import example_of, races_of
from ideal_dispatch.evaluation.result_tables import Judged
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.replay.drive import World

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Progress = Callable[[str], None]

CAPTIONS = {
    "issues": "The three issues of the paper's introduction, in its figures and on the calls of "
    "this run whose two nearest depots the router promises within a quarter of each other, in "
    "both worlds. How often no depot beats that of the static region; how often the promised best "
    "arrives later than another, and by how much; how often the router's optimistic-pessimistic "
    "ranges meet, and how many seconds they share.",
    "forecast": "The call in which the promised best depot loses most. Above, both drives; below, "
    "when each was expected along its way: time elapsed plus what the router then promised.",
    "arrivals": "Left: mean seconds that second ambulances save against the router's one "
    "ambulance, by how many calls get one; higher is better, and of two policies at the same "
    "place the higher buys more with the same ambulances. A diamond has no choice of volume; thin "
    "grey lines are controls, named in the figure of regret below. "
    "Right: calls that no ambulance has reached after so many minutes of driving, for one "
    "ambulance and for always two, on a scale that shows the last few; lower is better. Dashed "
    "lines mark 8 and 12 minutes.",
    "candidate-optimal": "Share of incidents on which a strategy is no later than the best drive "
    "of the paper's candidate set: every depot's adaptive drive and the printed policy's second "
    "path.",
    "pareto": "Regret against the paper's candidate set by dispatch volume, every threshold of "
    "every policy; lower and further left is better. Left the mean, right the mean of the worst "
    "5 %. A policy whose path is not in the set may fall below zero.",
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
    drawn = {"issues": race_figures.issues([("this run", races)])}
    how = World(outcomes.worlds[-1])
    shown = None if network is None else example_of(outcomes, network, races, numbers, how)
    if network is not None and shown is not None:
        drawn["forecast"] = race_figures.trace(network, shown)
    return drawn

"""A replay as a report: what second units saved, beside the paper's own tables and figures."""

import json
from collections.abc import Callable, Iterator

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.evaluation import figures
from ideal_dispatch.evaluation.call_maps import call_maps
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import ArrivalSummary, day_t_interval
from ideal_dispatch.evaluation.outcomes import BENCHMARKS, Outcomes
from ideal_dispatch.evaluation.result_tables import (
    arrival_table,
    coverage_table,
    difference_table,
    regret_table,
    second_table,
    wilcoxon_table,
)
from ideal_dispatch.evaluation.strategies import VOLUMES
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.report import Figure, Interval, Report, Section, Table, clock

Progress = Callable[[str], None]

ENOUGH_DAYS = 10
_OFF_TARGET = 0.03
_READING = (
    "All times are seconds of driving, from leaving the depot to the call; with two ambulances the "
    "sooner counts. Extra is second ambulances per call, in per cent. Pn is the value that n % of "
    "the calls do not exceed, interpolated between neighbours; CVaR95 is the mean of the worst "
    "5 %, the last call in it counted by its fraction. A threshold for a volume is the highest "
    "score that gets no second; equal scores are treated alike, whichever side is nearer to the "
    "volume. Intervals are 95 %: Student's of the days' means, or of whole days drawn again where "
    "a bootstrap is named; those of the Wilcoxon tables take calls as independent, as the paper "
    "does."
)


def replay_report(
    judged: Judged,
    network: RoadNetwork | None = None,
    incident: str | None = None,
    progress: Progress = lambda stage: None,
    why: str = "the call you named",
) -> Report:
    """The report of a replay.

    Maps need the run's ``network``; ``incident`` is one to draw beside those that stand out, and
    its map is titled ``why``.
    """
    outcomes, other, curve = judged.outcomes, judged.calibration, judged.curve
    chosen = None if incident is None else outcomes.number(incident)
    progress("tables")
    days, count = sorted(outcomes.days), len(outcomes.policies)
    span = f"{len(days)} days, {days[0]} to {days[-1]}" if len(days) > 1 else f"one day, {days[0]}"
    set_on = "this run itself"
    if other is not None:
        set_on = (
            f"the run {other.name} ({len(other):,} calls on {len(other.days)} days) and used here "
            "unchanged; the volume reached is in the tables"
        )
    first: list[str | Table] = [
        "Thresholds for +25, +50 and +75 % second ambulances were set on " + set_on + ".",
        arrival_table(judged),
    ]
    tests = [wilcoxon_table(judged, own) for own in judged.candidates]
    progress("figures")
    arrival_curves = Figure(
        "arrivals", "Seconds saved by second ambulances, and calls that still wait",
        figures.arrivals(judged),
        "Left: mean seconds that second ambulances save against the router's one ambulance, by how "
        "many calls get one; higher is better, and of two policies at the same place the higher "
        "buys more with the same ambulances. A circle is a policy at its own threshold, as set; a "
        "diamond has no choice of volume; thin grey lines are controls, named in the figure of "
        "regret below. Right: calls that no ambulance has reached after so many minutes of "
        "driving, for one ambulance and for always two, on a scale that shows the last few; lower "
        "is better. Dashed lines mark 8 and 12 minutes.",
    )  # fmt: skip
    paper = [
        Figure(
            "candidate-optimal", "Incidents on which a strategy is the best candidate",
            figures.candidate_bars(judged),
            "Share of incidents on which a strategy is no later than the best drive of the paper's "
            "candidate set: every depot's adaptive drive and the printed policy's second path. "
            '"Least to beat baselines" is a policy at the threshold that sends the fewest second '
            "units with which it exceeds every baseline; its volume is in brackets. It is found "
            "on these very calls, so it is a little too good.",
        ),
        Figure(
            "pareto", "Regret by dispatch volume", figures.pareto(judged),
            "Against the paper's candidate set, every threshold of every policy, with a circle for "
            "its own; lower and further left is better. Left the mean, right the mean of the worst "
            "5 %. A policy whose path is not in the set may fall below zero.",
        ),
        Figure(
            "regret-cdf", "Share of incidents with at most so much regret",
            figures.regret_cdf(judged),
            "A curve further up and left is better. Rare regrets beyond the right end are not "
            "drawn.",
        ),
    ]  # fmt: skip
    maps: list[str | Figure] = ["No maps: the run's road network is missing; add --network."]
    if network is not None:
        progress("maps")
        maps = [
            f"Calls as {judged.shown} saw them: the largest savings and losses at +25 %, and calls "
            "of usual length. The first ambulance is solid, the second dashed, drawn whether it "
            "was sent or not; where both drive one street its dashes lie on the solid line. Below "
            "the map, what the router promised on the way: time elapsed plus time still to go.",
            *call_maps(judged, network, chosen, why),
        ]
    progress("page")
    return Report(
        f"Replay: {outcomes.title or outcomes.name}",
        f"{len(outcomes):,} calls on {span}, {count} {'policies' if count > 1 else 'policy'}, all "
        f"driven through the same {outcomes.world.words}",
        report_numbers(judged),
        caveats(judged),
        [
            Section.of("When the first ambulance arrives", *first, arrival_curves),
            Section.of("Thresholds for the coverage target", coverage_table(judged)),
            Section.of("Against interval-selective at the same volume", difference_table(judged)),
            Section.of("As in the paper: regret against its candidate set", regret_table(judged),
                       *tests, *paper),
            Section.of(
                "Regret against all drives and against hindsight",
                *(regret_table(judged, one) for one in BENCHMARKS[1:] if one in outcomes.best_s),
            ),
            Section.of("Where the second ambulance drives", second_table(judged)),
            Section.of(
                "Controls and variants",
                "How much any second ambulance would have brought (chance, quotes alone, other "
                "paths), and other forms of the policies above.",
                arrival_table(judged, judged.others),
            ) if judged.others else Section.of(""),
            Section.of("Calls on the map", *maps),
            Section.of(
                "How to read the numbers", _READING,
                None if curve is None else f"Survival is {curve.name}'s curve of the drive plus "
                f"{curve.before_drive_s:.0f} s before it, without bystanders: read differences, "
                "not levels.",
            ),
        ],
    )  # fmt: skip


# --- big numbers --------------------------------------------------------------------


def report_numbers(judged: Judged) -> list[tuple[str, str]]:
    """The router alone, and what ours saves against it and against its rival."""
    outcomes, share = judged.outcomes, VOLUMES[0]
    own, reference = judged.own, outcomes.roles.get("interval")
    numbers = []
    if "router" in outcomes.roles:
        alone_s = outcomes.policy(outcomes.roles["router"]).primary_s
        summary = ArrivalSummary.of(alone_s)
        numbers += [
            ("mean drive of the router's one ambulance", f"{clock(summary.mean_s)} min"),
            ("of calls it reaches within 8 min of driving", f"{100 * summary.within_8_min:.1f} %"),
        ]
        if own is not None:
            ours = judged.at(own, share)
            what = f"{own}, with a second one on {100 * ours.extra:.0f} % of calls"
            saved_s = alone_s - ours.arrival_s
            numbers.append(_gain(judged, saved_s, f"than that one ambulance: {what}"))
    if own is not None and reference is not None and own != reference:
        saved_s = judged.saved_s(own, reference, share)
        against = f"than {reference} with about as many ambulances: {own}"
        numbers.append(_gain(judged, saved_s, against))
    return numbers


def _gain(judged: Judged, saved_s: FloatArray, what: str) -> tuple[str, str]:
    """Seconds sooner or later; the label says than what, and how sure that is."""
    interval = day_t_interval(saved_s, judged.outcomes.day)
    known = how_sure(interval)
    label = f"{what}; mean of all calls{f', {known}' if known else ''}"
    return label, _sooner(interval.mean)


def how_sure(sooner_s: Interval) -> str:
    """The interval of a mean of seconds sooner, in words; empty where one day gives none."""
    if np.isnan(sooner_s.low):
        return ""
    shown = ": no difference is shown" if sooner_s.low <= 0.0 <= sooner_s.high else ""
    return f"95 % interval {_sooner(sooner_s.low)} to {_sooner(sooner_s.high)}{shown}"


def _sooner(seconds: float) -> str:
    return f"{abs(seconds):.2f} s {'later' if seconds < 0.0 else 'sooner'}"


# --- what a reader must know ----------------------------------------------------------


def caveats(judged: Judged) -> list[str]:
    """A line for each reason to be careful; empty where there is none."""
    outcomes, lines = judged.outcomes, []
    manifest = outcomes.manifest
    policies = json.dumps(manifest.get("policies", {}))
    if f'"{ResponseModel.published().source}"' in policies or '"responses": null' in policies:
        lines.append(
            "Response times vary as published: no trips of the training days were fitted, so "
            "expected gains are those of another city's fire department."
        )
    if judged.calibration is None:
        lines.append(
            "Thresholds for a volume were set on the very calls they are judged on, so volumes "
            "are met exactly and results are a little too good. A run of other days, given with "
            "--calibration, makes it fair."
        )
    else:
        lines += _calibration(judged, judged.calibration)
    if len(outcomes.days) < ENOUGH_DAYS:
        lines.append(
            f"{len(outcomes.days)} {'days are' if len(outcomes.days) > 1 else 'day is'} few: at "
            f"least {ENOUGH_DAYS} are needed before a difference may be claimed."
        )
    if "paper" not in outcomes.roles:
        lines.append(
            "The paper's printed policy is not in this run: its candidate set is every depot's "
            "adaptive drive alone."
        )
    if "interval" not in outcomes.roles:
        lines.append("No interval-selective policy is in this run to compare with.")
    if outcomes.nearest_region and "region" in outcomes.roles:
        lines.append(
            f"The agency's territories are unknown: {outcomes.roles['region']} sends the depot "
            "that is nearest at free flow. [city] territories of the experiment takes them."
        )
    if manifest.get("replayed", 0) is None:
        planned = manifest["incidents"]["count"]
        lines.append(f"The run is not finished: of {planned} calls, {len(outcomes)} are in it.")
    if road := manifest.get("incidents", {}).get("units_on_road"):
        lines.append(
            f"{road:,} units were free on the road, each at its own call: origins beside the "
            "depots for every policy but the territories."
        )
    if dropped := manifest.get("dropped"):
        lines.append(
            f"{len(dropped)} of {len(outcomes) + len(dropped)} incidents could not be replayed "
            "and are in no number here; the run's manifest says why."
        )
    return lines


def _calibration(judged: Judged, calibration: Outcomes) -> Iterator[str]:
    """What is wrong with thresholds of other days."""
    shared = sorted(set(judged.outcomes.days) & set(calibration.days))
    if shared:
        yield (
            f"The calibration run shares {len(shared)} days with this one, {shared[0]} among "
            "them: thresholds have seen what they are judged on."
        )
    reached = [(judged.at(name, share), share) for name in judged.rivals() for share in VOLUMES]
    off = {row: abs(row.extra - asked) for row, asked in reached}
    off = {row: by for row, by in off.items() if by > _OFF_TARGET}
    if off:
        worst = max(off, key=off.__getitem__)
        yield (
            f"{len(off)} {'strategies send' if len(off) > 1 else 'strategy sends'} a second on "
            f"more or fewer calls than asked for, by more than {100 * _OFF_TARGET:.0f} points; "
            f"furthest off is {worst.label}, with {100 * worst.extra:+.1f} %. Compare at matched "
            "volume, in the table of seconds saved (saved.csv), or in the figures."
        )

"""The report of a run: tables, figures, and one page that tells what they mean."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.policy_tables import KINDS
from ideal_dispatch.evaluation.call_maps import call_maps, clock, maps_in_words
from ideal_dispatch.evaluation.figures import CAPTIONS, Progress, report_figures
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import ArrivalSummary, Interval, day_t_interval
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.result_tables import (
    WORLD_WORDS,
    arrival_table,
    benchmark_table,
    difference_table,
    gap_table,
    regret_table,
    second_table,
    wilcoxon_table,
)
from ideal_dispatch.evaluation.roles import first_of
from ideal_dispatch.evaluation.strategies import VOLUMES
from ideal_dispatch.evaluation.table import Table, file_name
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.drawing import save_figure
from ideal_dispatch.pages import Page

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ENOUGH_DAYS = 10
_OFF_TARGET = 0.03


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: groups of tables, each with its notes below, then figures."""

    heading: str
    groups: Sequence[Sequence[Table]]
    figures: Sequence[str] = ()
    intro: str = ""


def write_report(
    judged: Judged,
    folder: str | os.PathLike[str],
    network: RoadNetwork | None = None,
    incident: str | None = None,
    progress: Progress = lambda stage: None,
    why: str = "the call you named",
) -> list[Path]:
    """Write tables, figures and ``report.html`` into a folder, made where it is not there.

    Maps need the run's ``network``; ``incident`` is one to draw beside those
    that stand out, and its caption says ``why``. Gives the files.
    """
    chosen = None if incident is None else judged.outcomes.number(incident)
    where = make_folders(folder)
    made: list[Path] = []
    progress("tables")
    parts = sections(judged)
    for table in (one for part in parts for group in part.groups for one in group):
        made += table.save(where / "tables")
    drawn = {}
    for name, figure in report_figures(judged, network, progress):
        drawn[name] = figure
        made += save_drawn(figure, where / "figures" / name)
    page = _page(judged, parts, drawn)
    page.heading("Calls on the map")
    page.text(maps_in_words(judged))
    if network is None:
        page.text("No maps: the run's road network was not at hand. Give it with --network.")
    else:
        progress("maps")
        for name, figure, caption in call_maps(judged, network, chosen, why):
            page.figure(figure, caption)
            stem = where / "figures" / f"incident-{file_name(name)}"
            made += save_drawn(figure, stem, (".png",))
    _conventions(page, judged)
    page.save(where / "report.html")
    return [*made, where / "report.html"]


def sections(judged: Judged) -> list[Section]:
    """What the page tells, in its order, with all tables of the run."""

    def each_world(make: Callable[..., Table | None], *more: Any) -> list[Table]:
        made = [make(judged, world, *more) for world in judged.outcomes.worlds]
        return [table for table in made if table is not None and table.rows]

    tests = [each_world(wilcoxon_table, own) for own in judged.candidates]
    return [
        Section("Why one ambulance may not be enough", [], ["issues", "forecast"]),
        Section("When the first ambulance arrives", [each_world(arrival_table)], ["arrivals"]),
        Section("Against interval-selective at the same volume", [each_world(difference_table)]),
        Section(
            "As in the paper: regret against its candidate set",
            [each_world(regret_table), *tests],
            ["candidate-optimal", "pareto", "regret-cdf"],
        ),
        Section("Regret against all drives and against hindsight", [each_world(benchmark_table)]),
        Section("Where the second ambulance drives", [each_world(second_table)]),
        Section("What a better gap than Algorithm 2's changes", [each_world(gap_table)]),
        Section(
            "Controls and variants",
            [each_world(arrival_table, judged.others)],
            intro="How much any second ambulance would have brought (chance, quotes alone, other "
            "paths), and other forms of the policies above.",
        ),
    ]


def make_folders(folder: str | os.PathLike[str]) -> Path:
    """A report's folder with its own folders for tables and figures."""
    for part in ("tables", "figures"):
        (Path(folder) / part).mkdir(parents=True, exist_ok=True)
    return Path(folder)


def save_drawn(
    figure: "Figure", stem: Path, suffixes: Sequence[str] = (".png", ".pdf")
) -> list[Path]:
    """Write a figure in several formats; gives the files."""
    made = [stem.with_name(f"{stem.name}{suffix}") for suffix in suffixes]
    for path in made:
        save_figure(figure, path)
    return made


# --- the page -----------------------------------------------------------------------


def _page(judged: Judged, parts: Sequence[Section], drawn: "dict[str, Figure]") -> Page:
    outcomes = judged.outcomes
    page = Page(f"Replay report: {outcomes.title or outcomes.name}", _subtitle(outcomes))
    facts = report_facts(judged)
    if facts:
        page.facts(facts)
    page.text(_calibration_in_words(judged))
    for line in caveats(judged):
        page.warning(line)
    for part in parts:
        shown = [name for name in part.figures if name in drawn]
        if not shown and not any(part.groups):
            continue
        page.heading(part.heading)
        if part.intro:
            page.text(part.intro)
        for group in part.groups:
            for table in group:
                table.show(page)
            for note in dict.fromkeys(table.note for table in group if table.note):
                page.text(note)
        for name in shown:
            page.figure(drawn[name], CAPTIONS[name])
    return page


def _subtitle(outcomes: Outcomes) -> str:
    days = sorted(outcomes.days)
    between = f"{days[0]} to {days[-1]}" if len(days) > 1 else days[0]
    worlds = " and ".join(WORLD_WORDS[world] for world in outcomes.worlds)
    return (
        f"{len(outcomes):,} calls on {len(days)} days ({between}), {len(outcomes.policies)} "
        f"policies, all driven through the same traffic in {worlds}."
    )


def report_facts(judged: Judged) -> list[tuple[str, str]]:
    """Big numbers: the router alone, and what ours saves against it and against its rival."""
    outcomes, share = judged.outcomes, VOLUMES[0]
    world, own, reference = outcomes.worlds[-1], judged.own, outcomes.roles.get("interval")
    facts = []
    if "router" in outcomes.roles:
        alone = outcomes.policy(outcomes.roles["router"]).drives[world].primary_s
        summary = ArrivalSummary.of(alone)
        mean = f"{clock(summary.mean_s)} min"
        facts += [
            (f"mean drive of the router's one ambulance ({world} traffic)", mean),
            ("of calls it reaches within 8 min of driving", f"{100 * summary.within_8_min:.1f} %"),
        ]
        if own is not None:
            ours = judged.at(own, share)
            saved = alone - ours.arrival_s[world]
            what = f"{own}, with a second one on {100 * ours.extra:.0f} % of calls"
            facts.append(_gain(judged, saved, f"than that one ambulance: {what}"))
    if own is not None and reference is not None and own != reference:
        saved = judged.saved_s(own, reference, share, world)
        against = f"than {reference} with about as many ambulances: {own}"
        facts.append(_gain(judged, saved, against))
    return facts


def _gain(judged: Judged, saved: FloatArray, what: str) -> tuple[str, str]:
    """Seconds sooner or later as a fact; its label says than what, and how sure that is."""
    interval = day_t_interval(saved, judged.outcomes.day)
    label = f"{what}; mean of all calls"
    if known := how_sure(interval):
        label += f", {known}"
    return label.replace(" %", "\u00a0%"), _sooner(interval.mean)  # % never begins a line


def how_sure(sooner_s: Interval) -> str:
    """The interval of a mean of seconds sooner, in words; nothing where one day gives none."""
    if np.isnan(sooner_s.low):
        return ""
    shown = ": no difference is shown" if sooner_s.low <= 0.0 <= sooner_s.high else ""
    return f"95 % interval {_sooner(sooner_s.low)} to {_sooner(sooner_s.high)}{shown}"


def _sooner(seconds: float) -> str:
    return f"{abs(seconds):.2f} s {'later' if seconds < 0.0 else 'sooner'}"


def _calibration_in_words(judged: Judged) -> str:
    if judged.calibration is None:
        return "Thresholds for +25, +50 and +75 % second ambulances were set on this run itself."
    other = judged.calibration
    return (
        "Thresholds for +25, +50 and +75 % second ambulances were set on the run "
        f"{other.name} ({len(other):,} calls on {len(other.days)} days) and used here unchanged; "
        "the volume reached is in the tables."
    )


def _conventions(page: Page, judged: Judged) -> None:
    page.heading("How to read the numbers")
    page.text(
        "All times are seconds of driving, from leaving the depot to the call; with two ambulances "
        "the sooner counts. Extra is second ambulances per call, in per cent. Pn is the value that "
        "n % of the calls do not exceed, interpolated between neighbours; CVaR95 is the mean of "
        "the worst 5 %, the last call in it counted by its fraction. A threshold for a volume is "
        "the highest score that gets no second; equal scores are treated alike, whichever side is "
        "nearer to the volume. Intervals are 95 %: Student's of the days' means, or of whole days "
        f"drawn again where a bootstrap is named (seed {judged.seed}); those of the Wilcoxon "
        "tables take calls as independent, as the paper does."
    )
    if judged.curve is not None:
        curve = judged.curve
        page.text(
            f"Survival is {curve.name}'s curve of the drive plus {curve.before_drive_s:.0f} s "
            "before it, without bystanders: read differences, not levels."
        )


# --- what a reader must know ----------------------------------------------------------


def caveats(judged: Judged) -> list[str]:
    """A line for each reason to be careful; empty where there is none."""
    outcomes, lines = judged.outcomes, []
    if judged.calibration is None:
        lines.append(
            "Thresholds for a volume were set on the very calls they are judged on, so volumes "
            "are met exactly and results are a little too good. A run of other days, given with "
            "--calibration, makes it fair."
        )
    else:
        shared = sorted(set(outcomes.days) & set(judged.calibration.days))
        if shared:
            lines.append(
                f"The calibration run shares {len(shared)} days with this one, {shared[0]} among "
                "them: thresholds have seen what they are judged on."
            )
        reached = [(judged.at(name, v), v) for name in judged.rivals() for v in VOLUMES]
        off = {row: abs(row.extra - asked) for row, asked in reached}
        off = {row: by for row, by in off.items() if by > _OFF_TARGET}
        if off:
            worst = max(off, key=off.__getitem__)
            lines.append(
                f"{len(off)} {'strategies send' if len(off) > 1 else 'strategy sends'} a second "
                "on more or fewer calls than asked for, by more than "
                f"{100 * _OFF_TARGET:.0f} points; furthest off is {worst.label}, with "
                f"{100 * worst.extra:+.1f} %. Compare at matched volume, in the table of seconds "
                "saved (saved-*.csv), or in the figures."
            )
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
    dropped = outcomes.manifest.get("dropped")
    if dropped:
        lines.append(
            f"{len(dropped)} of {len(outcomes) + len(dropped)} incidents could not be replayed "
            "and are in no number here; the run's manifest says why."
        )
    return [*lines, *_second_players(outcomes)]


def _second_players(outcomes: Outcomes) -> Iterator[str]:
    """Parts that several policies claim, unless they are all forms of a policy of ours."""
    known, ours = outcomes.manifest.get("policies", {}), {one.__name__ for one in KINDS.values()}
    for role, player in outcomes.roles.items():
        claimed = [name for name, claim in outcomes.claims.items() if claim == role]
        others = ", ".join(name for name in claimed if name != player)
        if others and {first_of(known.get(name)).get("type") for name in claimed} - ours:
            yield (
                f'The role "{role}" is played by {player}. Among the controls, with the same role: '
                f"{others}. A policy without a role is shown beside ours."
            )

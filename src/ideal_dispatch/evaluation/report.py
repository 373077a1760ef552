"""The report of a run: tables, figures, and one page that tells what they mean."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.evaluation.caveats import caveats
from ideal_dispatch.evaluation.difference_tables import difference_table
from ideal_dispatch.evaluation.gap_tables import gap_table
from ideal_dispatch.evaluation.incident_map import clock, incident_map, words
from ideal_dispatch.evaluation.metrics import ArrivalSummary
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.report_figures import CAPTIONS, Progress, report_figures
from ideal_dispatch.evaluation.result_tables import (
    WORLD_WORDS,
    Judged,
    arrival_table,
    benchmark_table,
    candidates,
    regret_table,
    second_table,
    wilcoxon_table,
)
from ideal_dispatch.evaluation.significance import day_t_interval
from ideal_dispatch.evaluation.standing_out import standing_out
from ideal_dispatch.evaluation.strategies import VOLUMES
from ideal_dispatch.evaluation.tables import Table, file_name
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.drawing import save_figure
from ideal_dispatch.pages import Page

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_report(
    judged: Judged,
    folder: str | os.PathLike[str],
    network: RoadNetwork | None = None,
    incident: str | None = None,
    progress: Progress = lambda stage: None,
) -> list[Path]:
    """Write tables, figures and ``report.html`` into a folder, made where it is not there.

    Maps need the run's ``network``; ``incident`` is one to draw beside those
    that stand out. Gives the files.
    """
    where = Path(folder)
    chosen = None if incident is None else judged.outcomes.number(incident)
    for part in ("tables", "figures"):
        (where / part).mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    progress("tables")
    for table in tables(judged):
        made += [where / "tables" / name for name in table.save(where / "tables")]
    drawn = {}
    for name, figure in report_figures(judged, network, progress):
        drawn[name] = figure
        made += _save(figure, where / "figures" / name)
    page = _page(judged, drawn)
    page.heading("Calls on the map")
    page.text(_maps_in_words(judged))
    if network is None:
        page.text("No maps: the run's road network was not at hand. Give it with --network.")
    else:
        progress("maps")
        for name, figure, caption in _maps(judged, network, chosen):
            page.figure(figure, caption)
            made += _save(figure, where / "figures" / f"incident-{file_name(name)}", (".png",))
    _conventions(page, judged)
    page.save(where / "report.html")
    return [*made, where / "report.html"]


def tables(judged: Judged) -> list[Table]:
    """All tables of a run."""
    made: list[Table | None] = []
    for world in judged.outcomes.worlds:
        made += [arrival_table(judged, world), difference_table(judged, world)]
        made += [regret_table(judged, world)]
        made += [wilcoxon_table(judged, own, world) for own in candidates(judged.outcomes)]
        made += [benchmark_table(judged, world), second_table(judged, world)]
        made += [gap_table(judged, world)]
        if judged.others:
            made.append(arrival_table(judged, world, judged.others))
    return [table for table in made if table is not None and table.rows]


# --- the page -----------------------------------------------------------------------


def _page(judged: Judged, drawn: "dict[str, Figure]") -> Page:
    outcomes = judged.outcomes
    page = Page(f"Replay report: {outcomes.title or outcomes.name}", _subtitle(outcomes))
    facts = report_facts(judged)
    if facts:
        page.facts(facts)
    page.text(_calibration_in_words(judged))
    for line in caveats(judged):
        page.warning(line)

    def figure(name: str) -> None:
        page.figure(drawn[name], CAPTIONS[name])

    def each_world(make: Callable[[str], Table | None]) -> None:
        made = [make(world) for world in outcomes.worlds]
        shown = [table for table in made if table is not None and table.rows]
        for table in shown:
            table.show(page)
        for note in dict.fromkeys(table.note for table in shown if table.note):
            page.text(note)

    if "issues" in drawn:
        page.heading("Why one ambulance may not be enough")
        figure("issues")
        if "forecast" in drawn:
            figure("forecast")
    page.heading("When the first ambulance arrives")
    each_world(lambda world: arrival_table(judged, world))
    figure("arrivals")
    if "interval" in outcomes.roles:
        page.heading("Against interval-selective at the same volume")
        each_world(lambda world: difference_table(judged, world))
    page.heading("As in the paper: regret against its candidate set")
    each_world(lambda world: regret_table(judged, world))
    for own in candidates(outcomes):
        each_world(lambda world, own=own: wilcoxon_table(judged, own, world))  # type: ignore[misc]
    for name in ("candidate-optimal", "pareto", "regret-cdf"):
        figure(name)
    page.heading("Regret against all drives and against hindsight")
    each_world(lambda world: benchmark_table(judged, world))
    page.heading("Where the second ambulance drives")
    each_world(lambda world: second_table(judged, world))
    if any(gap_table(judged, world) for world in outcomes.worlds):
        page.heading("What a better gap than Algorithm 2's changes")
        each_world(lambda world: gap_table(judged, world))
    if judged.others:
        page.heading("Controls and variants")
        page.text(
            "How much any second ambulance would have brought (chance, quotes alone, other paths), "
            "and other forms of the policies above."
        )
        each_world(lambda world: arrival_table(judged, world, judged.others))
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
        saved = (
            judged.at(reference, share).arrival_s[world] - judged.at(own, share).arrival_s[world]
        )
        against = f"than {reference} with about as many ambulances: {own}"
        facts.append(_gain(judged, saved, against))
    return facts


def _gain(judged: Judged, saved: FloatArray, what: str) -> tuple[str, str]:
    """Seconds sooner or later as a fact; its label says than what, and how sure that is."""
    interval = day_t_interval(saved, judged.outcomes.day)
    sure = "mean of all calls"
    if not np.isnan(interval.low):
        sure += f", 95 % interval {_sooner(interval.low)} to {_sooner(interval.high)}"
        sure += ": no difference is shown" if interval.low <= 0.0 <= interval.high else ""
    label = f"{what}; {sure}".replace(" %", "\u00a0%")  # which never begins a line
    return label, _sooner(interval.mean)


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


# --- maps ---------------------------------------------------------------------------


def _shown(judged: Judged) -> str:
    """The policy whose ambulances are drawn."""
    return judged.own or next(iter(judged.outcomes.policies))


def _maps_in_words(judged: Judged) -> str:
    world, share = judged.outcomes.worlds[-1], f"+{100 * VOLUMES[0]:.0f} %"
    return (
        f"Calls as {_shown(judged)} saw them in {world} traffic: the largest savings and losses at "
        f"{share}, and calls of usual length. The first ambulance is solid, the second dashed, "
        "drawn whether it was sent or not; where both drive one street its dashes lie on the "
        "solid line. Below the map, what the router promised on the way: time elapsed plus time "
        "still to go."
    )


def _maps(
    judged: Judged, network: RoadNetwork, chosen: int | None
) -> "Iterator[tuple[str, Figure, str]]":
    outcomes = judged.outcomes
    policy, world = _shown(judged), outcomes.worlds[-1]
    own = judged.at(policy, VOLUMES[0])
    groups = standing_out(judged, policy, world)
    if chosen is not None:
        others = {why: [n for n in numbers if n != chosen] for why, numbers in groups.items()}
        groups = {"asked for": [chosen], **others}
    entries = outcomes.entries({number for numbers in groups.values() for number in numbers})
    for reason, numbers in groups.items():
        for number in numbers:
            entry = entries[number]
            figure = incident_map(network, entry, policy, world)
            caption = f"{reason.capitalize()}. {words(entry, policy, world)}"
            if entry["decisions"][policy]["second"] is not None:
                goes = "it was sent" if own.sent[number] else "it was not sent"
                caption += (
                    f" {policy} gave the second {entry['decisions'][policy]['score_s']:.1f} s; at "
                    f"{own.form} one goes above {own.threshold_s:.1f} s, so {goes}."
                )
            yield outcomes.incidents[number], figure, caption


# --- parts --------------------------------------------------------------------------


def _save(figure: "Figure", stem: Path, suffixes: Sequence[str] = (".png", ".pdf")) -> list[Path]:
    made = [stem.with_name(f"{stem.name}{suffix}") for suffix in suffixes]
    for path in made:
        save_figure(figure, path)
    return made

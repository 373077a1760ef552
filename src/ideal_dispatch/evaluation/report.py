"""The report of a run: tables, figures, and one page that tells what they mean."""

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.policy_tables import KINDS
from ideal_dispatch.evaluation.call_maps import call_maps, clock
from ideal_dispatch.evaluation.figures import Progress, report_figures
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import ArrivalSummary, Interval, day_t_interval
from ideal_dispatch.evaluation.outcomes import Outcomes
from ideal_dispatch.evaluation.result_tables import (
    WORLD_WORDS,
    arrival_table,
    beating_table,
    benchmark_table,
    coverage_table,
    difference_table,
    gap_table,
    radius_table,
    regret_table,
    second_table,
    wilcoxon_table,
)
from ideal_dispatch.evaluation.roles import first_of
from ideal_dispatch.evaluation.strategies import VOLUMES
from ideal_dispatch.evaluation.table import Table, file_name
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.pages import figure_url, save_figure, save_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ENOUGH_DAYS = 10
_OFF_TARGET = 0.03


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
    found = tables(judged)
    for table in chain.from_iterable(found.values()):
        made += table.save(where / "tables")
    drawn = {}
    for name, figure in report_figures(judged, network, progress):
        made += save_drawn(figure, where / "figures" / name)
        drawn[name] = figure_url(figure)
    maps = None
    if network is not None:
        progress("maps")
        maps = []
        for name, figure, caption in call_maps(judged, network, chosen, why):
            maps.append((figure_url(figure), caption))
            stem = where / "figures" / f"incident-{file_name(name)}"
            made += save_drawn(figure, stem, (".png",))
    save_page(
        where / "report.html",
        "replay_report.html",
        judged=judged,
        worlds=[WORLD_WORDS[world] for world in judged.outcomes.worlds],
        big_numbers=report_facts(judged),
        caveats=caveats(judged),
        tables=found,
        drawn={"issues": "", "forecast": "", "radii": "", **drawn},
        maps=maps,
    )
    return [*made, where / "report.html"]


def tables(judged: Judged) -> dict[str, list[Table]]:
    """All tables of the run in the order of the page, those of both worlds under one name."""

    def each_world(make: Callable[..., Table | None], *more: Any) -> list[Table]:
        made = [make(judged, world, *more) for world in judged.outcomes.worlds]
        return [table for table in made if table is not None and table.rows]

    tests = [each_world(wilcoxon_table, own) for own in judged.candidates]
    return {
        "arrival": each_world(arrival_table),
        "coverage": each_world(coverage_table),
        "saved": each_world(difference_table),
        "regret": each_world(regret_table),
        "beating": each_world(beating_table),
        "wilcoxon": list(chain.from_iterable(tests)),
        "benchmarks": each_world(benchmark_table),
        "second": each_world(second_table),
        "radius": each_world(radius_table),
        "gap": each_world(gap_table),
        "controls": each_world(arrival_table, judged.others),
    }


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


# --- big numbers --------------------------------------------------------------------


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
    if outcomes.nearest_region and "region" in outcomes.roles:
        lines.append(
            f"Nobody told the agency's territories: {outcomes.roles['region']} sends the depot "
            "that is nearest at free flow. [city] territories of the experiment takes them."
        )
    if outcomes.manifest.get("replayed", 0) is None:
        planned = outcomes.manifest["incidents"]["count"]
        lines.append(f"The run is not finished: of {planned} calls, {len(outcomes)} are in it.")
    if road := outcomes.manifest.get("incidents", {}).get("units_on_road"):
        lines.append(
            f"{road:,} units were free on the road, each at its own call: origins beside the "
            "depots for every policy but the territories."
        )
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

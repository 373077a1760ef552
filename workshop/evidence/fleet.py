"""Whole fleets over years: docs/evidence/fleet.md, and two parts of docs/fleet.md.

``python -m workshop.evidence.fleet OUT ...`` reads folders of ``ideal fleet simulate``, finished
or not; `make fleet-evidence` simulates first. Nothing is left out: fleet.csv has every run.
The tables are counted anew from the years that are done.
"""

import argparse
from collections.abc import Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING

from ideal_dispatch import __version__
from ideal_dispatch.evaluation.fleet_report import (
    LATER,
    RECALL_WORDS,
    SURVIVORS,
    caveats,
    draw_lines,
    harm_table,
    later_told,
    legend_above,
    one_more_table,
    survival,
    wait,
    years_told,
)
from ideal_dispatch.evaluation.fleet_runs import (
    ALWAYS,
    PRICED,
    FleetRun,
    FleetRuns,
    Setting,
)
from ideal_dispatch.files import write_file
from ideal_dispatch.pages import INK, MUTED, plain_axes
from ideal_dispatch.report import Cell, Column, Table
from workshop.evidence.fleet_findings import BOTH, by_entitled, findings, in_short, survivors
from workshop.evidence.fleet_years import counted
from workshop.evidence.pages import FOLDER, markdown, write_csv
from workshop.page_parts import replace_part
from workshop.pictures import save_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEYS = (
    "city", "units", "load", "entitled", "policy", "recall", "years", "utilisation", "second_share",
    "deaths_per_1000", "deaths_difference", "paired_se", "mean_first_s", "p90_first_s",
    "late_share", "others_mean_s", "others_se_s", "second_unit_minutes", "stood_down_share",
    "stood_down_minutes", "queued_share", "unit_hours",
)  # fmt: skip

PROTOCOL = (
    "**Question.** Two ambulances are sent to a call and the one that is not first is stood down. "
    "What does that cost the calls that get only one, and does it pay for those that get two?",
    "**Protocol.** Each city's calls are scaled until its units are busy for 30, 50 or 70 % of "
    "their time without any second. Every rule then answers the same calls with the same luck: "
    "random numbers belong to a call and to the role of a unit. A second is considered for "
    "cardiac arrests alone (3 % of all calls), or for 30 % of all calls, among which the "
    "dispatcher cannot tell the arrests. The unit that is not first is never stood down, or when "
    "the first arrives, or as soon as what it may still save is below its price.",
    "**Words.** *More survivors*: of 1,000 patients with a cardiac arrest, against no seconds at "
    "all, expected by Waalewijn's curve of the time until the first unit arrives; ± is the "
    "standard error of that difference, paired by year; where there are fewer than ten years, that "
    "of the arrests within the years if it is larger. *Others*: the calls that are not "
    "entitled to a second, and by how many seconds they wait longer in the mean, ± the standard "
    "error over years, paired by year. A difference is called sure beyond two standard errors; "
    "with fewer than five years nothing is called sure, and the others have no ±. *fixed C*: a "
    "second goes where it saves more than a fixed chance of death; *priced C*: where it saves "
    "more than its absence costs the others at that moment.",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", help="folders of `ideal fleet simulate`")
    parser.add_argument(
        "--turnout", type=Path, help="folder of such a run with street_start = false"
    )
    parser.add_argument(
        "--one-more", type=Path, help="folder of such a run of two fleet sizes, one unit apart"
    )
    parser.add_argument("--docs", type=Path, default=FOLDER, help="folder of the page")
    given = parser.parse_args()
    runs = reduce(add, map(counted, given.runs))
    turnout, more = (
        None if folder is None else counted(folder)
        for folder in (given.turnout, given.one_more)
    )  # fmt: skip
    write_page(runs, given.docs, turnout, more)
    front = given.docs.parent / "fleet.md"
    table = auditor(runs)
    replace_part(front, "auditor", f"{markdown(table)}\n\n{table.note}")
    replace_part(front, "short", "\n".join(f"- {line}" for line in in_short(runs)))


def write_page(
    runs: FleetRuns,
    folder: Path,
    turnout: FleetRuns | None = None,
    fleets: FleetRuns | None = None,
) -> None:
    """The page, its figures beside the other images, and every run as CSV.

    ``turnout`` are runs without the head start on the street, ``fleets`` of two fleet sizes.
    """
    drawn = {
        f"fleet_{100 * groups[0][0].entitled:.0f}": over_load(groups)
        for groups in by_entitled(runs)
    }
    save_figures(drawn, folder.parent / "images")
    blocks = [
        "# Whole fleets: what do second ambulances cost the others?",
        f"*Made by `make fleet-evidence`, ideal-dispatch {__version__}: {about(runs)}.*",
        *PROTOCOL,
        "## What came out",
        "\n".join(f"- {line}" for line in findings(runs)),
        "## Be careful",
        "\n".join(f"- {line}" for line in caveats(runs)) or "No warning applies to these runs.",
    ]
    for groups, image in zip(by_entitled(runs), drawn, strict=True):
        share = f"{100 * groups[0][0].entitled:.0f} %"
        blocks += [
            f"## {share} of the calls are entitled to a second",
            f"![More survivors, and how much longer the others wait, over load; {share} of the "
            f"calls entitled](../images/{image}.png)",
            *(markdown(matrix(group)) for group in groups),
        ]
    harm = harm_table(runs)
    blocks += [
        "In each cell: more survivors ± standard error; by how many seconds the others wait "
        "longer ± standard error; in brackets, the share of entitled calls that get a second.",
        "## Where it starts to harm",
        f"{markdown(harm)}\n\n{harm.note}",
        *([] if fleets is None else _one_more(fleets)),
        *([] if turnout is None else _without_head_start(runs, turnout)),
        "## What was assumed",
        "\n".join(f"- {note}" for note in runs.notes) or "The cities' own settings.",
        "Every run, with mean, P90 and late share of the first arrivals: [fleet.csv](fleet.csv).",
    ]
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / "fleet.md", "\n\n".join(blocks) + "\n")
    rows = (
        [_plain(getattr(run, key)) for key in KEYS] for one in runs.settings for run in one.runs
    )
    write_csv(folder / "fleet.csv", KEYS, rows)


def about(runs: FleetRuns) -> str:
    """Cities, fleets and years in a line."""
    fleets: dict[str, list[Setting]] = {}
    for one in runs.settings:
        fleets.setdefault(f"{one.city} with {one.units} units", []).append(one)
    return "; ".join(f"{fleet}, {years_told(some)} of each rule" for fleet, some in fleets.items())


# --- tables and figures -----------------------------------------------------------------


def auditor(runs: FleetRuns) -> Table:
    """Two to every entitled call, with and without standing the loser down: the front table."""
    rows: list[tuple[Cell, ...]] = []
    for groups in by_entitled(runs):
        for one in (setting for group in groups for setting in group):
            none, kept = (one.find(ALWAYS, recall) for recall in BOTH)
            if none is not None and kept is not None:
                rows.append(
                    (f"{one.city}, {one.units} units", one.entitled, one.never.utilisation,
                     survivors(none), survivors(kept), later_told(one, none),
                     later_told(one, kept), none.second_unit_minutes, kept.second_unit_minutes)
                )  # fmt: skip
    return Table(
        "auditor",
        "Two ambulances to every entitled call, against never two",
        (Column("fleet"), Column("entitled %", 0, percent=True), Column("busy %", 0, percent=True),
         Column("more survivors, not stood down"), Column("stood down"),
         Column("others wait longer, not stood down, s"), Column("stood down, s"),
         Column("minutes of a second, not stood down", 1),
         Column("stood down, min", 1)),
        tuple(rows),
        note=f"{about(runs)}. Stood down: when the first one arrives. More survivors: of 1,000 "
        "patients with a "
        "cardiac arrest, ± standard error. Others: calls that are not entitled to a second; ± "
        "needs five years. Every "
        "rule and the protocol: [evidence](evidence/fleet.md).",
    )  # fmt: skip


def matrix(settings: Sequence[Setting]) -> Table:
    """A row for each rule, a column for each load."""
    rows: list[tuple[Cell, ...]] = []
    for run in settings[0].with_seconds:
        cells = [(one, one.find(run.policy, run.recall)) for one in settings]
        told = (None if found is None else _cell(one, found) for one, found in cells)
        rows.append((f"{run.policy}, {RECALL_WORDS[run.recall]}", *told))
    busy = (f"{100 * one.never.utilisation:.0f} % busy, {years_told([one])}" for one in settings)
    first = settings[0]
    return Table(
        "matrix",
        f"{first.city}, {first.units} units, {100 * first.entitled:.0f} % entitled",
        (Column("rule"), *map(Column, busy)),
        tuple(rows),
        frozenset(n for n, run in enumerate(first.with_seconds) if run.policy == PRICED),
    )


def over_load(groups: Sequence[Sequence[Setting]]) -> "Figure":
    """A column for each city: above, survivors, below, the others' wait, over load."""
    figure, panels = plain_axes(2 * len(groups), 6.6, rows=2)
    for number, group in enumerate(groups):
        above, below = panels[number], panels[number + len(groups)]
        draw_lines(above, group, survival)
        draw_lines(below, group, wait)
        above.set_title(f"{group[0].city}, {group[0].units} units", fontsize=10, color=INK,
                        loc="left")  # fmt: skip
        below.set_xlabel("% of unit time busy")
        for axes in (above, below):
            axes.axhline(0, color=MUTED, linewidth=0.8, zorder=1)
    panels[0].set_ylabel(SURVIVORS)
    panels[len(groups)].set_ylabel(LATER)
    legend_above(figure, panels[0])
    return figure


def head_start(runs: FleetRuns, turnout: FleetRuns) -> Table:
    """The others' wait, with units that leave the street at once, and with a turnout there."""
    slower = {one.name: one for one in turnout.settings}
    pairs = [(one, slower[one.name]) for one in runs.settings if one.name in slower]
    rows: list[tuple[Cell, ...]] = [
        (f"{one.city}, {one.units} units", one.entitled, one.never.utilisation,
         f"{run.policy}, {RECALL_WORDS[run.recall]}", survivors(run), survivors(found),
         later_told(one, run), later_told(other, found))
        for one, other in pairs for run in one.chosen()
        if (found := other.find(run.policy, run.recall))
    ]  # fmt: skip
    return Table(
        "head_start",
        "With the head start of units on the street, and without it",
        (Column("fleet"), Column("entitled %", 0, percent=True), Column("busy %", 0, percent=True),
         Column("rule"), Column("more survivors, at once"), Column("with a turnout"),
         Column("others wait longer, at once, s"), Column("with a turnout, s")),
        tuple(rows),
    )  # fmt: skip


def _without_head_start(runs: FleetRuns, turnout: FleetRuns) -> list[str]:
    return [
        "## Without the head start on the street",
        "A unit that was stood down on the road leaves for its next call at once. Here it needs a "
        "turnout as at its station, so that this credit hides no cost.",
        markdown(head_start(runs, turnout)),
    ]


def _one_more(fleets: FleetRuns) -> list[str]:
    table = one_more_table(fleets)
    return ["## One more ambulance instead", f"*{about(fleets)}.*", markdown(table), table.note]


def _cell(setting: Setting, run: FleetRun) -> str:
    return f"{survivors(run)}; {later_told(setting, run)} s ({100 * run.second_share:.0f} %)"


def _plain(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()

"""Whole fleets over years: docs/evidence/fleet.md, and the table of docs/fleet.md.

``python -m workshop.evidence.fleet OUT ...`` reads folders of ``ideal fleet simulate``, finished
or not; `make fleet-evidence` simulates first. Nothing is left out: fleet.csv has every run.
"""

import argparse
import math
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING

from ideal_dispatch import __version__
from ideal_dispatch.dispatch.recall import Recall
from ideal_dispatch.evaluation.fleet_figures import (
    LATER,
    RECALL_WORDS,
    SURVIVORS,
    draw_lines,
    legend_above,
)
from ideal_dispatch.evaluation.fleet_report import (
    MANY_QUEUED,
    STOOD_DOWN,
    harm_table,
    one_more_table,
)
from ideal_dispatch.evaluation.fleet_runs import ALWAYS, PRICED, FleetRun, FleetRuns, Setting
from ideal_dispatch.evaluation.table import Cell, Column, Table
from ideal_dispatch.files import write_file
from ideal_dispatch.pages import INK, MUTED, plain_axes
from workshop.evidence.pages import FOLDER, markdown, write_csv
from workshop.page_parts import replace_part
from workshop.pictures import save_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEYS = (
    "city", "units", "load", "entitled", "policy", "recall", "years", "utilisation", "second_share",
    "deaths_per_1000", "deaths_difference", "paired_se", "mean_first_s", "p90_first_s",
    "late_share", "others_mean_s", "second_unit_minutes", "stood_down_share", "stood_down_minutes",
    "queued_share", "unit_hours",
)  # fmt: skip
SURE = 2.0
"""A difference of so many standard errors is more than chance."""

_BOTH: tuple[Recall, ...] = ("none", STOOD_DOWN)

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
    "standard error of that difference, paired by year. *Others*: the calls that are not "
    "entitled to a second, and by how many seconds they wait longer in the mean. *fixed C*: a "
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
    runs = reduce(add, map(FleetRuns.read, given.runs))
    turnout, more = (
        None if folder is None else FleetRuns.read(folder)
        for folder in (given.turnout, given.one_more)
    )  # fmt: skip
    write_page(runs, given.docs, turnout, more)
    front = given.docs.parent / "fleet.md"
    table = auditor(runs)
    replace_part(front, "auditor", f"{markdown(table)}\n\n{table.note}")


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
        "longer; in brackets, the share of entitled calls that get a second.",
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
    years: dict[str, list[int]] = {}
    for one in runs.settings:
        years.setdefault(f"{one.city} with {one.units} units", []).append(one.never.years)
    return "; ".join(f"{fleet}, {_years(min(some))} of each rule" for fleet, some in years.items())


def _years(count: int) -> str:
    return "1 year" if count == 1 else f"{count} years"


def by_entitled(runs: FleetRuns) -> list[list[list[Setting]]]:
    """Groups of settings that differ by load, city by city, for each share of entitled calls."""
    groups = runs.by_load()
    shares = sorted({group[0].entitled for group in groups})
    return [[group for group in groups if group[0].entitled == share] for share in shares]


# --- tables and figures -----------------------------------------------------------------


def auditor(runs: FleetRuns) -> Table:
    """Two to every entitled call, with and without standing the loser down: the front table."""
    rows: list[tuple[Cell, ...]] = []
    for groups in by_entitled(runs):
        for one in (setting for group in groups for setting in group):
            none, kept = (one.find(ALWAYS, recall) for recall in _BOTH)
            if none is not None and kept is not None:
                rows.append(
                    (f"{one.city}, {one.units} units", one.entitled, one.never.utilisation,
                     _survivors(none), _survivors(kept), one.others_later_s(none),
                     one.others_later_s(kept), none.second_unit_minutes, kept.second_unit_minutes)
                )  # fmt: skip
    return Table(
        "auditor",
        "Two ambulances to every entitled call, against never two",
        (Column("fleet"), Column("entitled %", 0, percent=True), Column("busy %", 0, percent=True),
         Column("more survivors, not stood down"), Column("stood down"),
         Column("others wait longer, not stood down, s", 1, signed=True),
         Column("stood down, s", 1, signed=True), Column("minutes of a second, not stood down", 1),
         Column("stood down, min", 1)),
        tuple(rows),
        note=f"{about(runs)}. Stood down: when the first one arrives. More survivors: of 1,000 "
        "patients with a "
        "cardiac arrest, ± standard error. Others: calls that are not entitled to a second. Every "
        "rule and the protocol: [evidence](evidence/fleet.md).",
    )  # fmt: skip


def matrix(settings: Sequence[Setting]) -> Table:
    """A row for each rule, a column for each load."""
    rows: list[tuple[Cell, ...]] = []
    for run in settings[0].with_seconds:
        cells = [(one, one.find(run.policy, run.recall)) for one in settings]
        told = (None if found is None else _cell(one, found) for one, found in cells)
        rows.append((f"{run.policy}, {RECALL_WORDS[run.recall]}", *told))
    busy = (f"{100 * one.never.utilisation:.0f} % busy" for one in settings)
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
        draw_lines(above, group, lambda setting, run: run.more_survivors, bars=True)
        draw_lines(below, group, lambda setting, run: setting.others_later_s(run))
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
         f"{run.policy}, {RECALL_WORDS[run.recall]}", _survivors(run), _survivors(found),
         one.others_later_s(run), other.others_later_s(found))
        for one, other in pairs for run in one.chosen()
        if (found := other.find(run.policy, run.recall))
    ]  # fmt: skip
    return Table(
        "head_start",
        "With the head start of units on the street, and without it",
        (Column("fleet"), Column("entitled %", 0, percent=True), Column("busy %", 0, percent=True),
         Column("rule"), Column("more survivors, at once"), Column("with a turnout"),
         Column("others wait longer, at once, s", 1, signed=True),
         Column("with a turnout, s", 1, signed=True)),
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


def _survivors(run: FleetRun) -> str:
    error = "" if run.paired_se is None else f" ± {run.paired_se:.1f}"
    return f"{run.more_survivors:+.1f}{error}".replace("-", "−")


def _cell(setting: Setting, run: FleetRun) -> str:
    later = f"{setting.others_later_s(run):+.1f} s".replace("-", "−")
    return f"{_survivors(run)}; {later} ({100 * run.second_share:.0f} %)"


def _plain(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


# --- findings ---------------------------------------------------------------------------


def findings(runs: FleetRuns) -> list[str]:
    """What the runs say, for and against, in sentences that hold whatever came out."""
    return [*_recall(runs), *_price(runs), *_earlier(runs), *_negative(runs)]


def _recall(runs: FleetRuns) -> Iterator[str]:
    """What standing down changes, share by share of entitled calls."""
    for groups in by_entitled(runs):
        pairs = [
            (one, none, kept)
            for group in groups for one in group
            if (none := one.find(ALWAYS, "none")) and (kept := one.find(ALWAYS, STOOD_DOWN))
        ]  # fmt: skip
        if pairs:
            later = [one.others_later_s(none) for one, none, _ in pairs]
            down = [one.others_later_s(kept) for one, _, kept in pairs]
            freed = [1.0 - kept.unit_hours / none.unit_hours for _, none, kept in pairs]
            gain = [kept.more_survivors for _, _, kept in pairs]
            yield (
                f"{100 * groups[0][0].entitled:.0f} % entitled, always two, {len(pairs)} fleets "
                "and loads: standing the loser down at first arrival frees "
                f"{_range(freed, 100)} % of its time. The mean wait of the others changes by "
                f"{_range(down, digits=1, sign='+')} s, and by "
                f"{_range(later, digits=1, sign='+')} s if nobody stands it down. More "
                f"survivors, stood down: {_range(gain, digits=1, sign='+')} of 1,000."
            )


def _price(runs: FleetRuns) -> Iterator[str]:
    """Whether choosing by price beats always sending two, and a fixed cost."""
    for recall in _BOTH:
        for rival in (ALWAYS, "fixed C"):
            leads = [
                _lead(own, other)
                for one in runs.settings
                if (own := one.find(PRICED, recall)) and (other := one.find(rival, recall))
            ]
            if leads:
                yield (
                    f"*{PRICED}* against *{rival}*, {RECALL_WORDS[recall]}: more survive in "
                    f"{leads.count(1)} of {len(leads)} settings, fewer in {leads.count(-1)}, no "
                    f"difference beyond two standard errors in {leads.count(0)} (both differences "
                    "to never taken as independent, which is cautious)."
                )


def _lead(own: FleetRun, other: FleetRun) -> int:
    """1 where more survive, −1 where fewer do, 0 where that may be chance."""
    lead = own.more_survivors - other.more_survivors
    chance = SURE * math.hypot(own.paired_se or 0.0, other.paired_se or 0.0)
    return 0 if abs(lead) <= chance else 1 if lead > 0.0 else -1


def _earlier(runs: FleetRuns) -> Iterator[str]:
    """What recall on the way, before anybody arrives, adds."""
    pairs = [
        (early, kept)
        for one in runs.settings
        if (early := one.find(PRICED, "worth"))
        and (kept := one.find(PRICED, STOOD_DOWN))
        and kept.unit_hours
    ]
    if pairs:
        freed = [1.0 - early.unit_hours / kept.unit_hours for early, kept in pairs]
        lost = [kept.more_survivors - early.more_survivors for early, kept in pairs]
        yield (
            "Standing down earlier, by the price on the way, frees a further "
            f"{_range(freed, 100)} % of that time and costs {_range(lost, digits=1)} survivors of "
            "1,000 (*priced C*)."
        )


def _negative(runs: FleetRuns) -> Iterator[str]:
    """What goes against second ambulances, or against these figures."""
    harmed = [
        f"{one.name} ({RECALL_WORDS[run.recall]}: {_survivors(run)})"
        for one in runs.settings for run in one.chosen((ALWAYS,))
        if run.more_survivors < -SURE * (run.paired_se or 0.0)
    ]  # fmt: skip
    yield (
        f"Always sending two costs lives, beyond two standard errors, in: {'; '.join(harmed)}."
        if harmed
        else "In none of these settings does always sending two cost lives among the arrests, "
        "beyond two standard errors."
    )
    less = sum(one.others_later_s(run) < -0.05 for one in runs.settings for run in one.with_seconds)
    if less:
        yield (
            f"In {less} runs the others wait *less* than without seconds. That is no gift: a unit "
            "that was stood down on the road leaves for the next call at once, where one at its "
            "station needs a turnout."
        )
    queued = (one.fleet for one in runs.settings if one.never.queued_share > MANY_QUEUED)
    small = list(dict.fromkeys(queued))
    if small:
        yield (
            f"Too small for their calls, more than {100 * MANY_QUEUED:.0f} % of which wait for a "
            f"free unit without any second: {'; '.join(small)}."
        )


def _range(values: Sequence[float], times: float = 1.0, digits: int = 0, sign: str = "") -> str:
    ends = (round(times * end, digits) + 0.0 for end in (min(values), max(values)))  # no −0.0
    low, high = (f"{end:{sign}.{digits}f}".replace("-", "−") for end in ends)
    return low if low == high else f"{low} to {high}"


if __name__ == "__main__":
    main()

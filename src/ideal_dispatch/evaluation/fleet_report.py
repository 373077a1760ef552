"""A simulated fleet as a report: what second units bring, what they cost, and when to stop."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from ideal_dispatch.dispatch.recall import RECALLS, Recall
from ideal_dispatch.evaluation.fleet_runs import (
    ALWAYS,
    HARM_S,
    NEVER,
    PRICED,
    FleetRun,
    FleetRuns,
    Setting,
    crossing,
    more,
)
from ideal_dispatch.fleet.results import MANY_YEARS
from ideal_dispatch.pages import (
    ACCENT,
    GREEN,
    INK,
    MUTED,
    PURPLE,
    SMALL_PT,
    VERMILLION,
    plain_axes,
)
from ideal_dispatch.report import Cell, Column, Figure, Report, Section, Table

if TYPE_CHECKING:
    import matplotlib.figure as drawn

PAGE = "fleet.html"
STOOD_DOWN: Recall = "first arrival"
"""The rule of recall that comes first on the page: most centres can do it."""

RECALL_WORDS = {
    "none": "never stood down",
    "first arrival": "stood down at first arrival",
    "worth": "stood down by its price",
    "live": "stood down by its price, positions known",
}
"""What happens to the unit that does not come first, in words."""

MANY_QUEUED = 0.1
"""A fleet is too small for its calls where so many wait for a free unit without second units."""

_RULE = (Column("who gets a second"), Column("unit that is not first"))
_COLOURS = {"none": VERMILLION, "first arrival": ACCENT, "worth": GREEN, "live": PURPLE}
_DASHED = (0, (4, 1.5))
_LINES: dict[str, tuple[Any, str, int]] = {ALWAYS: ("-", "o", 6), PRICED: (_DASHED, "*", 9)}

Axis = Literal["load", "units"]
_AXES = {"load": "% of unit time busy, without any second", "units": "units of the fleet"}


def fleet_report(runs: FleetRuns) -> Report:
    """What second units bring and cost, over load and fleet size where the runs have several."""
    main, groups = runs.main, runs.by_load()
    loads: list[Figure | str] = [
        Figure(
            "load", f"Benefit and cost of second units over load, {_place(one[0])}", over(one),
            "Full lines: two to every entitled call; dashed: only where a second saves more than "
            "its price. Left: how many more of 1,000 patients with a cardiac arrest survive than "
            "without second units, with standard errors. Right: how much longer the calls wait "
            "that get no second; bars from five years on.",
        )
        for one in groups
    ]  # fmt: skip
    if all(len(one) == 1 for one in groups):
        loads.append("One load was simulated. Give several, such as utilisation = [0.3, 0.5, 0.7], "
                     "to see where second units start to harm.")  # fmt: skip
    fleets = [
        Figure(
            "fleets", f"Benefit and cost over the size of the fleet in {one[0].city}",
            over(one, "units"),
            f"{100 * one[0].entitled:.0f} % of calls entitled"
            + (f", load {one[0].load} of the city's own fleet" if one[0].load else "")
            + ". The same calls, answered by fleets of other sizes.",
        )
        for one in runs.by_fleet()
    ]  # fmt: skip
    instead, missing = one_more_table(runs), None
    if not instead.rows:
        missing = (
            "No fleet was simulated with one more unit for the same calls. Give fleet sizes, such "
            f"as units = [{main.units}, {main.units + 1}], to see what one more ambulance would "
            "bring."
        )
    cities = " and ".join(dict.fromkeys(one.city for one in runs.settings))
    units = ", ".join(map(str, sorted({one.units for one in runs.settings})))
    return Report(
        "What does a second ambulance cost the others?",
        f"{cities}; fleets of {units} units; {years_of(runs.settings, 'simulated ')} under each "
        "rule, the same calls under all",
        big_numbers(main),
        caveats(runs),
        [
            Section.of(
                "What it brings, what it costs",
                f"The figures above are of {main.name}. Every rule answers the same calls, with "
                "the same luck on the road, so differences between rules are due to the rules. A "
                "load is the share of unit time on duty that is busy without any second unit.",
                *map(rule_table, groups),
            ),
            Section.of("When does it start to harm?", *loads, harm_table(runs)),
            Section.of("One more ambulance instead?", *fleets, instead, missing),
            Section.of("What to know", (
                "Survival is the expected survival of cardiac arrests by a published curve of the "
                "time until the first unit arrives. Nothing else about a call depends on when help "
                "comes.",
                "Waiting is counted from the call to the first arrival. Late means later than 8 "
                "minutes after the call, for calls of every priority.",
                "Random numbers belong to a call and a role, so each rule meets the same turnout "
                "and the same traffic. Standard errors are of the difference from no second units, "
                "paired by year. With fewer than ten years, that of the arrests within the years "
                "counts where it is larger. With fewer than five, no difference is called "
                "significant.",
                *runs.notes,
            )),
            *(
                Section.of(f"First arrivals by kind of call: {one.name}", priority_table(one),
                           folded=True)
                for one in runs.settings
            ),
        ],
    )  # fmt: skip


def _place(one: Setting) -> str:
    return f"{one.city}, {one.units} units, {100 * one.entitled:.0f} % of calls entitled"


# --- tables -----------------------------------------------------------------------------


def rule_table(settings: Sequence[Setting]) -> Table:
    """Every rule, load by load: survival, first arrivals and what the units did."""
    rows: list[tuple[Cell, ...]] = []
    for one in settings:
        for run in (one.never, *one.with_seconds):
            saved: tuple[Cell, ...] = (None, None, None, None)
            if run.policy != NEVER:
                later_s = one.others_later_s(run)
                saved = run.more_survivors, run.paired_se, later_s, run.others_se_s
            rows.append(
                (f"{100 * one.never.utilisation:.0f} % busy", run.policy, _recall_words(run),
                 run.second_share, *saved, run.mean_first_s, run.p90_first_s, run.late_share,
                 run.second_unit_minutes, run.stood_down_share, round(run.unit_hours),
                 run.queued_share)
            )  # fmt: skip
    return Table(
        "rules",
        _place(settings[0]),
        (Column("load"), *_RULE, Column("get a second, %", 0, percent=True),
         Column("more survivors", 1, signed=True, arrow="↑"), Column("± s.e.", 1),
         Column("others wait longer, s", 1, signed=True, arrow="↓"), Column("± s.e., s", 1),
         Column("mean s, all calls", 1), Column("P90 s", 0), Column("late %", 1, percent=True),
         Column("minutes a second", 1), Column("stood down on the way, %", 0, percent=True),
         Column("unit hours a year"), Column("calls that waited for a unit, %", 1, percent=True)),
        tuple(rows),
        frozenset(n for n, row in enumerate(rows) if row[2] == RECALL_WORDS[STOOD_DOWN]),
        "All against the same calls without any second. More survivors: of 1,000 patients with a "
        "cardiac arrest, with the standard error. Others: calls that are not entitled to a second; "
        "a standard error needs five years. Minutes and unit hours: for how long units were held "
        "that took no patient.",
    )  # fmt: skip


def priority_table(setting: Setting) -> Table:
    """First arrivals by kind of call, under the main policies."""
    rows: list[tuple[Cell, ...]] = []
    for name in setting.never.groups:
        for run in (setting.never, *setting.chosen()):
            of = run.groups[name]
            rows.append((name, run.policy, _recall_words(run), round(run.a_year(name)),
                         of.mean_s, of.p90_s, of.late_share))  # fmt: skip
    return Table(
        "priorities",
        "First arrival by kind of call",
        (Column("calls"), *_RULE, Column("calls a year"), Column("mean s", 1),
         Column("P90 s", 0), Column("late %", 1, percent=True)),
        tuple(rows),
        note="Arrests: cardiac arrests. Others: calls that are not entitled to a second. The "
        "rest are the priorities.",
    )  # fmt: skip


def harm_table(runs: FleetRuns) -> Table:
    """From which load on sending two to every entitled call does harm."""
    rows: list[tuple[Cell, ...]] = []
    for group in runs.by_load():
        busy = [one.never.utilisation for one in group]
        for recall in RECALLS:
            found = [one.find(ALWAYS, recall) for one in group]
            always = [run for run in found if run is not None]
            if len(always) < len(group):
                continue
            deaths = crossing(busy, [run.deaths_difference for run in always])
            later = [one.others_later_s(run) for one, run in zip(group, always, strict=True)]
            known = [later_s for later_s in later if later_s is not None]
            others: tuple[Cell, Cell] = (None, None)
            if len(known) == len(group):
                others = _from(crossing(busy, known, HARM_S), busy), max(known)
            rows.append(
                (group[0].city, group[0].units, group[0].entitled, RECALL_WORDS[recall],
                 _from(deaths, busy), *others)
            )  # fmt: skip
    return Table(
        "harm",
        "Where always sending two starts to harm",
        (Column("city"), Column("units"), Column("entitled, %", 0, percent=True), _RULE[1],
         Column("fewer arrests survive"), Column(f"others wait over {HARM_S:g} s longer"),
         Column("others wait longer at most, s", 1, signed=True)),
        tuple(rows),
        note="Loads are the share of unit time that is busy without any second; between "
        "simulated loads they are read off a straight line through the means, whatever their "
        "standard errors.",
    )  # fmt: skip


def one_more_table(runs: FleetRuns) -> Table:
    """What one more unit brings, beside what second units bring with today's fleet."""
    rows: list[tuple[Cell, ...]] = []
    for one, larger in runs.one_more():
        place = f"{one.city}, {one.units} units, {100 * one.never.utilisation:.0f} % busy, " \
            f"{100 * one.entitled:.0f} % entitled"  # fmt: skip
        for words, run in (
            (f"one more unit, {NEVER} a second", larger.never),
            *((f"{policy}, {RECALL_WORDS[STOOD_DOWN]}", one.find(policy, STOOD_DOWN))
              for policy in (ALWAYS, PRICED)),
        ):  # fmt: skip
            if run is not None:
                rows.append(
                    (place, words, one.never.deaths_per_1000 - run.deaths_per_1000,
                     run.error_against(one.never),
                     run.mean_first_s - one.never.mean_first_s,
                     more(run.others_mean_s, one.never.others_mean_s),
                     run.late_share - one.never.late_share)
                )  # fmt: skip
    return Table(
        "one_more",
        "One more ambulance, or a second one for those who need it",
        (Column("fleet"), Column("change"), Column("more survivors", 1, signed=True),
         Column("± s.e.", 1),
         Column("all calls: mean s", 1, signed=True),
         Column("others: mean s", 1, signed=True),
         Column("late, points", 2, signed=True, percent=True)),
        tuple(rows),
        note="All against the same calls with today's fleet and no second. More survivors: "
        "of 1,000 patients with a cardiac arrest, with the standard error over years.",
    )  # fmt: skip


def _from(load: float | None, busy: Sequence[float]) -> str:
    """A load at which something begins, in words."""
    if load is None:
        return f"not up to {100 * busy[-1]:.0f} % busy"
    at_once = load == busy[0]
    return f"{100 * load:.0f} % busy{' or less' if at_once else ''}"


def _recall_words(run: FleetRun) -> str:
    return "–" if run.policy == NEVER else RECALL_WORDS[run.recall]


# --- words ------------------------------------------------------------------------------


def years_of(settings: Sequence[Setting], kind: str = "") -> str:
    """How many years there are of every rule: "1 year", "3 to 20 years"."""
    years = {run.years for one in settings for run in one.runs}
    fewest, most = min(years), max(years)
    number = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return f"{number} {kind}{'year' if most == 1 else 'years'}"


def big_numbers(setting: Setting) -> list[tuple[str, str]]:
    """What a chief wants to know first, for the main setting."""
    numbers = []
    kept, none = (setting.find(ALWAYS, recall) for recall in (STOOD_DOWN, RECALLS[0]))
    priced = setting.find(PRICED, STOOD_DOWN)
    if kept is not None:
        numbers += [
            ("more survivors per 1,000 arrests, if two are always sent", _more(kept)),
            (
                "change in the mean wait of the other calls, if the second is stood down when the "
                f"first arrives{_credit(setting, kept)}",
                f"{later_words(setting, kept)} s",
            ),
        ]
    if none is not None:
        words = f"the same, if the second is never stood down{_credit(setting, none)}"
        numbers.append((words, f"{later_words(setting, none)} s"))
    if kept is not None and none is not None:
        words = f"that a second costs, stood down; never: {none.second_unit_minutes:.1f} min"
        numbers.append((words, f"{kept.second_unit_minutes:.1f} min"))
    if priced is not None:
        words = f"of entitled calls get a second by its price; more survivors then: {_more(priced)}"
        numbers.append((words, f"{100 * priced.second_share:.0f} %"))
    return numbers


def _credit(setting: Setting, run: FleetRun) -> str:
    """Why the others wait less, where they do beyond chance."""
    sooner = setting.others_sooner(run)
    return ", because units that were stood down are nearer" if sooner else ""


def caveats(runs: FleetRuns) -> list[str]:
    """A line for each reason to be careful."""
    lines = []
    few = [one for one in runs.settings if one.never.years < MANY_YEARS]
    if few:
        where = "" if len(few) == len(runs.settings) else \
            f" in {len(few)} of {len(runs.settings)} settings"  # fmt: skip
        years = years_of(few, "simulated ")
        lines.append(
            f"{years}{where} {'is' if years.endswith('year') else 'are'} few: look at the standard "
            "errors, and simulate more years before you decide anything."
        )
    sooner = sum(one.others_sooner(run) for one in runs.settings for run in one.runs)
    if sooner:
        lines.append(
            f"In {sooner} {'run' if sooner == 1 else 'runs'} the other calls wait less than "
            "without second units, beyond two standard errors. The reason is an assumption: a unit "
            "that was stood down on the road answers the next call sooner than from its station. "
            "With street_start = false in the city, it needs a turnout as at the station."
        )
    small = {
        one.fleet: one.never.queued_share
        for one in runs.settings
        if one.never.queued_share > MANY_QUEUED
    }
    lines += [
        f"{fleet}: {100 * queued:.0f} % of the calls wait for a free unit even without second "
        "units; this fleet is too small for its calls."
        for fleet, queued in small.items()
    ]
    return lines


def _more(run: FleetRun) -> str:
    error = "" if run.paired_se is None else f" ± {run.paired_se:.1f}"
    return f"{run.more_survivors:.1f}{error}".replace("-", "−")


def later_words(setting: Setting, run: FleetRun) -> str:
    """How much longer the others wait, with its sign and standard error; "–" without others."""
    later_s = setting.others_later_s(run)
    if later_s is None:
        return "–"
    error = "" if run.others_se_s is None else f" ± {run.others_se_s:.1f}"
    return f"{later_s:+.1f}{error}".replace("-", "−")


# --- figures ----------------------------------------------------------------------------


def over(settings: Sequence[Setting], x: Axis = "load") -> "drawn.Figure":
    """How benefit and cost of second units change with the load, or with the size of the fleet.

    A line for each rule of recall, full where two always go, dashed where priced.
    """
    figure, (left, right) = plain_axes(2, 4.4)
    for run in settings[0].chosen():
        dashes, marker, size = _LINES[run.policy]
        found = [(one, one.find(run.policy, run.recall)) for one in settings]
        points = [(one, other) for one, other in found if other is not None]
        places = [100 * one.never.utilisation if x == "load" else one.units for one, _ in points]
        look: dict[str, Any] = {
            "color": _COLOURS[run.recall], "linestyle": dashes, "marker": marker,
            "markersize": size, "markeredgecolor": "white", "elinewidth": 1.2,
            "label": f"{run.policy}, {RECALL_WORDS[run.recall]}",
        }  # fmt: skip
        left.errorbar(places, [one.more_survivors for _, one in points],
                      [one.paired_se or 0.0 for _, one in points], **look)  # fmt: skip
        later_s = [setting.others_later_s(one) for setting, one in points]
        right.errorbar(places, [math.nan if value is None else value for value in later_s],
                       [one.others_se_s or 0.0 for _, one in points], **look)  # fmt: skip
    left.set_ylabel("more survivors\nper 1,000 arrests")
    right.set_ylabel("the other calls wait longer,\nseconds in the mean")
    right.axhline(HARM_S, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)))
    right.annotate(f"{HARM_S:g} s", (0.0, HARM_S), xycoords=("axes fraction", "data"),
                   xytext=(3, 3), textcoords="offset points", fontsize=SMALL_PT,
                   color=MUTED)  # fmt: skip
    for axes in (left, right):
        axes.axhline(0, color=MUTED, linewidth=0.8, zorder=1)
        axes.set_xlabel(_AXES[x])
    if x == "units":
        left.set_xticks(sorted({one.units for one in settings}))
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=2, frameon=False,
                  fontsize=SMALL_PT, labelcolor=INK)  # fmt: skip
    return figure

"""A simulated fleet as a report: what second units bring, what they cost, and when to stop."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

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
    named_bars,
    plain_axes,
)
from ideal_dispatch.report import Cell, Column, Figure, Report, Section, Table

if TYPE_CHECKING:
    import matplotlib.figure as drawn
    from matplotlib.axes import Axes

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

SURVIVORS = "more survivors\nper 1,000 arrests"
LATER = "the other calls wait longer,\nseconds in the mean"

_NOISE_S = 0.05
_RULE = (Column("who gets a second"), Column("unit that is not first"))
_SAVED = (Column("more survivors", 1, signed=True, arrow="↑"), Column("± s.e.", 1))
_LATER = (Column("others wait longer, s", 1, signed=True, arrow="↓"), Column("± s.e., s", 1))
_COLOURS = {"none": VERMILLION, "first arrival": ACCENT, "worth": GREEN, "live": PURPLE}
_MARKERS = "oDs^v<>P"
_DASHED = (0, (4, 1.5))
_LINES: dict[str, tuple[Any, str, int]] = {ALWAYS: ("-", "o", 6), PRICED: (_DASHED, "*", 9)}
_MOST_LOADS = 4

Valued = Callable[[Setting, FleetRun], tuple[float, float | None]]
"""What is drawn of a run, and its standard error where it is known."""


def fleet_report(runs: FleetRuns) -> Report:
    """What second units bring and cost, over load and fleet size where the runs have several."""
    main, groups = runs.main, runs.by_load()
    trades = [
        Figure(
            "trade", f"Benefit and cost of every rule, {_place(one[0])}", trade(one),
            "Each mark is one rule. Above: how many more of 1,000 patients with a cardiac arrest "
            "survive; bars are standard errors. Below: how much longer the calls wait that get no "
            "second; bars from five years on. Good rules lie high above and low below, far to the "
            "left.",
        )
        for one in groups
    ]  # fmt: skip
    loads: list[Figure | str] = [
        Figure(
            "load", f"Benefit and cost over load, {_place(one[0])}", over_load(one),
            "Full lines: two to every entitled call; dashed: only where a second saves more than "
            "its price. Below zero on the left, fewer patients survive than without second units.",
        )
        for one in groups if len(one) > 1
    ]  # fmt: skip
    if not loads:
        loads = ["One load was simulated. Give several, such as utilisation = [0.3, 0.5, 0.7], to "
                 "see where second units start to harm."]  # fmt: skip
    fleets = [
        Figure(
            "fleets", f"Fleets of other sizes in {one[0].city}", over_fleet(one),
            f"{100 * one[0].entitled:.0f} % of calls entitled"
            + (f", load {one[0].load} of the city's own fleet" if one[0].load else "")
            + ". The same calls, answered by fleets of other sizes.",
        )
        for one in runs.by_fleet()
    ]  # fmt: skip
    instead = one_more_table(runs)
    missing = None
    if not instead.rows:
        missing = (
            "No fleet was simulated with one more unit for the same calls. Give fleet sizes, such "
            f"as units = [{main.units}, {main.units + 1}], to see what one more ambulance would "
            "bring."
        )
    busy = None
    if main.with_seconds:
        busy = Figure("hours", "Unit hours a year of units that took no patient", hours(main),
                      f"{main.name}.")  # fmt: skip
    cities = " and ".join(dict.fromkeys(one.city for one in runs.settings))
    units = ", ".join(map(str, sorted({one.units for one in runs.settings})))
    return Report(
        "What does a second ambulance cost the others?",
        f"{cities}; fleets of {units} units; {years_told(runs.settings, 'simulated ')} under each "
        "rule, the same calls under all",
        big_numbers(main),
        caveats(runs),
        [
            Section.of(
                "Two to every entitled call: is it waste?", *answer(main),
                "Every rule answers the same calls, with the same luck on the road, so differences "
                "between rules are due to the rules. A load is the share of unit time on duty that "
                "is busy.",
                *map(auditor_table, groups),
            ),
            Section.of("What it brings, what it costs", *trades),
            Section.of("Unit hours", busy),
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
                Section.of(f"Every rule: {one.name}", policy_table(one), unit_table(one),
                           priority_table(one), folded=True)
                for one in runs.settings
            ),
        ],
    )  # fmt: skip


def _place(one: Setting) -> str:
    return f"{one.city}, {one.units} units, {100 * one.entitled:.0f} % of calls entitled"


# --- tables -----------------------------------------------------------------------------


def auditor_table(settings: Sequence[Setting]) -> Table:
    """Two units to every entitled call: what it brings and costs, load by load."""
    rows: list[tuple[Cell, ...]] = []
    for one in settings:
        for run in one.chosen((ALWAYS,)):
            never = one.never
            rows.append(
                (f"{100 * never.utilisation:.0f} % busy", RECALL_WORDS[run.recall],
                 run.more_survivors, run.paired_se, one.others_later_s(run), run.others_se_s,
                 run.p90_first_s - never.p90_first_s, run.late_share - never.late_share,
                 run.second_unit_minutes, round(run.unit_hours))
            )  # fmt: skip
    first = settings[0]
    return Table(
        "auditor",
        f"{first.city}, {first.units} units: two are sent to every call that is entitled to a "
        f"second ({100 * first.entitled:.0f} % of all calls)",
        (Column("load"), _RULE[1], *_SAVED, *_LATER,
         Column("P90 of all, s", 0, signed=True, arrow="↓"),
         Column("late, points", 2, signed=True, percent=True, arrow="↓"),
         Column("minutes a second", 1), Column("unit hours a year")),
        tuple(rows),
        frozenset(n for n, row in enumerate(rows) if row[1] == RECALL_WORDS[STOOD_DOWN]),
        "All against the same calls without any second; the load is without seconds, too. More "
        "survivors: of 1,000 patients with a cardiac arrest, with the standard error. "
        "Others: calls that are not entitled to a second; a standard error needs five years. "
        "Late: the first unit came later than 8 minutes after the call. Minutes: how long the unit "
        "that took no patient "
        "was held.",
    )  # fmt: skip


def policy_table(setting: Setting) -> Table:
    """Every policy of a setting: survival, and the first arrivals of all calls."""
    rows: list[tuple[Cell, ...]] = [
        (run.policy, _recall_words(run), run.second_share, run.survivors, run.more_survivors,
         None if run.policy == NEVER else run.paired_se, setting.others_later_s(run),
         None if run.policy == NEVER else run.others_se_s,
         run.mean_first_s, run.p90_first_s, run.late_share)
        for run in (setting.never, *setting.with_seconds)
    ]  # fmt: skip
    return Table(
        "policies",
        "Survival, and the first arrival at all calls",
        (*_RULE, Column("get a second, %", 0, percent=True),
         Column("survivors per 1,000 arrests", 1), *_SAVED, *_LATER, Column("mean s", 1),
         Column("P90 s", 0),
         Column("late %", 1, percent=True)),
        tuple(rows),
        _bold(rows),
    )  # fmt: skip


def unit_table(setting: Setting) -> Table:
    """Every policy of a setting: what the units did."""
    rows: list[tuple[Cell, ...]] = [
        (run.policy, _recall_words(run), run.utilisation, run.second_unit_minutes,
         run.stood_down_share, run.stood_down_minutes, round(run.unit_hours), run.queued_share)
        for run in (setting.never, *setting.with_seconds)
    ]  # fmt: skip
    return Table(
        "units",
        "What the units did",
        (*_RULE, Column("unit time busy, %", 1, percent=True), Column("minutes a second", 1),
         Column("stood down on the way, %", 0, percent=True),
         Column("minutes until then", 1), Column("unit hours a year"),
         Column("calls that waited for a unit, %", 1, percent=True)),
        tuple(rows),
        _bold(rows),
        "Unit hours: for how long units were held that took no patient.",
    )  # fmt: skip


def priority_table(setting: Setting) -> Table:
    """First arrivals by kind of call, under the main policies."""
    runs = [setting.never, *setting.chosen()]
    rows: list[tuple[Cell, ...]] = []
    for name in setting.never.groups:
        for run in runs:
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
    """What one more unit brings, beside what seconds bring with the fleet as it is."""
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
        note="All against the same calls with the fleet as it is and no second. More survivors: "
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


def _bold(rows: Sequence[Sequence[Any]]) -> frozenset[int]:
    return frozenset(number for number, row in enumerate(rows) if row[0] == PRICED)


# --- words ------------------------------------------------------------------------------


def years_told(settings: Sequence[Setting], kind: str = "") -> str:
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
                f"{later_told(setting, kept)} s",
            ),
        ]
    if none is not None:
        words = f"the same, if the second is never stood down{_credit(setting, none)}"
        numbers.append((words, f"{later_told(setting, none)} s"))
    if kept is not None and none is not None:
        words = f"that a second costs, stood down; never: {none.second_unit_minutes:.1f} min"
        numbers.append((words, f"{kept.second_unit_minutes:.1f} min"))
    if priced is not None:
        words = f"of entitled calls get a second by its price; more survivors then: {_more(priced)}"
        numbers.append((words, f"{100 * priced.second_share:.0f} %"))
    return numbers


def _credit(setting: Setting, run: FleetRun) -> str:
    """Why the others wait less, where they do beyond chance."""
    sooner = setting.others_surely_sooner(run)
    return ", because units that were stood down are nearer" if sooner else ""


def answer(setting: Setting) -> list[str]:
    """The auditor's question answered for one setting, a paragraph each."""
    kept, none = (setting.find(ALWAYS, recall) for recall in (STOOD_DOWN, RECALLS[0]))
    lines = []
    if kept is not None:
        share = f"every call of the {100 * setting.entitled:.0f} % that are entitled"
        if setting.entitled <= 1.1 * setting.never.a_year("arrests") / setting.never.calls_a_year:
            share = "every cardiac arrest"
        lines.append(
            f"{setting.city} with {setting.units} units, busy for "
            f"{100 * setting.never.utilisation:.0f} % of their time: two units to {share} let "
            f"{_more(kept)} more of 1,000 patients with a cardiac arrest survive. If the unit "
            "that is not first is stood down when the first arrives, it is held for "
            f"{kept.second_unit_minutes:.1f} minutes, and the other calls "
            f"{_wait(setting, kept)}."
        )
    if none is not None:
        lines.append(
            f"If it is never stood down, it is held for {none.second_unit_minutes:.1f} minutes, "
            f"the other calls {_wait(setting, none)}, and {_more(none)} more of "
            "1,000 survive."
        )
    return lines


def caveats(runs: FleetRuns) -> list[str]:
    """A line for each reason to be careful."""
    lines = []
    few = [one for one in runs.settings if one.never.years < MANY_YEARS]
    if few:
        where = "" if len(few) == len(runs.settings) else \
            f" in {len(few)} of {len(runs.settings)} settings"  # fmt: skip
        told = years_told(few, "simulated ")
        lines.append(
            f"{told}{where} {'is' if told.endswith('year') else 'are'} few: look at the standard "
            "errors, and simulate more years before you decide anything."
        )
    sooner = sum(one.others_surely_sooner(run) for one in runs.settings for run in one.runs)
    if sooner:
        lines.append(
            f"In {sooner} {'run' if sooner == 1 else 'runs'} the other calls wait less than "
            "without seconds, beyond two standard errors. The reason is an assumption: a unit that "
            "was stood down on the road answers the next call sooner than from its station. With "
            "street_start = false in the city, it needs a turnout as at the station."
        )
    small = {
        one.fleet: one.never.queued_share
        for one in runs.settings
        if one.never.queued_share > MANY_QUEUED
    }
    lines += [
        f"{fleet}: {100 * queued:.0f} % of the calls wait for a free unit even without seconds; "
        "this fleet is too small for its calls."
        for fleet, queued in small.items()
    ]
    return lines


def _more(run: FleetRun) -> str:
    error = "" if run.paired_se is None else f" ± {run.paired_se:.1f}"
    return f"{run.more_survivors:.1f}{error}".replace("-", "−")


def later_told(setting: Setting, run: FleetRun) -> str:
    """How much longer the others wait, with its sign and standard error; "–" without others."""
    later_s = setting.others_later_s(run)
    if later_s is None:
        return "–"
    error = "" if run.others_se_s is None else f" ± {run.others_se_s:.1f}"
    return f"{later_s:+.1f}{error}".replace("-", "−")


def _wait(setting: Setting, run: FleetRun) -> str:
    later_s = setting.others_later_s(run)
    if later_s is None:
        return "do not exist: all are entitled to a second"
    if abs(later_s) < _NOISE_S:
        return "wait as long as before, to a tenth of a second"
    error = "" if run.others_se_s is None else f" ± {run.others_se_s:.1f}"
    told = f"wait {abs(later_s):.1f}{error} s {'longer' if later_s > 0.0 else 'less'} in the mean"
    return told + _credit(setting, run)


# --- figures ----------------------------------------------------------------------------


def trade(settings: Sequence[Setting]) -> "drawn.Figure":
    """Above, what a share of second units brings, below, what it costs; a column for each load."""
    shown = _spread(settings)
    figure, panels = plain_axes(2 * len(shown), 6.4, rows=2)
    policies = list(dict.fromkeys(run.policy for one in shown for run in one.with_seconds))
    above, below = panels[: len(shown)], panels[len(shown) :]
    for setting, brings, costs in zip(shown, above, below, strict=True):
        for run in setting.with_seconds:
            look: dict[str, Any] = {
                "color": _COLOURS[run.recall], "marker": _marker(policies, run.policy),
                "markersize": 13 if run.policy == PRICED else 7.5, "linestyle": "",
                "markeredgecolor": "white", "markeredgewidth": 0.5, "elinewidth": 1.2,
                "alpha": 0.8,
            }  # fmt: skip
            share = 100 * run.second_share
            for axes, valued in ((brings, survival), (costs, wait)):
                value, error = valued(setting, run)
                axes.errorbar(share, value, error or 0.0, **look)
        brings.set_title(f"{100 * setting.never.utilisation:.0f} % of unit time busy",
                         fontsize=10, color=INK, loc="left")  # fmt: skip
        costs.set_xlabel("% of entitled calls with a second")
        for axes in (brings, costs):
            axes.axhline(0, color=MUTED, linewidth=0.8, zorder=1)
            axes.set_xlim(0, 106)
    for row, label in ((above, SURVIVORS), (below, LATER)):
        _one_scale(row)
        row[0].set_ylabel(label)
    handles = _handles(policies, [run.recall for one in shown for run in one.with_seconds])
    figure.legend(handles=handles, loc="outside upper left", ncols=4, frameon=False,
                  fontsize=SMALL_PT, labelcolor=INK)  # fmt: skip
    return figure


def over_load(settings: Sequence[Setting]) -> "drawn.Figure":
    """How benefit and cost of second units change as the fleet gets busier."""
    figure, (left, right) = plain_axes(2, 4.4)
    draw_lines(left, settings, survival)
    draw_lines(right, settings, wait)
    left.set_ylabel(SURVIVORS)
    right.set_ylabel(LATER)
    right.axhline(HARM_S, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)))
    right.annotate(f"{HARM_S:g} s", (0.0, HARM_S), xycoords=("axes fraction", "data"),
                   xytext=(3, 3), textcoords="offset points", fontsize=SMALL_PT,
                   color=MUTED)  # fmt: skip
    for axes in (left, right):
        axes.axhline(0, color=MUTED, linewidth=0.8, zorder=1)
        axes.set_xlabel("% of unit time busy, without any second")
    legend_above(figure, left)
    return figure


def over_fleet(settings: Sequence[Setting]) -> "drawn.Figure":
    """Survivors and first arrivals over the number of units, under the main rules."""
    figure, (left, right) = plain_axes(2, 4.0)
    looks: dict[str, tuple[str, Any, Recall]] = {
        NEVER: (MUTED, "-", "none"),
        ALWAYS: (ACCENT, "-", "first arrival"),
        PRICED: (ACCENT, _DASHED, "first arrival"),
    }
    for policy, (colour, dashes, recall) in looks.items():
        found = [(one.units, one.find(policy, recall)) for one in settings]
        points = [(units, run) for units, run in found if run is not None]
        units = [n for n, _ in points]
        told = policy if policy == NEVER else f"{policy}, {RECALL_WORDS[recall]}"
        look: dict[str, Any] = {
            "color": colour, "linestyle": dashes, "marker": "o", "markeredgecolor": "white"
        }  # fmt: skip
        if points:
            left.plot(units, [run.survivors for _, run in points], label=told, **look)
            right.plot(units, [run.mean_first_s for _, run in points], **look)
    left.set_ylabel("survivors\nper 1,000 arrests")
    right.set_ylabel("first arrival, all calls,\nseconds in the mean")
    for axes in (left, right):
        axes.set_xlabel("units of the fleet")
        axes.set_xticks(sorted({one.units for one in settings}))
    legend_above(figure, left)
    return figure


def hours(setting: Setting) -> "drawn.Figure":
    """Hours a year for which units were held that took no patient, rule by rule."""
    runs = [run for recall in RECALLS for run in setting.with_seconds if run.recall == recall]
    figure, (axes,) = plain_axes(1, 0.9 + 0.27 * len(runs))
    names = [f"{run.policy}, {RECALL_WORDS[run.recall]}" for run in runs]
    texts = [f"{run.unit_hours:,.0f} h, {100 * run.units_held:.1f} % of one unit" for run in runs]
    named_bars(axes, names, [run.unit_hours for run in runs], texts,
               [_COLOURS[run.recall] for run in runs])  # fmt: skip
    axes.set_xlabel("unit hours a year")
    axes.set_xlim(0, 1.35 * max(run.unit_hours for run in runs))
    return figure


def _spread(settings: Sequence[Setting]) -> list[Setting]:
    """At most so many settings as fit beside each other, the first and the last among them."""
    last, most = len(settings) - 1, min(len(settings), _MOST_LOADS)
    return [settings[round(k * last / max(most - 1, 1))] for k in range(most)]


def survival(setting: Setting, run: FleetRun) -> tuple[float, float | None]:
    """How many more of 1,000 survive than without seconds."""
    return run.more_survivors, run.paired_se


def wait(setting: Setting, run: FleetRun) -> tuple[float, float | None]:
    """How much longer the others wait; no point is drawn where there are no others."""
    later_s = setting.others_later_s(run)
    return math.nan if later_s is None else later_s, run.others_se_s


def draw_lines(axes: "Axes", settings: Sequence[Setting], valued: Valued) -> None:
    """A line for each rule of recall, full where two always go, dashed where priced."""
    for run in settings[0].chosen():
        dashes, marker, size = _LINES[run.policy]
        found = [(one, one.find(run.policy, run.recall)) for one in settings]
        points = [(one, other) for one, other in found if other is not None]
        values = [valued(one, other) for one, other in points]
        axes.errorbar(
            [100 * one.never.utilisation for one, _ in points],
            [value for value, _ in values], [error or 0.0 for _, error in values],
            color=_COLOURS[run.recall], linestyle=dashes, marker=marker, markersize=size,
            markeredgecolor="white", elinewidth=1.2,
            label=f"{run.policy}, {RECALL_WORDS[run.recall]}",
        )  # fmt: skip


def _marker(policies: Sequence[str], policy: str) -> str:
    return "*" if policy == PRICED else _MARKERS[policies.index(policy) % len(_MARKERS)]


def _one_scale(row: "Sequence[Axes]") -> None:
    lows, highs = zip(*(axes.get_ylim() for axes in row), strict=True)
    for axes in row:
        axes.set_ylim(min(lows), max(highs))


def _handles(policies: Sequence[str], recalls: Sequence[str]) -> list[Any]:
    """What marks and colours mean."""
    from matplotlib.lines import Line2D

    marks = [
        Line2D(
            [],
            [],
            color=INK,
            linestyle="",
            marker=_marker(policies, one),
            label=one,
            markersize=11 if one == PRICED else 7,
        )
        for one in policies
    ]
    colours = [
        Line2D([], [], color=_COLOURS[one], linewidth=5, label=RECALL_WORDS[one])
        for one in RECALLS
        if one in recalls
    ]
    return [*marks, *colours]


def legend_above(figure: "drawn.Figure", axes: "Axes") -> None:
    """Say above the figure what the lines of one of its axes are."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=2, frameon=False,
                  fontsize=SMALL_PT, labelcolor=INK)  # fmt: skip

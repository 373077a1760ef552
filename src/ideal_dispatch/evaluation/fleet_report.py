"""The page of a fleet: what second units bring, what they cost the others, and when to stop."""

import os
from collections.abc import Sequence
from typing import Any

from ideal_dispatch.dispatch.recall import RECALLS, Recall
from ideal_dispatch.evaluation.fleet_figures import (
    RECALL_WORDS,
    hours,
    over_fleet,
    over_load,
    trade,
)
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
from ideal_dispatch.evaluation.table import Cell, Column, Table
from ideal_dispatch.fleet.results import MANY_YEARS
from ideal_dispatch.pages import figure_url, save_page

PAGE = "fleet.html"
STOOD_DOWN: Recall = "first arrival"
"""The rule of recall that is told first: most centres can do it."""

MANY_QUEUED = 0.1
"""A fleet is too small for its calls where so many wait for a free unit without seconds."""

_NOISE_S = 0.05

_RULE = (Column("who gets a second"), Column("unit that is not first"))
_SAVED = (Column("more survivors", 1, signed=True, arrow="↑"), Column("± s.e.", 1))
_LATER = (Column("others wait longer, s", 1, signed=True, arrow="↓"), Column("± s.e., s", 1))


def write_fleet_report(runs: FleetRuns, page: str | os.PathLike[str]) -> None:
    """Write the page of the runs of a fleet."""
    loads = [group for group in runs.by_load() if len(group) > 1]
    save_page(
        page,
        "fleet.html",
        about=about(runs),
        big_numbers=big_numbers(runs.main),
        caveats=caveats(runs),
        words=answer(runs.main),
        auditor=[auditor_table(group) for group in runs.by_load()],
        trades=[(group[0], figure_url(trade(group))) for group in runs.by_load()],
        loads=[(group[0], figure_url(over_load(group))) for group in loads],
        harm=harm_table(runs),
        fleets=[(group[0], figure_url(over_fleet(group))) for group in runs.by_fleet()],
        one_more=one_more_table(runs),
        hours=figure_url(hours(runs.main)) if runs.main.with_seconds else "",
        main=runs.main,
        details=[
            (one.name, [policy_table(one), unit_table(one), priority_table(one)])
            for one in runs.settings
        ],
        notes=runs.notes,
    )


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
        for run in _ordered(setting)
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
        for run in _ordered(setting)
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


def _ordered(setting: Setting) -> list[FleetRun]:
    return [setting.never, *setting.with_seconds]


def _recall_words(run: FleetRun) -> str:
    return "–" if run.policy == NEVER else RECALL_WORDS[run.recall]


def _bold(rows: Sequence[Sequence[Any]]) -> frozenset[int]:
    return frozenset(number for number, row in enumerate(rows) if row[0] == PRICED)


# --- words ------------------------------------------------------------------------------


def about(runs: FleetRuns) -> str:
    """Which fleets, how many years, in a line."""
    settings = runs.settings
    cities = " and ".join(dict.fromkeys(one.city for one in settings))
    units = sorted({one.units for one in settings})
    return (
        f"{cities}; fleets of {', '.join(map(str, units))} units; "
        f"{years_told(settings, 'simulated ')} under each rule, the same calls under all"
    )


def years_told(settings: Sequence[Setting], kind: str = "") -> str:
    """How many years there are of every rule: "1 year", "3 to 20 years"."""
    years = {run.years for one in settings for run in one.runs}
    fewest, most = min(years), max(years)
    number = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return f"{number} {kind}{'year' if most == 1 else 'years'}"


def big_numbers(setting: Setting) -> list[tuple[str, str]]:
    """What a chief wants to know first, for the main setting."""
    facts = []
    kept, none = (setting.find(ALWAYS, recall) for recall in (STOOD_DOWN, RECALLS[0]))
    if kept is not None:
        facts += [
            ("more survivors per 1,000 arrests, if two are always sent", f"{_more(kept)}"),
            (
                "change in the mean wait of the other calls, if the second is stood down when the "
                "first arrives",
                _later(setting, kept),
            ),
        ]
    if none is not None:
        facts.append(("the same, if the second is never stood down", _later(setting, none)))
    if kept is not None and none is not None:
        facts.append(
            ("minutes that a second costs, stood down; never stood down: "
             f"{none.second_unit_minutes:.1f}", f"{kept.second_unit_minutes:.1f}")
        )  # fmt: skip
    priced = setting.find(PRICED, STOOD_DOWN)
    if priced is not None:
        facts.append(
            ("of entitled calls get a second by its price; more survivors then: "
             f"{_more(priced)}", f"{100 * priced.second_share:.0f} %")
        )  # fmt: skip
    return facts


def answer(setting: Setting) -> list[str]:
    """The auditor's question answered for one setting, a paragraph each."""
    kept, none = (setting.find(ALWAYS, recall) for recall in (STOOD_DOWN, RECALLS[0]))
    lines = []
    if kept is not None:
        share = (
            "every cardiac arrest" if setting.entitled <= 1.1 * _arrest_share(setting)
            else f"every call of the {100 * setting.entitled:.0f} % that are entitled"
        )  # fmt: skip
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


def _arrest_share(setting: Setting) -> float:
    never = setting.never
    return never.a_year("arrests") / never.calls_a_year


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


def _later(setting: Setting, run: FleetRun) -> str:
    return f"{later_told(setting, run)} s"


def _wait(setting: Setting, run: FleetRun) -> str:
    later_s = setting.others_later_s(run)
    if later_s is None:
        return "do not exist: all are entitled to a second"
    if abs(later_s) < _NOISE_S:
        return "wait as long as before, to a tenth of a second"
    error = "" if run.others_se_s is None else f" ± {run.others_se_s:.1f}"
    told = f"wait {abs(later_s):.1f}{error} s {'longer' if later_s > 0.0 else 'less'} in the mean"
    if setting.others_surely_sooner(run):
        told += ": units that were stood down are on the street"
    return told

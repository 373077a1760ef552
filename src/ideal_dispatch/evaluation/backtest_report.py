"""A backtest as a report for a centre: what would have been advised, beside what was done."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.evaluation.backtest import Backtest
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.drawing import map_legend, map_of_places
from ideal_dispatch.pages import ACCENT, INK, MUTED, SMALL_PT, VERMILLION, plain_axes
from ideal_dispatch.report import (
    Cell,
    Column,
    Figure,
    Report,
    Section,
    Table,
    clock,
    rows_csv,
)

if TYPE_CHECKING:
    import matplotlib.figure as drawn

PAGE = "backtest.html"
_THRESHOLDS_S = (2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0)
_STATIONS = 15


def write_backtest(
    found: Backtest, folder: str | os.PathLike[str], network: RoadNetwork | None = None
) -> list[Path]:
    """Write page, tables, figures and every call as backtest.csv into a folder; gives the files."""
    others = {"backtest.csv": rows_csv(call_rows(found))}
    return backtest_report(found, network).save(folder, PAGE, others)


def backtest_report(found: Backtest, network: RoadNetwork | None = None) -> Report:
    """The advice for every call of the month, beside what was done."""
    advised, start = found.advised, found.settings.start
    gain_s = found.gain_s[advised]
    agreed = [p in s.split(" + ") for p, s in zip(found.primary, found.stations, strict=True)]
    left_out = sorted(found.left_out.items(), key=lambda item: -item[1])
    return Report(
        f"Backtest of {start:%B %Y}",
        f"{found.log.provenance.get('source', 'a unit log')}: {len(found):,} calls; ideal rests on "
        f"{found.words}, learned before {start}",
        [
            ("calls in the month", f"{len(found):,}"),
            (f"of calls would get a second unit, {advised.sum() / found.days:.1f} a day",
             f"{100 * advised.mean():.0f} %"),
            ("sooner on those calls, as expected",
             f"{gain_s.mean():.0f} s" if gain_s.size else "–"),
            ("of calls had the advised primary among the units sent",
             f"{100 * np.mean(agreed):.0f} %"),
            ("of calls got two units or more", f"{100 * (found.sent > 1).mean():.0f} %"),
        ],
        [
            "The advice assumes that every station has a unit free; a desk in service knows which "
            "are.",
            "A second unit may be needed elsewhere at that time; a backtest does not see it.",
        ],
        [
            Section.of(
                "Advice, and what was done",
                "For every call of the month: which unit would have been advised to go, whether a "
                "second unit would have been sent along and from where, beside what was done. A "
                "second unit is advised where it is expected to bring help at least "
                f"{found.threshold_s:.1f} s sooner, on average: mostly it brings nothing, "
                "sometimes minutes. The advice knew only what was known before the month.",
                done_table(found),
            ),
            Section.of(
                "What it would cost", threshold_table(found),
                Figure("hours", "Calls and advised second units by hour", by_hour(found),
                       "A day of the month, on average."),
                hour_table(found), station_table(found),
            ),
            Section.of("Where", Figure(
                "map", "Calls of the month", call_map(found, network),
                "Orange where a second unit would have been sent.",
            )),
            Section.of("What to know", tuple(
                [f"{n:,} calls are not in here: {why}." for why, n in left_out]
                + [f"About the log: {note}." for note in found.log.provenance.get("notes", ())]
                + ["backtest.csv has every call."]
            )),
        ],
    )  # fmt: skip


def call_rows(found: Backtest) -> dict[str, Any]:
    """Columns with a row for each call: the advice, what was sent, what happened."""
    of_call = {name: found.of_call(name) for name in ("incident", "local", "district", "call_kind")}
    return of_call | {
        "advised_primary": found.primary,
        "primary_expected_s": np.round(found.expected_s[:, 0], 1),
        "advised_second": np.where(found.advised, found.second, ""),
        "best_second": found.second,
        "second_expected_s": np.round(found.expected_s[:, 1], 1),
        "second_first_probability": np.round(found.second_first, 4),
        "expected_gain_s": np.round(found.gain_s, 2),
        "send_second": found.advised.astype(int),
        "units_sent": found.sent,
        "sent_from": found.stations,
        "units_arrived": found.arrived,
        "first_arrival_s": found.first_s,
        "advised_primary_took_s": found.took_s[:, 0],
        "best_second_took_s": found.took_s[:, 1],
    }


# --- tables ---------------------------------------------------------------------------


def done_table(found: Backtest) -> Table:
    """Advice beside what was done, and what came of it where both advised units went."""
    rows: list[tuple[Cell, ...]] = []
    for label, here in (
        ("send a second", found.advised),
        ("one is enough", ~found.advised),
        ("all calls", np.ones(len(found), bool)),
    ):
        known = here & found.raced
        first_s = found.first_s[here & ~np.isnan(found.first_s)]
        worth: tuple[Cell, ...] = (None, None, None)
        if known.any():
            saved_s = found.saved_s[known]
            worth = float((saved_s > 0).mean()), float(saved_s.mean()), found.gain_s[known].mean()
        rows.append(
            (label, int(here.sum()), int((found.sent[here] == 1).sum()),
             int((found.sent[here] > 1).sum()), clock(first_s.mean()) if first_s.size else None,
             int(known.sum()), *worth)
        )  # fmt: skip
    return Table(
        "done",
        "Advice, and what was done",
        (Column("advice"), Column("calls"), Column("one unit sent"), Column("two or more sent"),
         Column("first arrival, mean"), Column("both advised units arrived"),
         Column("second first %", 0, percent=True), Column("saved s, those calls"),
         Column("expected s, those calls")),
        tuple(rows),
        note="What a second unit is worth is known only where both advised units were sent and "
        "arrived. Those calls were not drawn at random: the centre chose them.",
    )  # fmt: skip


def threshold_table(found: Backtest) -> Table:
    """What other thresholds would have asked for."""
    rows: list[tuple[Cell, ...]] = []
    own_s = round(found.threshold_s, 1)
    for limit_s in sorted({*_THRESHOLDS_S, own_s}):
        here = found.advised if limit_s == own_s else np.asarray(found.gain_s >= limit_s)
        if not here.any():
            continue
        known = here & found.raced
        total_s = float(found.gain_s[here].sum())
        rows.append(
            (f"{limit_s:.1f} s", float(here.mean()), float(here.sum() / found.days),
             total_s / len(found), total_s / here.sum(), int(known.sum()),
             float(found.saved_s[known].mean()) if known.any() else None)
        )  # fmt: skip
    return Table(
        "thresholds",
        "How many second units, by threshold",
        (Column("send where the expected gain is at least"), Column("% of calls", 0, percent=True),
         Column("second units a day"), Column("expected s sooner per call"),
         Column("expected s per second unit"), Column("known calls"), Column("saved s, those")),
        tuple(rows),
        frozenset(i for i, row in enumerate(rows) if row[0] == f"{own_s:.1f} s"),
    )  # fmt: skip


def hour_table(found: Backtest) -> Table:
    """When second units would be asked for."""
    hours = found.of_call("hour")
    rows: list[tuple[Cell, ...]] = []
    for start in range(0, 24, 3):
        here = (hours >= start) & (hours < start + 3)
        if here.any():
            both = here & found.advised
            rows.append(
                (f"{start}–{start + 3} h", int(here.sum()), float(found.advised[here].mean()),
                 float(both.sum() / found.days), float(found.gain_s[both].sum() / here.sum()))
            )  # fmt: skip
    return Table(
        "hours",
        "When second units would be asked for",
        (Column("hour of the day"), Column("calls"), Column("second advised %", 0, percent=True),
         Column("second units a day", 2), Column("expected s sooner per call")),
        tuple(rows),
    )  # fmt: skip


def station_table(found: Backtest) -> Table:
    """Whose units would be called out as a second."""
    sent = np.array([name for one in found.stations for name in one.split(" + ")])
    names, counts = np.unique(found.second[found.advised], return_counts=True)
    rows: list[tuple[Cell, ...]] = []
    for place in np.argsort(-counts, kind="stable")[:_STATIONS]:
        name, count = str(names[place]), int(counts[place])
        primary = int((found.primary == name).sum())
        rows.append((name, primary, count, count / found.days, int((sent == name).sum())))
    return Table(
        "stations",
        f"Stations that would send a second unit most often, of {names.size:,}",
        (Column("station"), Column("advised as primary"), Column("advised as second"),
         Column("as second, a day", 2), Column("units it sent")),
        tuple(rows),
    )  # fmt: skip


# --- figures --------------------------------------------------------------------------


def by_hour(found: Backtest) -> "drawn.Figure":
    """Calls by hour, and those with a second unit."""
    figure, (axes,) = plain_axes(1, 3.0)
    hours, each = found.of_call("hour"), np.arange(24)
    calls = np.bincount(hours, minlength=24) / found.days
    advised = np.bincount(hours[found.advised], minlength=24) / found.days
    axes.bar(each, calls, color=MUTED, alpha=0.45, width=0.85, label="calls")
    axes.bar(each, advised, color=ACCENT, width=0.85, label="second unit advised")
    axes.set(xlabel="hour of the day", ylabel="a day", xlim=(-0.7, 23.7))
    axes.set_xticks(range(0, 24, 3))
    axes.legend(frameon=False, fontsize=SMALL_PT, labelcolor=INK)
    return figure


def call_map(found: Backtest, network: RoadNetwork | None) -> "drawn.Figure":
    """Where second units would be sent."""
    lon, lat, advised = found.of_call("lon"), found.of_call("lat"), found.advised
    figure, axes = map_of_places(lon, lat, network)
    for here, size, colour, label in (
        (~advised, 9, MUTED, "one is enough"), (advised, 22, VERMILLION, "send a second")
    ):  # fmt: skip
        axes.scatter(lon[here], lat[here], s=size, color=colour, linewidths=0.4, alpha=0.8,
                     edgecolors="white", zorder=3, label=f"{label} ({int(here.sum()):,})"
                     )  # fmt: skip
    map_legend(axes)
    return figure

"""What ``ideal backtest`` writes: every call as CSV, tables, and one page for a centre."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import BoolArray
from ideal_dispatch.evaluation.backtest import Backtest
from ideal_dispatch.evaluation.call_maps import clock
from ideal_dispatch.evaluation.race_report import csv_cell
from ideal_dispatch.evaluation.report import make_folders, save_drawn
from ideal_dispatch.evaluation.table import Cell, Column, Table
from ideal_dispatch.files import write_csv
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.drawing import map_legend, map_of_places
from ideal_dispatch.pages import (
    ACCENT,
    INK,
    MUTED,
    SMALL_PT,
    VERMILLION,
    figure_url,
    plain_axes,
    save_page,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILES = ("backtest.csv", "backtest.html", "tables", "figures")
_THRESHOLDS_S = (2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0)
_STATIONS = 15


def write_backtest(
    found: Backtest, folder: str | os.PathLike[str], network: RoadNetwork | None = None
) -> list[Path]:
    """Write everything into a folder, made where it is not there; gives the files."""
    where = make_folders(folder)
    made = [where / FILES[0]]
    write_calls(found, made[0])
    tables = {table.name: table for table in backtest_tables(found)}
    for table in tables.values():
        made += table.save(where / "tables")
    drawn = {}
    for name, figure in (("hours", by_hour(found)), ("map", call_map(found, network))):
        made += save_drawn(figure, where / "figures" / name)
        drawn[name] = figure_url(figure)
    page = where / FILES[1]
    save_page(
        page,
        "backtest.html",
        month=f"{found.settings.start:%B %Y}",
        about=(
            f"{found.log.provenance.get('source', 'a unit log')}: {len(found):,} calls; ours rests "
            f"on {found.words}, learned before {found.settings.start}"
        ),
        threshold=f"{found.threshold_s:.1f} s",
        big_numbers=big_numbers(found),
        tables=tables,
        drawn=drawn,
        left_out=sorted(found.left_out.items(), key=lambda item: -item[1]),
        notes=found.log.provenance.get("notes", ()),
    )
    return [*made, page]


def write_calls(found: Backtest, path: Path) -> None:
    """A row a call: the advice, what was sent, what happened."""
    columns: dict[str, Any] = {
        name: found.of_call(name) for name in ("incident", "local", "district", "call_kind")
    }
    columns |= {
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
    rows = zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True)
    write_csv(path, list(columns), ([csv_cell(value) for value in row] for row in rows))


def big_numbers(found: Backtest) -> list[tuple[str, str]]:
    """What a centre asks first."""
    advised, n = found.advised, len(found)
    agreed = _primary_sent(found)
    gain = found.gain_s[advised]
    facts = [
        ("calls in the month", f"{n:,}"),
        (
            f"of calls would get a second unit, {advised.sum() / found.days:.1f} a day",
            f"{100 * advised.mean():.0f} %",
        ),
        (
            "sooner on those calls, as expected",
            f"{gain.mean():.0f} s" if gain.size else "–",
        ),
        (
            "of calls had the advised primary among the units sent",
            f"{100 * agreed.mean():.0f} %",
        ),
        (
            "of calls got two units or more as it was",
            f"{100 * (found.sent > 1).mean():.0f} %",
        ),
    ]
    return [(words.replace(" %", "\u00a0%"), value) for words, value in facts]


def _primary_sent(found: Backtest) -> BoolArray:
    return np.array(
        [p in s.split(" + ") for p, s in zip(found.primary, found.stations, strict=True)], bool
    )


# --- tables ---------------------------------------------------------------------------


def backtest_tables(found: Backtest) -> list[Table]:
    """All tables, in the order of the page."""
    return [done_table(found), threshold_table(found), hour_table(found), station_table(found)]


def done_table(found: Backtest) -> Table:
    """Advice beside what was done, and what came of it where both advised units went."""
    columns = (
        Column("advice"), Column("calls"), Column("one unit sent"), Column("two or more sent"),
        Column("first arrival, mean"), Column("both advised units arrived"),
        Column("second first %", 0, percent=True), Column("saved s, those calls"),
        Column("expected s, those calls"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for label, here in (
        ("send a second", found.advised),
        ("one is enough", ~found.advised),
        ("all calls", np.ones(len(found), bool)),
    ):
        known = here & found.raced
        first_s = found.first_s[here & ~np.isnan(found.first_s)]
        rows.append(
            (label, int(here.sum()), int((found.sent[here] == 1).sum()),
             int((found.sent[here] > 1).sum()), clock(first_s.mean()) if first_s.size else None,
             int(known.sum()),
             float((found.saved_s[known] > 0).mean()) if known.any() else None,
             float(found.saved_s[known].mean()) if known.any() else None,
             float(found.gain_s[known].mean()) if known.any() else None)
        )  # fmt: skip
    note = (
        "What a second unit is worth is known only where both advised units were sent and arrived. "
        "Those calls were not drawn at random: the centre chose them."
    )
    return Table("done", "Advice, and what was done", columns, tuple(rows), note=note)


def threshold_table(found: Backtest) -> Table:
    """What other thresholds would have asked for."""
    columns = (
        Column("send where the expected gain is at least"), Column("% of calls", 0, percent=True),
        Column("second units a day"), Column("expected s sooner per call"),
        Column("expected s per second unit"), Column("known calls"), Column("saved s, those"),
    )  # fmt: skip
    limits = sorted({*_THRESHOLDS_S, round(found.threshold_s, 1)})
    rows: list[tuple[Cell, ...]] = []
    for limit in limits:
        own = limit == round(found.threshold_s, 1)
        here = found.advised if own else np.asarray(found.gain_s >= limit)
        if not here.any():
            continue
        known = here & found.raced
        total = float(found.gain_s[here].sum())
        rows.append(
            (f"{limit:.1f} s", float(here.mean()), float(here.sum() / found.days),
             total / len(found), total / here.sum(), int(known.sum()),
             float(found.saved_s[known].mean()) if known.any() else None)
        )  # fmt: skip
    bold = frozenset(i for i, row in enumerate(rows) if row[0] == f"{found.threshold_s:.1f} s")
    title = "How many second units, by threshold"
    return Table("thresholds", title, columns, tuple(rows), bold)


def hour_table(found: Backtest) -> Table:
    """When second units would be asked for."""
    hours = found.of_call("hour")
    columns = (
        Column("hour of the day"), Column("calls"), Column("second advised %", 0, percent=True),
        Column("second units a day", 2), Column("expected s sooner per call"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for start in range(0, 24, 3):
        here = (hours >= start) & (hours < start + 3)
        if here.any():
            both = here & found.advised
            rows.append(
                (f"{start}–{start + 3} h", int(here.sum()), float(found.advised[here].mean()),
                 float(both.sum() / found.days), float(found.gain_s[both].sum() / here.sum()))
            )  # fmt: skip
    return Table("hours", "When second units would be asked for", columns, tuple(rows))


def station_table(found: Backtest) -> Table:
    """Whose units would be called out as a second."""
    columns = (
        Column("station"), Column("advised as primary"), Column("advised as second"),
        Column("as second, a day", 2), Column("units it sent"),
    )  # fmt: skip
    sent = np.array([name for one in found.stations for name in one.split(" + ")])
    second = found.second[found.advised]
    names, counts = np.unique(second, return_counts=True)
    rows: list[tuple[Cell, ...]] = []
    for place in np.argsort(-counts, kind="stable")[:_STATIONS]:
        name, count = str(names[place]), int(counts[place])
        primary = int((found.primary == name).sum())
        rows.append((name, primary, count, count / found.days, int((sent == name).sum())))
    title = f"Stations that would send a second unit most often, of {names.size:,}"
    return Table("stations", title, columns, tuple(rows))


# --- figures --------------------------------------------------------------------------


def by_hour(found: Backtest) -> "Figure":
    """Calls by hour, and those with a second unit."""
    figure, (axes,) = plain_axes(1, 3.0)
    hours = found.of_call("hour")
    calls = np.bincount(hours, minlength=24) / found.days
    advised = np.bincount(hours[found.advised], minlength=24) / found.days
    axes.bar(np.arange(24), calls, color=MUTED, alpha=0.45, width=0.85, label="calls")
    axes.bar(np.arange(24), advised, color=ACCENT, width=0.85, label="second unit advised")
    axes.set(xlabel="hour of the day", ylabel="a day", xlim=(-0.7, 23.7))
    axes.set_xticks(range(0, 24, 3))
    axes.legend(frameon=False, fontsize=SMALL_PT, labelcolor=INK)
    return figure


def call_map(found: Backtest, network: RoadNetwork | None) -> "Figure":
    """Where second units would be sent."""
    lon, lat = found.of_call("lon"), found.of_call("lat")
    figure, axes = map_of_places(lon, lat, network)
    advised = found.advised
    axes.scatter(lon[~advised], lat[~advised], s=9, color=MUTED, linewidths=0, zorder=3,
                 label=f"one is enough ({int((~advised).sum()):,})")  # fmt: skip
    axes.scatter(lon[advised], lat[advised], s=22, color=VERMILLION, linewidths=0.4, alpha=0.8,
                 edgecolors="white", zorder=4,
                 label=f"send a second ({int(advised.sum()):,})")  # fmt: skip
    map_legend(axes)
    return figure

"""Runs side by side: the same strategies in other cities, seeds or settings."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import ArrivalSummary, Interval, day_interval
from ideal_dispatch.evaluation.report import caveats, make_folders, save_drawn
from ideal_dispatch.evaluation.result_tables import WORLD_WORDS
from ideal_dispatch.evaluation.strategies import VOLUMES
from ideal_dispatch.evaluation.table import Cell, Column, Table
from ideal_dispatch.pages import MUTED, PALETTE, SMALL_PT, figure_url, plain_axes, save_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_comparison(runs: Sequence[Judged], folder: str | os.PathLike[str]) -> list[Path]:
    """Write tables, a figure and ``comparison.html`` of several runs; gives the files."""
    shown, where = worlds(runs), make_folders(folder)
    made: list[Path] = []
    parts = []
    for world in shown:
        tables = [arrival_comparison(runs, world), saving_comparison(runs, world)]
        tables = [table for table in tables if table.rows]
        for table in tables:
            made += table.save(where / "tables")
        saving = ""
        if any("interval" in run.outcomes.roles for run in runs):
            figure = saving_figure(runs, world)
            saving = figure_url(figure)
            made += save_drawn(figure, where / "figures" / f"saving-{world}")
        parts.append((WORLD_WORDS[world], tables, saving))
    named = list(zip(names(runs), runs, strict=True))
    save_page(
        where / "comparison.html",
        "comparison.html",
        names=names(runs),
        caveats=[f"{name}: {line}" for name, run in named for line in caveats(run)],
        worlds=parts,
    )
    return [*made, where / "comparison.html"]


def names(runs: Sequence[Judged]) -> list[str]:
    """The runs' names, numbered where two are the same."""
    given = [run.outcomes.name for run in runs]
    return [
        name if given.count(name) == 1 else f"{name} ({given[:i].count(name) + 1})"
        for i, name in enumerate(given)
    ]


def worlds(runs: Sequence[Judged]) -> list[str]:
    """Worlds that at least one run was judged in."""
    if not runs:
        raise InputError("no run to compare; name at least one")
    return sorted({world for run in runs for world in run.outcomes.worlds})


def arrival_comparison(runs: Sequence[Judged], world: str) -> Table:
    """Mean and P95 arrival of the main strategies, two columns a run."""
    cells: dict[str, list[Cell]] = {}
    bold: set[str] = set()
    for place, run in enumerate(runs):
        if world not in run.outcomes.worlds:
            continue
        for row in run.rows(run.main):
            found = ArrivalSummary.of(row.arrival_s[world])
            line = cells.setdefault(row.label, [None] * (2 * len(runs)))
            line[2 * place : 2 * place + 2] = [found.mean_s, found.p95_s]
            if row.policy == run.own:
                bold.add(row.label)
    columns = [Column("strategy")]
    for name in names(runs):
        columns += [
            Column(f"{name}: mean s", 2, arrow="↓"), Column(f"{name}: P95 s", 2, arrow="↓")
        ]  # fmt: skip
    return Table(
        f"comparison-arrival-{world}",
        f"Driving time of the first ambulance to arrive in {WORLD_WORDS[world]}",
        tuple(columns),
        tuple((label, *line) for label, line in cells.items()),
        frozenset(i for i, label in enumerate(cells) if label in bold),
    )


def saving_comparison(runs: Sequence[Judged], world: str) -> Table:
    """Seconds saved against interval-selective, a column a run."""
    found = [_savings(run, world) for run in runs]
    labels = dict.fromkeys(label for one in found for label in one)
    rows = tuple((label, *(one.get(label) for one in found)) for label in labels)
    return Table(
        f"comparison-saving-{world}",
        f"Seconds saved per call against interval-selective in {WORLD_WORDS[world]}",
        (Column("strategy"), *(Column(name, 2, signed=True) for name in names(runs))),
        rows,
        note="Mean over all calls with a 95 % interval that draws whole days.",
    )


def saving_figure(runs: Sequence[Judged], world: str) -> "Figure":
    """The intervals of :func:`saving_comparison`, a colour a run."""
    found = [_savings(run, world) for run in runs]
    labels = list(dict.fromkeys(label for one in found for label in one))
    figure, (axes,) = plain_axes(1, 0.9 + len(labels) * (0.12 + 0.13 * len(runs)))
    for number, (name, one) in enumerate(zip(names(runs), found, strict=True)):
        shift = 0.7 * ((number + 0.5) / len(runs) - 0.5)
        for label, interval in one.items():
            place = labels.index(label) + shift
            axes.errorbar(
                interval.mean, place, fmt="o", markersize=5, linewidth=1.6,
                xerr=[[interval.mean - interval.low], [interval.high - interval.mean]],
                color=PALETTE[number % len(PALETTE)],
                label=name if label == next(iter(one)) else None,
            )  # fmt: skip
    axes.axvline(0, color=MUTED, linewidth=1)
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlabel("seconds saved per call against interval-selective")
    figure.legend(loc="outside upper left", ncols=4, frameon=False, fontsize=SMALL_PT)
    return figure


def _savings(run: Judged, world: str) -> dict[str, Interval]:
    """By strategy; nothing where there is no interval policy or not this world."""
    outcomes = run.outcomes
    reference = outcomes.roles.get("interval")
    if reference is None or world not in outcomes.worlds:
        return {}
    found = {}
    for name in run.rivals(reference):
        for share in VOLUMES:
            saved = run.saved_s(name, reference, share, world)
            label = run.at(name, share).label
            found[label] = day_interval(saved, outcomes.day, seed=run.seed)
    return found

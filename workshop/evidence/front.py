"""The table and the figure of docs/evidence.md, from the CSV files beside it.

``python -m workshop.evidence.front`` makes both again; nothing is run for it.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ideal_dispatch.evaluation.metrics import Interval
from ideal_dispatch.evaluation.table import Cell, Column, Table
from ideal_dispatch.pages import ACCENT, GREEN, INK, MUTED, ORANGE, PURPLE, plain_axes
from ideal_dispatch.replay.drive import World
from workshop.evidence.pages import FOLDER, markdown, read_csv
from workshop.page_parts import replace_part
from workshop.pictures import save_figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Sequence[Mapping[str, str]]

FIGURE = "evidence"
FIRST, LEFT_OUT = "Hong Kong Island", "North-west Hong Kong Island (undirected)"
VOLUME = "+50 %"
MOST_S = (15.0, 3.6)  # one scale for a row, volatile evenings above: small gains shall look small
LINES = {
    "ideal": ("ideal, ours", ACCENT, "-", 2.4),
    "interval": ("interval-selective", ORANGE, (0, (5, 1.5)), 1.8),
    "paper": ("the paper's rule as printed", PURPLE, (0, (1.2, 1.2)), 1.8),
    "random": ("a second on random calls", MUTED, "-", 1.2),
}
"""Policies of the figure: name for people, colour, dashes and width."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--page", type=Path, default=FOLDER.with_suffix(".md"))
    parser.add_argument("--csv", type=Path, default=FOLDER, help="folder of the CSV files")
    given = parser.parse_args()
    arrival, saved = (read_csv(given.csv / f"{name}.csv") for name in ("arrival", "saved"))
    table = summary(arrival, saved)
    replace_part(given.page, "summary", f"{markdown(table)}\n\n{table.note}")
    save_figures({FIGURE: sooner(arrival)}, given.page.parent / "images")


def summary(arrival: Rows, saved: Rows) -> Table:
    """A row for each experiment: mean driving times, and the comparison that counts."""
    rows: list[tuple[Cell, ...]] = []
    for experiment, of in _experienced(arrival).items():
        reached, means = ({row["strategy"]: float(row[name]) for row in of}
                          for name in ("reached %", "mean s"))  # fmt: skip
        (own,) = (
            row for row in _experienced(saved)[experiment]
            if (row["policy"], row["target"]) == ("ideal", VOLUME)
        )  # fmt: skip
        against = "at matched volume s, t"
        half = (f"{policy}, {VOLUME}" for policy in ("interval", "ideal"))
        rows.append((
            experiment, means["router"],
            *(f"{means[one]:.1f} ({reached[one]:.0f} %)" for one in half),
            means["router-dual"], means["paper, dual"],
            Interval(*(float(own[f"{against}{end}"]) for end in ("", " low", " high"))),
        ))  # fmt: skip
    names = (
        "one ambulance", f"interval-selective, {VOLUME}", f"ideal, {VOLUME}", "always two",
        "always two: paper's rule",
    )  # fmt: skip
    return Table(
        "summary",
        "Mean seconds from departure to the first arrival, ten or twelve test days each",
        (Column("place"), *(Column(name, 1) for name in names),
         Column("ideal sooner than interval-selective, as many sent", 2, signed=True)),
        tuple(rows),
        note=f"One ambulance: the router's choice. {VOLUME}: a second one was meant to go to half "
        "of the calls; in brackets, the share that got one. Always two: paper's rule: every call "
        "gets the second one that the paper's rule considers. The last column is not the "
        "difference of two others: it compares both rules with exactly as many second ambulances. "
        "Its 95 % interval is over days; where all of it is above zero, the lead is more than "
        "chance.",
    )  # fmt: skip


def sooner(arrival: Rows) -> "Figure":
    """How much sooner the first ambulance comes, by how many calls get a second one."""
    experiments = _experienced(arrival)
    figure, panels = plain_axes(len(experiments), 7.2, rows=2)
    across = -(-len(experiments) // 2)
    for number, (axes, (name, rows)) in enumerate(zip(panels, experiments.items(), strict=True)):
        _panel(axes, name, rows, MOST_S[not name.startswith(FIRST)])
        if number % across == 0:
            axes.set_ylabel("seconds sooner\nthan one ambulance")
        if number >= across:
            axes.set_xlabel("% of calls with a second")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=3, frameon=False,
                  fontsize=11, handlelength=3.0)  # fmt: skip
    return figure


def _panel(axes: "Axes", name: str, rows: Rows, most_s: float) -> None:
    points = {row["strategy"]: (float(row["reached %"]), float(row["mean s"])) for row in rows}
    alone = points["router"][1]
    for policy, (label, colour, dashes, width) in LINES.items():
        found = [points[one] for one in points if one.partition(", ")[0] == policy]
        if policy == "interval":
            found.append(points["router-dual"])  # the same second, sent to every call
        if f"{policy}, single" not in points:
            found.append((0.0, alone))  # its first ambulance is the router's
        found.sort()
        axes.plot([x for x, _ in found], [alone - y for _, y in found], label=label, color=colour,
                  linestyle=dashes, linewidth=width, marker="o", markersize=3.2)  # fmt: skip
    volume, mean = points["router-dual"]
    axes.plot(volume, alone - mean, marker="D", markersize=7, color=GREEN, linestyle="",
              label="always two, by the router", zorder=5)  # fmt: skip
    axes.axhline(0, color=MUTED, linewidth=0.8)
    axes.set(xlim=(-2, 104), ylim=(-0.045 * most_s, most_s), xticks=range(0, 101, 25))
    place, _, which = name.partition(", ")
    lines = (
        place,
        which.replace("ranges of days", "days' ranges"),
        f"one ambulance: {alone:.0f} s",
    )
    axes.set_title("\n".join(filter(None, lines)), fontsize=10, color=INK, loc="left")
    axes.grid(axis="y", color=MUTED, alpha=0.2)


def _experienced(rows: Rows) -> dict[str, list[Mapping[str, str]]]:
    """The rows in experienced traffic, by experiment: the paper's streets first, then the others.

    Those of its old undirected streets are left to their own pages.
    """
    found: dict[str, list[Mapping[str, str]]] = {}
    for row in sorted(rows, key=lambda row: not row["experiment"].startswith(FIRST)):
        if row["world"] == World.EXPERIENCED and not row["experiment"].startswith(LEFT_OUT):
            found.setdefault(row["experiment"], []).append(row)
    return found


if __name__ == "__main__":
    main()

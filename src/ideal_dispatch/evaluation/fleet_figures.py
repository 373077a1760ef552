"""The figures of a fleet: what second units bring and cost, over load and over fleet size."""

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
    Setting,
)
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RECALL_WORDS = {
    "none": "never stood down",
    "first arrival": "stood down at first arrival",
    "worth": "stood down by its price",
    "live": "stood down by its price, positions known",
}
"""What happens to the unit that does not come first, in words."""

_COLOURS = {"none": VERMILLION, "first arrival": ACCENT, "worth": GREEN, "live": PURPLE}
_MARKERS = "oDs^v<>P"
_DASHED = (0, (4, 1.5))
_LINES: dict[str, tuple[Any, str, int]] = {ALWAYS: ("-", "o", 6), PRICED: (_DASHED, "*", 9)}
_MOST_LOADS = 4

SURVIVORS = "more survivors\nper 1,000 arrests"
LATER = "the other calls wait longer,\nseconds in the mean"

Valued = Callable[[Setting, FleetRun], tuple[float, float | None]]
"""What is drawn of a run, and its standard error where it is known."""


def trade(settings: Sequence[Setting]) -> "Figure":
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


def over_load(settings: Sequence[Setting]) -> "Figure":
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


def over_fleet(settings: Sequence[Setting]) -> "Figure":
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


def hours(setting: Setting) -> "Figure":
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


def legend_above(figure: "Figure", axes: "Axes") -> None:
    """Say above the figure what the lines of one of its axes are."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=2, frameon=False,
                  fontsize=SMALL_PT, labelcolor=INK)  # fmt: skip

"""The figures of a replay's report, in the paper's form."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import cvar, regret_s
from ideal_dispatch.evaluation.strategies import AS_SET, BEATING, Strategy
from ideal_dispatch.pages import (
    ACCENT,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    SKY,
    SMALL_PT,
    VERMILLION,
    named_bars,
    plain_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROLE_COLOURS = {
    "region": MUTED,
    "router": INK,
    "interval": ORANGE,
    "router-dual": GREEN,
    "paper": PURPLE,
    "ideal": ACCENT,
}
_FREE_COLOURS = (VERMILLION, SKY, "#9C7A00")
_CONTROL_COLOURS = (SKY, VERMILLION, GREEN, MUTED, "#9C7A00", PURPLE, INK)
_DASHES = ((0, (4, 1.6)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))


@dataclass(frozen=True, slots=True)
class Style:
    """How a policy is drawn, in every figure alike."""

    colour: str
    dashes: Any = "-"
    width: float = 1.3


_ASIDE = Style("#c9ced4", width=1.0)


def styles(judged: Judged) -> Mapping[str, Style]:
    """A style per policy: solid for those of the story and your own, dashed for controls."""
    roles = {name: role for role, name in judged.outcomes.roles.items()}
    found = {
        name: Style(_ROLE_COLOURS[roles[name]], "-", 2.6 if roles[name] == "ideal" else 2.0)
        for name in judged.main
        if name in roles
    }
    for number, name in enumerate(judged.outcomes.free):
        found[name] = Style(_FREE_COLOURS[number % len(_FREE_COLOURS)], "-", 2.0)
    for number, name in enumerate(judged.others):
        turn, colour = divmod(number, len(_CONTROL_COLOURS))
        found[name] = Style(_CONTROL_COLOURS[colour], _DASHES[turn % len(_DASHES)])
    return found


def candidate_bars(judged: Judged) -> "Figure":
    """Candidate-optimal rates of the main strategies ([IDEAL] Figures 4 and 7).

    Below each policy that shall beat the baselines stands the least volume at which it does.
    """
    looks = styles(judged)
    rows: list[tuple[str, Strategy | None]] = []
    for name in judged.main or judged.others:
        rows += [(name, row) for row in judged.rows([name])]
        rows += [(name, None)] if name in judged.contenders else []
    rates, texts, labels = [], [], []
    for name, row in rows:
        point = row or judged.beating(name)
        rates.append(0.0 if point is None else 100 * judged.rate(point))
        volume = f" (+{100 * point.extra:.1f} %)" if point and row is None else ""
        texts.append("not reached" if point is None else f"{rates[-1]:.1f}{volume}")
        labels.append(f"{name}, {BEATING}" if row is None else row.label)
    figure, (axes,) = plain_axes(1, 0.8 + 0.27 * len(rows))
    named_bars(axes, labels, rates, texts, [looks[name].colour for name, _ in rows])
    axes.set(xlim=(0, 125), xlabel="candidate-optimal incidents (%)")
    axes.set_xticks(range(0, 101, 20))
    return figure


def pareto(judged: Judged) -> "Figure":
    """Mean and CVaR95 regret against dispatch volume, every policy."""
    looks = styles(judged)
    figure, (left, right) = plain_axes(2, 3.9)
    for name in (*judged.others, *judged.main):  # what matters lies on top
        for label, curve in judged.curves(name).items():
            for axes, values in ((left, curve.mean_regret_s), (right, curve.cvar95_regret_s)):
                _draw(axes, 1 + curve.extra, values, label, looks[name])
    late = regret_s(_router_s(judged), judged.outcomes.best_s["paper"])
    for axes, what, alone in (
        (left, "mean regret (s)", float(late.mean())),
        (right, "CVaR95 of regret (s)", cvar(late, 0.95)),
    ):
        axes.set(xlabel="ambulances per incident", ylabel=what, xlim=(0.97, 2.03))
        lowest = min(0.0, *(float(np.min(line.get_ydata())) for line in axes.lines))
        _frame(axes, 1.1 * lowest, max(1.2 * alone, 1.0))
    _legend(figure, left, judged)
    return figure


def regret_cdf(judged: Judged) -> "Figure":
    """Share of incidents with at most so much regret: one ambulance, and always two."""
    looks, rows, best_s = styles(judged), _ends(judged), judged.outcomes.best_s["paper"]
    figure, (axes,) = plain_axes(1, 3.6)
    late = {row.label: regret_s(row.arrival_s, best_s) for row in rows}
    end = max(60.0, float(max(np.quantile(x, 0.97) for x in late.values())))
    for row in rows:
        ordered = np.sort(late[row.label])
        share = 100 * np.arange(1, ordered.size + 1) / ordered.size
        shown = ordered <= end
        x = np.concatenate([ordered[:1], ordered[shown], [end]])
        y = np.concatenate([[0.0], share[shown], share[shown][-1:]])
        _steps(axes, x, y, row.label, looks[row.policy])
    least = 100 * min(float((x <= 0).mean()) for x in late.values())
    axes.set(xlim=(-0.015 * end, end), xlabel="regret (s)", ylabel="share of incidents (%)",
             ylim=(max(10 * np.floor(least / 10 - 0.5), 0), 100.5))  # fmt: skip
    axes.legend(frameon=False, fontsize=SMALL_PT, loc="lower right")
    return figure


def arrivals(judged: Judged) -> "Figure":
    """What second ambulances save against the router, and how many calls wait how long."""
    looks, alone_s = styles(judged), float(_router_s(judged).mean())
    figure, (left, right) = plain_axes(2, 3.9)
    for name in (*judged.others, *judged.main):
        style = _ASIDE if name in judged.others else looks[name]
        for label, curve in judged.curves(name).items():
            _draw(left, 100 * curve.extra, alone_s - curve.mean_arrival_s, label, style)
    left.axhline(0, color=MUTED, linewidth=0.8, zorder=1)
    highest = max(1.0, *(float(np.max(line.get_ydata())) for line in left.lines))
    left.set(xlabel="calls that get a second ambulance (%)", xlim=(-3, 103),
             ylabel="saved against the router alone (s)")  # fmt: skip
    _frame(left, -0.2 * highest, 1.1 * highest)
    _waiting(right, judged, looks)
    _legend(figure, left, judged, aside=True)
    return figure


# --- parts --------------------------------------------------------------------------


def _draw(axes: "Axes", x: FloatArray, y: FloatArray, label: str, style: Style) -> None:
    if x.size == 1:
        marker = "o" if label.endswith(AS_SET) else "D"
        axes.plot(x, y, color=style.colour, marker=marker, markersize=8, markeredgecolor="white",
                  linestyle="none", label=label, zorder=5)  # fmt: skip
    else:
        axes.plot(x, y, color=style.colour, linestyle=style.dashes, linewidth=style.width,
                  label=label, zorder=3)  # fmt: skip


def _frame(axes: "Axes", low: float, high: float) -> None:
    """Set the ends of the axis, with an arrow and a number for points beyond them."""
    axes.set_ylim(low, high)
    for line in axes.lines:
        x, y = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
        if x.size != 1 or low <= y[0] <= high:
            continue
        above = y[0] > high
        edge = high - 0.03 * (high - low) if above else low + 0.03 * (high - low)
        axes.plot(x, [edge], marker="^" if above else "v", markersize=8, color=line.get_color(),
                  markeredgecolor="white", zorder=6)  # fmt: skip
        axes.annotate(
            f"{line.get_label()}: {y[0]:.0f}".replace("-", "−"), (float(x[0]), edge),
            xytext=(8, 0), textcoords="offset points", va="center", fontsize=SMALL_PT, color=INK,
        )  # fmt: skip


def _waiting(axes: "Axes", judged: Judged, looks: Mapping[str, Style]) -> None:
    """Share of calls that still wait, on a scale that shows the last few."""
    rows = _ends(judged)
    least = 100 / max(len(judged.outcomes), 2)
    for row in rows:
        minutes = np.sort(row.arrival_s) / 60
        share = 100 * (1 - np.arange(1, minutes.size + 1) / minutes.size)
        _steps(axes, minutes, np.maximum(share, 0.5 * least), row.label, looks[row.policy])
    for limit in (8, 12):
        axes.axvline(limit, color=MUTED, linewidth=0.8, linestyle=_DASHES[0], zorder=1)
    middle = min(float(np.median(row.arrival_s)) for row in rows) / 60
    end = 1.2 * min(float(row.arrival_s.max()) for row in rows) / 60
    axes.set_yscale("log")
    ticks = [tick for tick in (50, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1) if tick >= least]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set(xlabel="driving time (min)", ylabel="calls not reached yet (%)",
             xlim=(0.9 * middle, end), ylim=(least, 60))  # fmt: skip
    axes.legend(frameon=False, fontsize=SMALL_PT, loc="upper right")


def _steps(axes: "Axes", x: FloatArray, y: FloatArray, label: str, style: Style) -> None:
    dashes = (0, (5, 1.5)) if label.endswith("single") else style.dashes
    axes.plot(x, y, drawstyle="steps-post", label=label, zorder=3, color=style.colour,
              linewidth=style.width - 0.3, linestyle=dashes)  # fmt: skip


def _ends(judged: Judged) -> list[Strategy]:
    """One-ambulance and always-dual rows of the main policies, or of all where none is one."""
    rows = judged.rows(judged.main or judged.others)
    return [row for row in rows if not row.form.startswith("+") and row.form != AS_SET]


def _router_s(judged: Judged) -> FloatArray:
    """Arrivals of the router's first ambulance, or of the first policy's where there is none."""
    name = judged.outcomes.roles.get("router", next(iter(judged.outcomes.policies)))
    return judged.outcomes.policy(name).primary_s


def _legend(figure: "Figure", axes: "Axes", judged: Judged, aside: bool = False) -> None:
    """Names above the figure; ``aside`` gives all controls one name."""
    handles, labels = axes.get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    shown = {name: named[name] for name in judged.main}
    if not aside:
        shown |= {name: named[name] for name in judged.others}
    elif judged.others:
        shown[f"{len(judged.others)} controls"] = named[judged.others[-1]]
    figure.legend(
        list(shown.values()), list(shown), loc="outside upper left",
        ncols=min(7 if aside else 5, len(shown)), frameon=False, fontsize=SMALL_PT,
        handlelength=2.6, labelcolor=INK,
    )  # fmt: skip

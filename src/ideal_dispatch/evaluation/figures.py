"""The figures of a run's report, in the paper's form: a row or a column for each world."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.evaluation.call_maps import DrawnDrive, draw_drives
from ideal_dispatch.evaluation.judged import Judged
from ideal_dispatch.evaluation.metrics import cvar, regret_s
from ideal_dispatch.evaluation.paper_issues import contests_of, issues
from ideal_dispatch.evaluation.strategies import AS_SET, BEATING, Strategy
from ideal_dispatch.network import RoadNetwork
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
from ideal_dispatch.replay.drive import World

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Progress = Callable[[str], None]

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

TITLES = {
    World.INSTANTANEOUS: "Instantaneous: what the router shows",
    World.EXPERIENCED: "Experienced: what really happens",
}


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


def report_figures(
    judged: Judged, network: RoadNetwork | None, progress: Progress
) -> "Iterator[tuple[str, Figure]]":
    """Names and figures; the map among the motivating ones needs the network."""
    progress("issues")
    yield from _issues(judged, network)
    made = {
        "arrivals": arrivals,
        "candidate-optimal": candidate_bars,
        "pareto": pareto,
        "regret-cdf": regret_cdf,
    }
    for name, make in made.items():
        progress(f"figure {name}")
        yield name, make(judged)
    if judged.outcomes.radii:
        progress("figure radii")
        yield "radii", radii(judged)


def _issues(judged: Judged, network: RoadNetwork | None) -> "Iterator[tuple[str, Figure]]":
    """The three issues of the paper's introduction, where the run has contested calls."""
    outcomes, world = judged.outcomes, World(judged.outcomes.worlds[-1])
    if (found := contests_of(outcomes)) is None:
        return
    contests, numbers = found
    yield "issues", issues([("this run", contests)])
    call = contests.most_telling(world)
    if network is not None and call is not None:
        entry = outcomes.entries({numbers[call]})[numbers[call]]
        pair = (("promised first", contests.favourite), ("promised second", contests.rival))
        drives = [DrawnDrive.of(who, entry, f"s{depot[call]}", world) for who, depot in pair]
        yield "forecast", draw_drives(network, entry["incident"]["node"], drives)


def candidate_bars(judged: Judged) -> "Figure":
    """Candidate-optimal rates of the main strategies ([IDEAL] Figures 4 and 7).

    Below each policy that shall beat the baselines stands the least volume at which it does.
    """
    worlds, looks = judged.outcomes.worlds, styles(judged)
    shown = judged.main or judged.others
    rows: list[tuple[str, Strategy | None]] = []
    for name in shown:
        rows += [(name, row) for row in judged.rows([name])]
        rows += [(name, None)] if name in judged.contenders else []
    figure, panels = plain_axes(len(worlds), 0.8 + 0.27 * len(rows))
    colours = [looks[name].colour for name, _ in rows]
    for axes, world in zip(panels, worlds, strict=True):
        rates, texts, labels = [], [], []
        for name, row in rows:
            point = row or judged.beating(name, world)
            rates.append(0.0 if point is None else 100 * judged.rate(point, world))
            volume = f" (+{100 * point.extra:.1f} %)" if point and row is None else ""
            texts.append("not reached" if point is None else f"{rates[-1]:.1f}{volume}")
            labels.append(f"{name}, {BEATING}" if row is None else row.label)
        named_bars(axes, labels if axes is panels[0] else [""] * len(rows), rates, texts, colours)
        axes.set(xlim=(0, 140), xlabel="candidate-optimal incidents (%)")
        axes.set_xticks(range(0, 101, 20))
        _title(axes, world)
    return figure


def pareto(judged: Judged) -> "Figure":
    """Mean and CVaR95 regret against dispatch volume, every policy."""
    worlds, looks = judged.outcomes.worlds, styles(judged)
    figure, panels = plain_axes(2 * len(worlds), _height_in(worlds), rows=len(worlds))
    for world, left, right in zip(worlds, panels[::2], panels[1::2], strict=True):
        best = judged.outcomes.best_s[world]["paper"]
        for name in (*judged.others, *judged.main):  # what matters lies on top
            for label, curve in judged.curves(name, world).items():
                for axes, values in ((left, curve.mean_regret_s), (right, curve.cvar95_regret_s)):
                    _draw(axes, 1 + curve.extra, values, label, looks[name])
        late = regret_s(_router_s(judged, world), best)
        for axes, what, alone in (
            (left, "mean regret (s)", float(late.mean())),
            (right, "CVaR95 of regret (s)", cvar(late, 0.95)),
        ):
            axes.set(xlabel="ambulances per incident", ylabel=what, xlim=(0.97, 2.03))
            lowest = min(0.0, *(float(np.min(line.get_ydata())) for line in axes.lines))
            _frame(axes, 1.1 * lowest, max(1.2 * alone, 1.0))
            _title(axes, world)
    _legend(figure, panels[0], judged)
    return figure


def regret_cdf(judged: Judged) -> "Figure":
    """Share of incidents with at most so much regret: one ambulance, and always two."""
    worlds, looks = judged.outcomes.worlds, styles(judged)
    rows = _ends(judged)
    figure, panels = plain_axes(len(worlds), 3.6)
    for axes, world in zip(panels, worlds, strict=True):
        best = judged.outcomes.best_s[world]["paper"]
        late = {row.label: regret_s(row.arrival_s[world], best) for row in rows}
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
        _title(axes, world)
    panels[-1].legend(frameon=False, fontsize=SMALL_PT, loc="lower right")
    return figure


def radii(judged: Judged) -> "Figure":
    """Distribution of the target radii, and of the predicted ones (dashed)."""
    worlds, looks, known = judged.outcomes.worlds, styles(judged), judged.outcomes.radii
    figure, panels = plain_axes(len(worlds), 3.6)
    shown = [name for name in judged.main if name in known] or list(known)
    for axes, world in zip(panels, worlds, strict=True):
        for name in shown:
            pair, style = known[name][world], looks[name]
            for values, what, dashes in (
                (pair.target, "target", "-"),
                (pair.predicted, "predicted", _DASHES[0]),
            ):
                axes.ecdf(values, label=f"{name}, {what}", color=style.colour, linestyle=dashes,
                          linewidth=style.width - 0.3)  # fmt: skip
        axes.set_xscale("symlog", linthresh=1e-4)
        axes.set(xlabel="radius", ylabel="share of incidents", xlim=(0, None), ylim=(0, 1.01))
        _title(axes, world)
    panels[-1].legend(frameon=False, fontsize=SMALL_PT, loc="lower right")
    return figure


def arrivals(judged: Judged) -> "Figure":
    """What second ambulances save against the router, and how many calls wait how long."""
    worlds, looks = judged.outcomes.worlds, styles(judged)
    figure, panels = plain_axes(2 * len(worlds), _height_in(worlds), rows=len(worlds))
    for world, left, right in zip(worlds, panels[::2], panels[1::2], strict=True):
        alone = float(_router_s(judged, world).mean())
        for name in (*judged.others, *judged.main):
            style = _ASIDE if name in judged.others else looks[name]
            for label, curve in judged.curves(name, world).items():
                _draw(left, 100 * curve.extra, alone - curve.mean_arrival_s, label, style)
        left.axhline(0, color=MUTED, linewidth=0.8, zorder=1)
        highest = max(1.0, *(float(np.max(line.get_ydata())) for line in left.lines))
        left.set(xlabel="calls that get a second ambulance (%)", xlim=(-3, 103),
                 ylabel="saved against the router alone (s)")  # fmt: skip
        _frame(left, -0.2 * highest, 1.1 * highest)
        _title(left, world)
        _waiting(right, judged, world, looks)
    _legend(figure, panels[0], judged, aside=True)
    return figure


# --- parts --------------------------------------------------------------------------


def _height_in(worlds: Sequence[str]) -> float:
    """Of a figure with a row for each world."""
    return 0.6 + 3.3 * len(worlds)


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


def _waiting(axes: "Axes", judged: Judged, world: str, looks: Mapping[str, Style]) -> None:
    """Share of calls that still wait, on a scale that shows the last few."""
    rows = _ends(judged)
    least = 100 / max(len(judged.outcomes), 2)
    for row in rows:
        minutes = np.sort(row.arrival_s[world]) / 60
        share = 100 * (1 - np.arange(1, minutes.size + 1) / minutes.size)
        _steps(axes, minutes, np.maximum(share, 0.5 * least), row.label, looks[row.policy])
    for limit in (8, 12):
        axes.axvline(limit, color=MUTED, linewidth=0.8, linestyle=_DASHES[0], zorder=1)
    middle = min(float(np.median(row.arrival_s[world])) for row in rows) / 60
    end = 1.2 * min(float(row.arrival_s[world].max()) for row in rows) / 60
    axes.set_yscale("log")
    ticks = [tick for tick in (50, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1) if tick >= least]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set(xlabel="driving time (min)", ylabel="calls not reached yet (%)",
             xlim=(0.9 * middle, end), ylim=(least, 60))  # fmt: skip
    axes.legend(frameon=False, fontsize=SMALL_PT, loc="upper right")
    _title(axes, world)


def _steps(axes: "Axes", x: FloatArray, y: FloatArray, label: str, style: Style) -> None:
    dashes = (0, (5, 1.5)) if label.endswith("single") else style.dashes
    axes.plot(x, y, drawstyle="steps-post", label=label, zorder=3, color=style.colour,
              linewidth=style.width - 0.3, linestyle=dashes)  # fmt: skip


def _ends(judged: Judged) -> list[Strategy]:
    """One-ambulance and always-dual rows of the main policies, or of all where none is one."""
    rows = judged.rows(judged.main or judged.others)
    return [row for row in rows if not row.form.startswith("+") and row.form != AS_SET]


def _router_s(judged: Judged, world: str) -> FloatArray:
    """Arrivals of the router's first ambulance, or of the first policy's where there is none."""
    name = judged.outcomes.roles.get("router", next(iter(judged.outcomes.policies)))
    return judged.outcomes.policy(name).drives[world].primary_s


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


def _title(axes: "Axes", world: str) -> None:
    axes.set_title(TITLES[World(world)], fontsize=10, color=INK, loc="left")

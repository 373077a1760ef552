"""The plausibility page: recordings, the synthetic world and real speeds side by side."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ideal_dispatch.arrays import IntArray
from ideal_dispatch.evaluation.call_maps import draw_drives
from ideal_dispatch.evaluation.paper_issues import (
    PAPER_MEAN_S,
    PAPER_OVERLAP,
    PAPER_OVERLAP_S,
    PAPER_REGION,
    Contests,
    issues,
)
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.pages import environment, figure_url
from ideal_dispatch.replay.drive import World
from ideal_dispatch.traffic.recording import RecordedTraffic
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from workshop.traffic import figures
from workshop.traffic import hong_kong_speeds as hong_kong
from workshop.traffic.checks import (
    EVENING_NAME,
    TrafficChecks,
    WindowChecks,
    check_traffic,
    check_window,
)
from workshop.traffic.contests import ContestParams, Example, contest, example

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NONE = "–"


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One recording on the page: its checks, the contests run in it, and the most telling call."""

    checks: TrafficChecks
    contests: Contests
    example: Example | None


@dataclass(frozen=True, slots=True, eq=False)
class Plausibility:
    """Everything the page says, as numbers; ``real`` are windows of real speeds."""

    network: RoadNetwork
    columns: tuple[Column, ...]
    real: tuple[WindowChecks, ...] = ()

    def figures(self) -> "dict[str, Figure]":
        """The page's figures by the name of their file."""
        checks = [column.checks for column in self.columns]
        drawn = {
            "traffic_by_hour": figures.by_hour(checks),
            "traffic_speeds": figures.speeds(checks, self.real),
            "traffic_memory": figures.memory(checks, self.real),
            "traffic_reach": figures.reach(checks, self.real),
            "traffic_issues": issues([(c.checks.name, c.contests) for c in self.columns]),
        }
        first = self.columns[0].example
        if first is not None and not np.isnan(self.network.lon).any():
            drawn["traffic_example"] = draw_drives(self.network, first.node, first.drives)
        return drawn

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows: a line per figure, a column per source, the paper last."""
        header = ["", *(c.checks.name for c in self.columns), *(r.name for r in self.real), "paper"]
        rows = [*self._recorded_rows(), *self._window_rows(), *self._issue_rows()]
        return header, rows

    def _recorded_rows(self) -> list[list[str]]:
        rows: list[tuple[str, Callable[[TrafficChecks], str]]] = [
            ("days: working + others", lambda c: f"{c.days[0]} + {c.days[1]}"),
            ("speed of free flow, slowest hour", lambda c: _percent(c.peak_and_night()[0])),
            ("… main roads / side streets then", _slowest_by_group),
            ("… at night, 1 to 5 o'clock", lambda c: _percent(c.peak_and_night()[1])),
            ("edge-minutes with a vehicle", lambda c: _percent(c.observed[0])),
            ("days differ at an hour by, whole city", lambda c: _spread(c.city_spread)),
            ("… a single road", lambda c: _spread(c.edge_spread)),
            ("memory after 2 / 10 / 30 min",
             lambda c: _numbers(c.memory.near(lag) for lag in (2, 10, 30))),
            ("slower together, < 250 m / 1 km",
             lambda c: _numbers(c.swings.near(km) for km in (0.125, 1.0))),
        ]  # fmt: skip
        empty = [_NONE] * (len(self.real) + 1)
        return [[name, *(say(c.checks) for c in self.columns), *empty] for name, say in rows]

    def _window_rows(self) -> list[list[str]]:
        windows = [c.checks.evening for c in self.columns] + list(self.real)
        rows: list[tuple[str, Callable[[WindowChecks], str]]] = [
            ("evening: roads, mean length", lambda w: f"{w.places:,}, {w.mean_length_m:.0f} m"),
            ("… length below half of free flow", lambda w: _percent(w.below_half)),
            ("… memory after 2 / 10 / 30 min",
             lambda w: _numbers(w.memory.near(lag) for lag in (2, 10, 30))),
            ("… slower together, < 250 m / 1 km",
             lambda w: _numbers(w.swings.near(km) for km in (0.125, 1.0))),
            ("… slow places together, < 250 m / 1 km",
             lambda w: _numbers(w.levels.near(km) for km in (0.125, 1.0))),
        ]  # fmt: skip
        return [
            [name, *(_NONE if w is None else say(w) for w in windows), _NONE] for name, say in rows
        ]

    def _issue_rows(self) -> list[list[str]]:
        rows: list[tuple[str, Callable[[Contests], str], str]] = [
            ("calls contested", lambda r: f"{len(r):,}", _NONE),
            ("1: region's depot is best, inst. / exp.", lambda r: _percents(r.region_share()),
             _percent(PAPER_REGION)),
            ("2: promised best loses, inst. / exp.", lambda r: _percents(r.reversal_share()),
             _NONE),
            ("… by seconds, mean, inst. / exp.", _mean_loss, _NONE),
            ("3: ranges overlap", lambda r: f"{100 * r.overlap_share():.1f} %",
             f"{100 * PAPER_OVERLAP:.1f} %"),
            ("… by seconds, mean", lambda r: f"{r.overlap_s().mean():.0f}",
             f"{PAPER_OVERLAP_S:.0f}"),
            ("… of a drive of seconds, inst. / exp.",
             lambda r: " / ".join(f"{s:.0f}" for s in r.mean_s()), f"{PAPER_MEAN_S:.0f}"),
        ]  # fmt: skip
        empty = [_NONE] * len(self.real)
        return [
            [name, *(say(c.contests) for c in self.columns), *empty, paper]
            for name, say, paper in rows
        ]

    def warnings(self) -> list[str]:
        """What a reader must know before using a recording, a line each."""
        return [
            f"{c.checks.name}: {silence}" for c in self.columns for silence in c.checks.silences
        ]

    def html(self, drawn: "Mapping[str, Figure]") -> str:
        """The page, with the figures of :meth:`figures`."""
        text = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
        urls = {name: figure_url(figure) for name, figure in drawn.items()}
        return environment().from_string(text).render(found=self, drawn=urls, evening=EVENING_NAME)


def examine(
    recordings: Mapping[str, RecordedTraffic],
    depots: Sequence[Depot],
    region: IntArray,
    *,
    real_folder: str | os.PathLike[str] | None = None,
    contests: ContestParams | None = None,
    seed: int = 0,
    report: Callable[[str], None] = lambda stage: None,
) -> Plausibility:
    """Check every recording and drive contests in it; the same places are called in all."""
    real: list[WindowChecks] = []
    if real_folder is not None:
        report("Hong Kong")
        rng = np.random.default_rng([seed, 2])
        for name, slowness in (
            ("Hong Kong urban", hong_kong.read_evening(real_folder, "URBAN ROAD")),
            ("Hong Kong major", hong_kong.read_evening(real_folder, "MAJOR ROUTE")),
            ("Hong Kong 10:55", hong_kong.read_instant(real_folder)),
        ):
            real.append(check_window(slowness, name, rng))
    columns = []
    for name, recording in recordings.items():
        report(name)
        world = ReplayedTraffic(recording)
        checks = check_traffic(recording, name, np.random.default_rng([seed, 0]))
        rng = np.random.default_rng([seed, 1])
        run, calls = contest(world, depots, region, contests or ContestParams(), rng)
        telling = example(world, depots, run, calls, World.INSTANTANEOUS)
        columns.append(Column(checks, run, telling))
    network = next(iter(recordings.values())).network
    return Plausibility(network, tuple(columns), tuple(real))


def nearest_region(network: RoadNetwork, depots: Sequence[Depot]) -> IntArray:
    """The depot nearest to each node on empty roads: a territory where the agency's is unknown."""
    away_s = [network.distances(network.free_flow_times_s, depot.node) for depot in depots]
    return np.asarray(np.argmin(away_s, axis=0), np.int32)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, with columns of even width to be read as it is."""
    cells = [list(header), *map(list, rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        padded = [row[0].ljust(widths[0])]
        padded += [text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([line(cells[0]), f"| {' | '.join(rule)} |", *map(line, cells[1:])])


def _slowest_by_group(checks: TrafficChecks) -> str:
    if checks.peak_hour is None:
        return _NONE
    _, main, _, side = checks.relative_speed[0, :, checks.peak_hour].tolist()
    return f"{_percent(main)} / {_percent(side)}"


def _mean_loss(contests: Contests) -> str:
    return " / ".join(
        f"{lost[lost > 0].mean():.0f}" if (lost > 0).any() else _NONE for lost in contests.lost_s()
    )


def _percent(share: float) -> str:
    return _NONE if np.isnan(share) else f"{100 * share:.0f} %"


def _percents(shares: Iterable[float]) -> str:
    return " / ".join(_percent(share) for share in shares)


def _spread(spread: float) -> str:
    return _NONE if np.isnan(spread) else f"±{100 * spread:.0f} %"


def _numbers(values: Iterable[float]) -> str:
    return " / ".join(
        _NONE if np.isnan(v) else f"{round(v, 2) + 0.0:.2f}".replace("-", "−") for v in values
    )

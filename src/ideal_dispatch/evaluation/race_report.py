"""Judged races as a report: tables, figures, every race as CSV and the figures as JSON."""

import json
import math
import os
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.evaluation.predictors import (
    BOOSTING,
    FREE_FLOW,
    IDENTITY,
    QUOTE,
    STRAIGHT,
)
from ideal_dispatch.evaluation.race_judgement import OURS, RANDOM, SHARES, JudgedRaces
from ideal_dispatch.evaluation.race_study import RaceStudy
from ideal_dispatch.forecast.model_directory import RESPONSE_TIMES
from ideal_dispatch.network.drawing import map_legend, map_of_places
from ideal_dispatch.pages import (
    ACCENT,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    SKY,
    SMALL_PT,
    VERMILLION,
    plain_axes,
)
from ideal_dispatch.report import Cell, Column, Figure, Report, Section, Table, rows_csv

if TYPE_CHECKING:
    import matplotlib.figure as drawn

PAGE = "races.html"
_FEW = 200
_FEWEST = 15  # races in a row of a breakdown; smaller groups are put together
_BINS = 8
_NAMES = 12  # rows of a breakdown by name
_DRAWN = np.linspace(0.0, 1.0, 41)
_LOOKS = {
    OURS: (ACCENT, "-", 2.8),
    QUOTE: (GREEN, "-", 1.4),
    BOOSTING: (SKY, "-", 1.4),
    FREE_FLOW: (ORANGE, "-", 1.4),
    IDENTITY: (ORANGE, "-", 1.4),
    STRAIGHT: (VERMILLION, "-", 1.4),
    RANDOM: (MUTED, "-", 1.2),
}
"""Colour, dashes and width of the rankings that are drawn."""


def write_races(study: RaceStudy, folder: str | os.PathLike[str]) -> Report:
    """Write page, tables, figures, races.json, races.csv and response_times.json into a folder.

    The response times are those of the last window: what a centre would work with.
    """
    numbers = json.dumps(_finite(study.judged.as_dict()), ensure_ascii=False, indent=1)
    others = {"races.json": f"{numbers}\n", "races.csv": rows_csv(race_rows(study))}
    Path(folder).mkdir(parents=True, exist_ok=True)
    study.windows[-1].response.save(Path(folder) / RESPONSE_TIMES)
    report = races_report(study)
    report.save(folder, PAGE, others)
    return report


def races_report(study: RaceStudy) -> Report:
    """What judged races say, for a chief and for a statistician."""
    judged, dates = study.judged, study.races.date
    figures = {
        "volumes": Figure(
            "volumes", "Seconds saved by the share of calls with a second unit", volumes(judged),
            "The mean over all calls. Each line chooses the calls in its own way, at the call, "
            "without knowing what came. At 100 % all lines meet: every call gets a second unit. "
            "The higher a line bends, the better it knows which calls need one.",
        ),
        "reliability": Figure(
            "reliability", "What was expected, and what happened", reliability(judged),
            "Races in groups of the same size, from the least to the most promising. On the grey "
            "line, what happened is what was expected. Bars are 95 % intervals over days.",
        ),
    }  # fmt: skip
    if not np.isnan(study.of_call("lon")).any():
        figures["map"] = Figure(
            "map", "Every race on its place", race_map(study),
            "An orange dot is a race that the second unit won; the larger, the more it saved.",
        )  # fmt: skip
    notes = [f"About the log: {note}." for note in study.responses.provenance.get("notes", ())]
    return Report(
        "Races: does the second unit come first?",
        f"{study.responses.provenance.get('source', 'a unit log')}: {len(judged):,} races from "
        f"{dates.min()} to {dates.max()}; ideal rests on {study.words}",
        _numbers(judged),
        caveats(study),
        [
            Section.of(
                "What a second unit saves",
                "A race is a call to which two units were sent together from different places, and "
                "both arrived. Both times are on record, so it shows what a second unit was worth. "
                "The primary is the unit that our model expects first; the other one is the "
                "second. The model learned everything from days before the race.",
                figures["volumes"], volume_table(judged),
            ),
            Section.of("Where and when", figures.get("map"), *breakdowns(study)),
            Section.of("Can the numbers be trusted?", figures["reliability"],
                       calibration_table(judged, "probability"),
                       calibration_table(judged, "gain")),
            Section.of("Which prediction of arrivals is best?", predictor_table(study)),
            Section.of("How the races were judged", (*protocol(study), *notes),
                       window_table(study)),
            Section.of("Calls with several units that are no race here", tuple(
                f"{n:,}: {why}"
                for why, n in sorted(study.left_out.items(), key=lambda item: -item[1])
            )),
        ],
    )  # fmt: skip


def _numbers(judged: JudgedRaces) -> list[tuple[str, str]]:
    by_s = judged.saved_s[judged.came_first]
    numbers = [
        ("of races were won by the second unit", f"{100 * judged.came_first.mean():.0f} %"),
        ("by which it then came sooner, on average", f"{by_s.mean():.0f} s" if by_s.size else "–"),
        ("sooner per call, if every call gets a second unit", f"{judged.saved_s.mean():.1f} s"),
    ]
    for share, words in ((0.5, "half"), (0.25, "a quarter")):
        (kept,) = judged.shares_kept(OURS, (share,))
        sure = "no interval: one day"
        if not math.isnan(kept.low):
            sure = f"95 %: {100 * kept.low:.0f}–{100 * kept.high:.0f} %"
        label = f"of that with a second unit on {words} of the calls, chosen by ideal ({sure})"
        numbers.append((label, f"{100 * kept.mean:.0f} %"))
    return numbers


def caveats(study: RaceStudy) -> list[str]:
    """A line for each reason to be careful."""
    lines, ratio = [], study.judged.gain_ratio
    if len(study.judged) < _FEW:
        lines.append(
            f"{len(study.judged):,} races are few: shares of the benefit are known only to about "
            f"±{100 / math.sqrt(len(study.judged)) * 3:.0f} points."
        )
    if study.network is None:
        lines.append(f"The expectations of ideal rest on {study.words}.")
    if not math.isnan(ratio.low) and not ratio.low <= 1.0 <= ratio.high:
        more = "more" if ratio.mean > 1.0 else "less"
        lines.append(
            f"ideal expects {more} than the second unit saves: expected over saved seconds "
            f"{ratio.mean:.2f}, 95 % interval {ratio.low:.2f} to {ratio.high:.2f}."
        )
    return lines


def protocol(study: RaceStudy) -> list[str]:
    """How the races were found and judged."""
    first = study.windows[0]
    forward = f"Learned from days before {first.window.start}, judged from then on."
    if len(study.windows) > 1:
        forward = (
            f"Time runs forward: each of {len(study.windows)} parts is judged by what was learned "
            "from all days before it."
        )
    return [
        f"Races are pairs of units sent within {study.races.together_s:g} s of each other, from "
        "different places, both on scene. Their order uses what was known at the call, never who "
        "came first.",
        forward,
        f"ideal rests on {study.words}; response times: {first.response.source}.",
        "The primary is the unit that ideal expects first, for every ranking alike. Each ranking "
        "sends a second unit to exactly the same share of races; races of one score share what is "
        "left for them.",
        "Units that were turned back have no arrival. They are not observed, which is not the "
        "same as lost, and their calls are no races here.",
    ]


def race_rows(study: RaceStudy) -> dict[str, Any]:
    """Columns with a row for each race: both units, what was expected and what happened."""
    judged, log, both = study.judged, study.responses, study.races.rows
    columns: dict[str, Any] = {
        name: study.of_call(column)
        for name, column in (("incident", "incident"), ("at", "local"), ("district", "district"),
                             ("call_kind", "call_kind"), ("lon", "lon"), ("lat", "lat"))
    }  # fmt: skip
    for who, of in (("primary", judged.of_primary), ("second", judged.of_second)):
        columns |= {
            f"{who}_unit": of(log.unit[both]),
            f"{who}_station": of(log.station[both]),
            f"{who}_straight_m": np.round(of(study.straight_m), 0),
            f"{who}_expected_s": np.round(of(judged.expected_s[OURS]), 1),
            f"{who}_took_s": of(judged.took_s),
        }
    columns |= {
        "second_first_probability": np.round(judged.second_first, 4),
        "expected_gain_s": np.round(judged.gain_s, 2),
        "second_first": judged.came_first.astype(int),
        "saved_s": judged.saved_s,
    }
    scores = judged.scores.items()
    return columns | {f"score {k}": np.round(v, 4) for k, v in scores if k != OURS}


def _finite(value: Any) -> Any:
    """The same without numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --- tables -----------------------------------------------------------------------------


def volume_table(judged: JudgedRaces) -> Table:
    """What every ranking saves where a share of races gets a second unit."""
    names = sorted(judged.rankings, key=lambda name: -judged.saved_at(name, (0.5,))[0])
    names.sort(key=lambda name: name != OURS)
    rows: list[tuple[Cell, ...]] = [
        (name, judged.auc(name), *judged.saved_at(name).tolist(),
         *judged.shares_kept(name, SHARES[:2]),
         None if name == OURS else judged.saved_beyond(OURS, name, 0.5))
        for name in names
    ]  # fmt: skip
    return Table(
        "volumes",
        "Seconds saved per call where a share of the calls gets a second unit",
        (Column("ranking"), Column("AUC", 2, arrow="↑"),
         *(Column(f"+{100 * share:.0f} %: s", arrow="↑") for share in SHARES),
         *(Column(f"+{100 * share:.0f} %: % of all", 0, percent=True) for share in SHARES[:2]),
         Column("+50 %: behind ours, s", signed=True)),
        tuple(rows),
        frozenset({0}),
        f"{len(judged):,} races of {judged.days:,} days. With a second unit on every call "
        f"{judged.saved_s.mean():.1f} s are saved per call. Intervals are 95 %, over days.",
    )  # fmt: skip


def predictor_table(study: RaceStudy) -> Table:
    """How well arrivals were predicted, and how late the unit that was expected first came."""
    judged = study.judged
    best = min(judged.expected_s, key=lambda name: judged.mean_primary_s(name).mean)
    rows: list[tuple[Cell, ...]] = [
        (name, judged.mean_primary_s(name),
         None if name == OURS else judged.primary_beyond(name, OURS),
         judged.mae_s(name), study.arrivals_mae_s(name))
        for name in judged.expected_s
    ]  # fmt: skip
    return Table(
        "predictors",
        "Predictions of arrivals",
        (Column("predictor"), Column("mean primary s", arrow="↓"), Column("later than ours s", 2),
         Column("MAE s, races", arrow="↓"), Column("MAE s, all arrivals", arrow="↓")),
        tuple(rows),
        frozenset({0}),
        f"The unit that a predictor expects first is its primary; {best} has the earliest. "
        "Errors are of whole responses, from dispatch to scene, over both units of the races and "
        f"over all {study.arrivals:,} arrivals of the judged days. Intervals are 95 %, over days.",
    )  # fmt: skip


def calibration_table(judged: JudgedRaces, of: Literal["probability", "gain"]) -> Table:
    """Whether the second comes first as often, or saves as many seconds, as expected."""
    ratio, scale = judged.gain_ratio, 1.0
    title, unit = "Seconds that the second saved, by how many were expected", "s per call"
    expected, happened = judged.gain_s, judged.saved_s
    if of == "probability":
        title, unit = "How often the second came first, by how often it was expected to", "%"
        expected, happened, scale = judged.second_first, judged.came_first.astype(float), 100.0
    digits = 0 if of == "probability" else 1
    rows: list[tuple[Cell, ...]] = [
        (f"{scale * expected[here].min():.{digits}f}–{scale * expected[here].max():.{digits}f} "
         f"{unit}", int(here.sum()), float(expected[here].mean()),
         judged.ratio(np.where(here, happened, 0.0), here))
        for here in equal_groups(expected)
    ]  # fmt: skip
    rows.append(("all", len(judged), float(expected.mean()), judged.mean(happened)))
    share = of == "probability"
    note = f"Expected over saved seconds: {ratio.mean:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]."
    return Table(
        of,
        title,
        (Column("races, by what was expected"), Column("races"),
         Column(f"expected, {unit}", percent=share), Column(f"happened, {unit}", percent=share)),
        tuple(rows),
        note="" if share else f"{note} Intervals are 95 %, over days.",
    )  # fmt: skip


def equal_groups(values: FloatArray, groups: int = _BINS) -> list[BoolArray]:
    """Races in groups of about the same size, from low to high values."""
    order, found = np.argsort(values, kind="stable"), []
    for part in np.array_split(order, min(groups, max(values.size // _FEWEST, 1))):
        mask = np.zeros(values.size, bool)
        mask[part] = True
        found.append(mask)
    return found


def window_table(study: RaceStudy) -> Table:
    """Every window of a study that rolls forward."""
    rows: list[tuple[Cell, ...]] = []
    for number, one in enumerate(study.windows):
        part = study.judged.select(study.window == number)
        boosted = one.mae_s(BOOSTING) if BOOSTING in one.predicted_s else None
        rows.append(
            (one.window.name, one.learned, len(part), float(part.came_first.mean()),
             float(part.saved_s.mean()), float(part.saved_at(OURS, (0.5,))[0]),
             part.gain_ratio.mean, one.mae_s(OURS), boosted)
        )  # fmt: skip
    return Table(
        "windows",
        "Each part was judged by what was known before it",
        (Column("judged"), Column("arrivals learned from"), Column("races"),
         Column("second first %", percent=True), Column("saved s, all"),
         Column("saved s, +50 %"), Column("expected / saved", 2),
         Column("MAE s, all arrivals"), Column("boosting's")),
        tuple(rows),
    )  # fmt: skip


def breakdowns(study: RaceStudy) -> list[Table]:
    """How often and by how much the second came first, by distance, hour, place and kind."""
    judged, hours = study.judged, study.of_call("hour")
    groups: dict[str, tuple[str, Iterable[tuple[str, BoolArray]]]] = {}
    far_km = (judged.of_second(study.straight_m) - judged.of_primary(study.straight_m)) / 1000.0
    if not np.isnan(far_km).any():
        bands = [("nearer than the primary", far_km < 0.0)]
        for low, high in pairwise((0.0, 0.5, 1.0, 2.0, np.inf)):
            label = f"{low:g}–{high:g} km" if np.isfinite(high) else f"{low:g} km and more"
            bands.append((label, (far_km >= low) & (far_km < high)))
        groups["distance"] = "how much farther the second starts, straight line", bands
    limits = pairwise((0, 6, 9, 12, 16, 19, 24))
    by_hour = [(f"{a}–{b} h", np.asarray((hours >= a) & (hours < b))) for a, b in limits]
    groups["hour"] = "hour of the day", by_hour
    groups["district"] = "district", _by_name(study.of_call("district"))
    groups["call-kind"] = "kind of call", _by_name(study.of_call("call_kind"))
    primary = judged.of_primary(study.responses.station[study.races.rows])
    groups["station"] = "station of the primary", _by_name(primary)
    tables = []
    for name, (words, parts) in groups.items():
        rows: list[tuple[Cell, ...]] = []
        for label, here in parts:
            ahead = judged.saved_s[here & judged.came_first]
            if here.any():
                rows.append(
                    (label, int(here.sum()), judged.ratio(judged.came_first & here, here),
                     float(ahead.mean()) if ahead.size else None,
                     judged.ratio(np.where(here, judged.saved_s, 0.0), here),
                     float(judged.gain_s[here].mean()))
                )  # fmt: skip
        if len(rows) > 1:
            tables.append(Table(
                f"by-{name}", f"How often and by how much the second came first, by {words}",
                (Column(words), Column("races"), Column("second first %", 0, percent=True),
                 Column("then by s", 0), Column("saved s per call"),
                 Column("expected s per call")),
                tuple(rows),
            ))  # fmt: skip
    return tables


def _by_name(values: npt.NDArray[Any]) -> list[tuple[str, BoolArray]]:
    """The most frequent names, then the rest together."""
    names, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    often = [i for i in order if counts[i] >= _FEWEST and names[i]][:_NAMES]
    found = [(str(names[i]), np.asarray(values == names[i])) for i in often]
    rest = ~np.isin(values, names[often])
    return [*found, (f"{names.size - len(often)} others", rest)]


# --- figures ----------------------------------------------------------------------------


def volumes(judged: JudgedRaces) -> "drawn.Figure":
    """Seconds saved per call over the share of calls with a second unit, ranking by ranking."""
    figure, (axes,) = plain_axes(1, 4.6)
    low, high = np.array([[i.low, i.high] for i in judged.saved_intervals(OURS, _DRAWN)]).T
    if not np.isnan(low).all():
        axes.fill_between(100 * _DRAWN, low, high, color=ACCENT, alpha=0.12, linewidth=0,
                          label="95 % of draws of days, ideal")  # fmt: skip
    for name, (colour, dashes, width) in _LOOKS.items():
        if name in judged.rankings:
            axes.plot(100 * _DRAWN, judged.saved_at(name, _DRAWN), color=colour, linestyle=dashes,
                      linewidth=width, label=name, zorder=5 if name == OURS else 3)  # fmt: skip
    shares = (0.25, 0.5)
    saved = judged.saved_at(OURS, shares).tolist()
    for share, saved_s, kept in zip(shares, saved, judged.shares_kept(OURS, shares), strict=True):
        axes.plot(100 * share, saved_s, marker="o", markersize=8, color=ACCENT,
                  markeredgecolor="white", zorder=6)  # fmt: skip
        axes.annotate(f"{100 * kept.mean:.0f} % of all", (100 * share, saved_s), xytext=(8, -14),
                      textcoords="offset points", ha="left", fontsize=10, weight="bold",
                      color=ACCENT)  # fmt: skip
    axes.set(xlabel="% of the calls that get a second unit", ylabel="seconds saved per call",
             xlim=(0, 100), ylim=(0, None))  # fmt: skip
    axes.legend(frameon=False, fontsize=SMALL_PT, loc="upper left", labelcolor=INK)
    return figure


def reliability(judged: JudgedRaces) -> "drawn.Figure":
    """Left, how often the second came first; right, what it saved, over what was expected."""
    figure, panels = plain_axes(2, 4.0)
    for axes, title, expected, happened, scale, unit in (
        (panels[0], "How often", judged.second_first, judged.came_first.astype(float), 100.0,
         "% second first"),
        (panels[1], "By how much", judged.gain_s, judged.saved_s, 1.0, "s saved per call"),
    ):  # fmt: skip
        top = 0.0
        for rows in equal_groups(expected):
            x = scale * float(expected[rows].mean())
            found = judged.ratio(np.where(rows, happened, 0.0), rows)
            ends: Sequence[float] = (scale * found.low, scale * found.high)
            axes.plot([x, x], ends, color=ACCENT, linewidth=1.4)
            axes.plot(x, scale * found.mean, marker="o", color=ACCENT, markersize=6,
                      markeredgecolor="white")  # fmt: skip
            top = max(top, x, *(y for y in (scale * found.mean, ends[1]) if not np.isnan(y)))
        axes.plot([0, 1.05 * top], [0, 1.05 * top], color=MUTED, linewidth=1.0, zorder=1)
        axes.set(xlabel=f"expected: {unit}", ylabel=f"happened: {unit}",
                 xlim=(0, 1.05 * top), ylim=(0, 1.05 * top))  # fmt: skip
        axes.set_title(title, fontsize=10, color=INK, loc="left")
    return figure


def race_map(study: RaceStudy) -> "drawn.Figure":
    """Where the races were, in which the second came first, and the stations."""
    lon, lat = study.of_call("lon"), study.of_call("lat")
    rows = study.races.rows
    starts = np.column_stack(
        [getattr(study.responses, name)[rows].ravel() for name in ("from_lon", "from_lat")]
    )
    fixed = ~study.responses.from_road[rows].ravel() & ~np.isnan(starts).any(axis=1)
    figure, axes = map_of_places(lon, lat, study.network)
    axes.plot(*np.unique(starts[fixed], axis=0).T, linestyle="", marker="P", markersize=7,
              color=INK, markeredgecolor="white", label="station", zorder=4)  # fmt: skip
    first = study.judged.came_first
    axes.scatter(lon[~first], lat[~first], s=14, color=SKY, linewidths=0.4, edgecolors="white",
                 label=f"primary first ({int((~first).sum()):,})", zorder=3)  # fmt: skip
    sizes = np.clip(0.6 * study.judged.saved_s[first], 14, 260)
    axes.scatter(lon[first], lat[first], s=sizes, color=VERMILLION, alpha=0.75, linewidths=0.6,
                 edgecolors="white", zorder=5,
                 label=f"second first ({int(first.sum()):,}); larger: saved more")  # fmt: skip
    map_legend(axes)
    return figure

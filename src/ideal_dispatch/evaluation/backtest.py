"""The advice that past calls of a month would have got, beside what was done and what happened.

For every call the stations near it are candidates. The one expected first is the primary, and the
second is the other station with the largest expected gain. All that the advice knows was known
before the month began.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.predictors import Arrivals, Predictors, as_if_arrived, fit_predictors
from ideal_dispatch.evaluation.race_study import check_arrivals, check_model, trained_model
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.response_time import ResponsePair
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.drawing import map_legend, map_of_places
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.pages import ACCENT, INK, MUTED, SMALL_PT, VERMILLION, plain_axes
from ideal_dispatch.records.responses import Responses
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

    from ideal_dispatch.learning import TrainingSettings

NEAREST = 6
"""Stations of a call that are asked about: those nearest in a straight line."""

SHARE = 0.25
PAGE = "backtest.html"
_THRESHOLDS_S = (2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0)
_STATIONS = 15
_DAY = np.timedelta64(1, "D")
_AT_ONCE = np.timedelta64(5, "s")

Texts = npt.NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class BacktestSettings:
    """Which calls, and when a second unit is advised.

    ``start`` is the first day of the month. A second is advised where its expected gain
    is at least ``threshold_s``; without one, at the threshold that would have sent a
    second to a ``share`` of the calls before the month. ``kinds`` are the units that
    count; without, those that the log's mapping says, or the most frequent kind.
    """

    start: date
    threshold_s: float | None = None
    share: float = SHARE
    kinds: tuple[str, ...] = ()
    train: bool = False

    @property
    def end(self) -> date:
        """The day after the month."""
        return (self.start.replace(day=1) + timedelta(days=32)).replace(day=1)


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """For each call that can be advised on: one of its rows, the two stations, and the numbers.

    Expected seconds are of the advised primary and second.
    """

    first_row: npt.NDArray[np.int64]
    primary: Texts
    second: Texts
    expected_s: FloatArray
    gain_s: FloatArray
    second_first: FloatArray
    left_out: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Backtest(Advice):
    """The calls of a month: the advice, what was sent, and what happened.

    ``log`` has the rows of the units that count. ``sent`` and ``arrived`` count the units of
    the call, ``first_s`` is the first arrival (NaN where none is known). ``took_s`` are the
    arrivals of the two advised units, NaN where one was not sent or never arrived.
    """

    settings: BacktestSettings
    log: Responses
    threshold_s: float
    sent: npt.NDArray[np.int64]
    stations: Texts
    arrived: npt.NDArray[np.int64]
    first_s: FloatArray
    took_s: FloatArray
    words: str

    def __len__(self) -> int:
        return int(self.first_row.size)

    @property
    def advised(self) -> BoolArray:
        """Where a second unit is advised."""
        return np.asarray(self.gain_s >= self.threshold_s)

    @property
    def days(self) -> int:
        return (self.settings.end - self.settings.start).days

    @property
    def raced(self) -> BoolArray:
        """Where both advised units were sent and arrived: what the advice was worth is known."""
        return np.asarray(~np.isnan(self.took_s).any(axis=1))

    @property
    def saved_s(self) -> FloatArray:
        """Seconds that the advised second saved, where that is known."""
        return np.asarray(np.maximum(self.took_s[:, 0] - self.took_s[:, 1], 0.0))

    def of_call(self, name: str) -> Any:
        """A column of the log for each call."""
        return getattr(self.log, name)[self.first_row]


def backtest(
    responses: Responses,
    settings: BacktestSettings,
    network: RoadNetwork | None = None,
    *,
    model: Model | None = None,
    training: "TrainingSettings | None" = None,
    folder: str | os.PathLike[str] | None = None,
    watch: Callable[[str, float], None] = lambda stage, done: None,
) -> Backtest:
    """What would have been advised on every call of a month."""
    check_model(model, settings.start, network, settings.train)
    kinds = settings.kinds or responses.alike
    if not kinds:
        names, counts = np.unique(responses.kind, return_counts=True)
        kinds = (str(names[counts.argmax()]),)
    log = responses.select(np.isin(responses.kind, kinds))
    month = (log.date >= np.datetime64(settings.start)) & (log.date < np.datetime64(settings.end))
    if not month.any():
        raise InputError(
            f"--month {settings.start:%Y-%m}: the log has no call of {' or '.join(kinds)} in it; "
            "choose another month"
        )
    watch("fitting", 0.0)
    arrivals = Arrivals.of(log, network)
    check_arrivals(arrivals)
    past = arrivals.select(arrivals.of_log("date") < np.datetime64(settings.start))
    unseen_s = None
    if settings.train:
        place = Path(folder or ".") / "models" / f"{settings.start:%Y-%m}"
        model, unseen_s = trained_model(past.select(past.sound), place, training, watch)
    predictors = fit_predictors(past, model, unseen_s)
    stations = _stations(log.until(settings.start))
    threshold_s = settings.threshold_s
    if threshold_s is None:
        watch("the threshold", 0.3)
        before = log.select(
            (log.date < np.datetime64(settings.start))
            & (log.date >= np.datetime64(settings.start) - 31 * _DAY)
        )
        earlier = _advice(before, stations, predictors, network)
        if not earlier.gain_s.size:
            raise InputError(
                "no call of the 31 days before the month could have got a second unit, so that no "
                "threshold follows from a share; give --threshold"
            )
        threshold_s = float(np.quantile(earlier.gain_s, 1.0 - settings.share))
    watch("advice", 0.6)
    now = log.select(month)
    found = _advice(now, stations, predictors, network)
    return _beside(found, now, settings, threshold_s, predictors.words)


@dataclass(frozen=True, slots=True, eq=False)
class _Stations:
    """Where units start, as the log knew it before the month."""

    name: Texts
    lon: FloatArray
    lat: FloatArray


def _stations(past: Responses) -> _Stations:
    known = ~past.from_road & (past.station != "") & ~np.isnan(past.from_lon + past.from_lat)
    names, first = np.unique(past.station[known], return_index=True)
    if names.size < 2:
        raise InputError(
            "a backtest needs the places of at least two stations from before the month; read the "
            "log with --stations"
        )
    return _Stations(names, past.from_lon[known][first], past.from_lat[known][first])


def _advice(
    log: Responses, stations: _Stations, predictors: Predictors, network: RoadNetwork | None
) -> Advice:
    _, first = np.unique(log.incident, return_index=True)
    first = np.sort(first)
    placed = ~np.isnan(log.lon[first] + log.lat[first])
    left_out = {"it is not known where the call was": int((~placed).sum())}
    calls = first[placed]
    far_m = great_circle_m(
        log.lon[calls][:, None], log.lat[calls][:, None], stations.lon, stations.lat
    )
    near = np.argsort(far_m, axis=1, kind="stable")[:, :NEAREST]
    which = near.ravel()
    asked = replace(  # as if the unit of each station had been sent
        as_if_arrived(log.select(np.repeat(calls, near.shape[1]))),
        unit=np.full(which.size, ""),
        station=stations.name[which],
        from_lon=stations.lon[which],
        from_lat=stations.lat[which],
        from_road=np.zeros(which.size, bool),
    )
    arrivals = Arrivals.of(asked, network)
    count = near.shape[1]
    call, rank = np.divmod(arrivals.rows, count)
    times = predictors.of(arrivals)
    mean_s = np.full((calls.size, count), np.inf)
    mean_s[call, rank] = times.mean_s
    place = np.full((calls.size, count), -1)
    place[call, rank] = np.arange(len(arrivals))
    two = np.isfinite(mean_s).sum(axis=1) >= 2
    left_out["the call, or all but one station near it, is not near a road"] = int((~two).sum())
    rows = np.flatnonzero(two)
    best = mean_s[rows].argmin(axis=1)
    primary = place[rows, best]
    gain = np.full((rows.size, count), -np.inf)
    chance = np.zeros((rows.size, count))
    for column in range(count):
        other = place[rows, column]
        usable = np.flatnonzero((other >= 0) & (column != best))
        if usable.size:
            pair = ResponsePair(times[primary[usable]], times[other[usable]])
            gain[usable, column], chance[usable, column] = pair.gain_s, pair.second_first
    chosen = gain.argmax(axis=1)
    each = np.arange(rows.size)
    return Advice(
        calls[rows],
        stations.name[near[rows, best]],
        stations.name[near[rows, chosen]],
        np.column_stack([mean_s[rows, best], mean_s[rows, chosen]]),
        gain[each, chosen],
        chance[each, chosen],
        {why: n for why, n in left_out.items() if n},
    )


def _beside(
    advice: Advice, log: Responses, settings: BacktestSettings, threshold_s: float, words: str
) -> Backtest:
    """The advice beside what the log says was done."""
    call_of = log.calls
    calls = call_of[advice.first_row]
    number = np.full(call_of.max() + 1, -1)
    number[calls] = np.arange(calls.size)
    row_call = number[call_of]
    rows = np.flatnonzero(row_call >= 0)
    n = calls.size
    sent = np.bincount(row_call[rows], minlength=n)
    came = rows[log.arrived[rows] & (log.response_s[rows] > 0)]
    arrived = np.bincount(row_call[came], minlength=n)
    first_s = np.full(n, np.inf)
    np.minimum.at(first_s, row_call[came], log.response_s[came])
    # what the advised units would have done is known where they were sent at once
    began = np.full(n, np.datetime64("9999-01-01", "s"))
    np.minimum.at(began, row_call[came], log.dispatched[came])
    soon = log.dispatched[came] - began[row_call[came]] <= _AT_ONCE
    at_once = came[~log.from_road[came] & soon]
    took_s = np.full((n, 2), np.inf)
    for side, names in enumerate((advice.primary, advice.second)):
        theirs = at_once[log.station[at_once] == names[row_call[at_once]]]
        np.minimum.at(took_s[:, side], row_call[theirs], log.response_s[theirs])
    stations = [
        " + ".join(log.station[part].tolist())
        for part in np.split(rows[np.argsort(row_call[rows], kind="stable")], np.cumsum(sent)[:-1])
    ]
    return Backtest(
        **{field.name: getattr(advice, field.name) for field in fields(advice)},
        settings=settings,
        log=log,
        threshold_s=threshold_s,
        sent=sent,
        stations=np.array(stations),
        arrived=arrived,
        first_s=np.where(np.isfinite(first_s), first_s, np.nan),
        took_s=np.where(np.isfinite(took_s), took_s, np.nan),
        words=words,
    )


# --- the report -----------------------------------------------------------------------


def write_backtest(
    found: Backtest, folder: str | os.PathLike[str], network: RoadNetwork | None = None
) -> Report:
    """Write page, tables, figures and every call as backtest.csv into a folder."""
    report = backtest_report(found, network)
    report.save(folder, PAGE, {"backtest.csv": rows_csv(call_rows(found))})
    return report


def backtest_report(found: Backtest, network: RoadNetwork | None = None) -> Report:
    """The advice for every call of the month, beside what was done."""
    advised, start = found.advised, found.settings.start
    gain_s = found.gain_s[advised]
    agreed = [p in s.split(" + ") for p, s in zip(found.primary, found.stations, strict=True)]
    left_out = sorted(found.left_out.items(), key=lambda item: -item[1])
    return Report(
        f"Backtest of {start:%B %Y}",
        f"{found.log.provenance.get('source', 'a unit log')}: {len(found):,} calls; ideal rests on "
        f"{found.words}, learned before {start}; a second unit is advised from "
        f"{found.threshold_s:.1f} s on",
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
                station_table(found),
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

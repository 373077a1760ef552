"""Drift learned from quote logs: planted patterns found, new days predicted, odd logs refused."""

from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import torch

from ideal_dispatch import Calendar, RoadNetwork
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import Context
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.drift import DriftModel
from ideal_dispatch.learning import TrainParams, split
from ideal_dispatch.learning.drift_training import DRIFT_PARAMS, fit_drift
from ideal_dispatch.learning.encoders import RepresentationNetwork
from ideal_dispatch.learning.lower_level import GivenRoutes, LowerLevel, Routes
from ideal_dispatch.learning.training_data import TrainingData
from ideal_dispatch.traffic.quote_log import LogLine, QuoteLog
from ideal_dispatch.traffic.quote_recorder import Schedule, record_quotes
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.source import TIMES
from ideal_dispatch.traffic.synthetic import SyntheticParams, synthetic_traffic
from tests.unit.learning.worlds import SMALL, town, trips

CALENDAR = Calendar("Asia/Hong_Kong", "HK")
QUICK = replace(DRIFT_PARAMS, epochs=2)
START = datetime(2023, 5, 8, 5, tzinfo=ZoneInfo("Asia/Hong_Kong"))
HALF_HOURS = 16


@pytest.fixture(autouse=True)
def _threads_are_given_back() -> Any:
    before = torch.get_num_threads()
    yield
    assert torch.get_num_threads() == before


def context(at: datetime) -> Context:
    return CALENDAR.context(at)


def planted_s(network: RoadNetwork, at: datetime) -> FloatArray:
    """Roads in the west lose time until nine and those in the east win it; none later."""
    local = CALENDAR.local(at)
    rush = max(0.0, 9.0 - local.hour - local.minute / 60) / 4.0
    middle = (network.lon[network.tail] + network.lon[network.head]) / 2
    side = np.where(middle < 114.005, 0.6, -0.3)
    drift: FloatArray = rush * side * network.free_flow_times_s
    return drift


def planted_log(network: RoadNetwork, first: int, days: int, noise: float = 3.0) -> QuoteLog:
    """Quotes between random places, each half hour, that miss the planted drift."""
    rng = np.random.default_rng(first)
    lines = []
    for day in range(first, first + days):
        for half in range(HALF_HOURS):
            at = START + timedelta(days=day, minutes=30 * half)
            believed = 1.5 * network.free_flow_times_s
            drift = planted_s(network, at)
            for _ in range(12):
                a, b = rng.choice(network.num_nodes, 2, replace=False).tolist()
                path = network.shortest_path(believed, a, b)
                quoted = path.time_s(believed)
                times = dict.fromkeys(TIMES, np.nan) | {"duration_s": quoted}
                missed = path.time_s(drift) + noise * rng.standard_normal()
                lines.append(
                    LogLine(at, a, b, at, times, tuple(path.edges.tolist()),
                            realised_s=max(quoted + missed, 1.0))
                )  # fmt: skip
    return QuoteLog(network.checksum, {"engine": "planted"}, tuple(lines))


def corrections(drift: DriftModel, network: RoadNetwork, log: QuoteLog) -> FloatArray:
    by_time: dict[datetime, FloatArray] = {}
    out = []
    for line in log.lines:
        if line.asked_at not in by_time:
            by_time[line.asked_at] = drift.edge_drift_s(context(line.asked_at), network)
        out.append(by_time[line.asked_at][list(line.edges)].sum())
    return np.array(out)


@cache
def planted() -> tuple[RoadNetwork, DriftModel]:
    network = town(nodes=40, roads=140)
    params = replace(DRIFT_PARAMS, batch_size=64, epochs=15, learning_rate=5e-3, patience=15)
    return network, fit_drift(network, planted_log(network, 0, 8), context, params)


def missed_by(log: QuoteLog) -> FloatArray:
    """Seconds that each path took beyond its quote."""
    return np.array([line.realised_s - line.times["duration_s"] for line in log.lines])


def test_a_planted_drift_is_found() -> None:
    network, drift = planted()
    unseen = planted_log(network, 21, 2, noise=0.0)
    missed = missed_by(unseen)
    left = missed - corrections(drift, network, unseen)
    assert np.abs(left).mean() < 0.4 * np.abs(missed).mean()
    for minutes in (30, 120):
        at = START + timedelta(days=22, minutes=minutes)
        truth, found = planted_s(network, at), drift.edge_drift_s(context(at), network)
        assert np.corrcoef(truth, found)[0, 1] > 0.75
    late = START + timedelta(days=22, hours=7)
    assert np.abs(drift.edge_drift_s(context(late), network)).mean() < 1.0


def test_the_manifest_says_what_was_learned_from() -> None:
    _, drift = planted()
    details = drift.model.details
    assert details["purpose"] == "drift"
    assert details["log"]["train"] + details["log"]["held_out"] == 8 * 16 * 12
    assert len(details["log"]["held_out_days"]) == 2
    assert details["log"]["source"] == {"engine": "planted"}
    assert details["held_out"]["corrected_mae_s"] < 0.5 * details["held_out"]["quoted_mae_s"]
    best = min(epoch["validation_mae_s"] for epoch in details["history"])
    assert details["held_out"]["corrected_mae_s"] == pytest.approx(best)


def test_same_seed_same_drift() -> None:
    network = town()
    log = planted_log(network, 0, 3)
    first, again = (fit_drift(network, log, context, QUICK, seed=4) for _ in range(2))
    assert first.model.checksum == again.model.checksum
    assert first.model.details == again.model.details
    other = fit_drift(network, log, context, QUICK, seed=5)
    assert other.model.checksum != first.model.checksum


def test_quotes_without_an_outcome_are_left_out() -> None:
    network = town()
    log = planted_log(network, 0, 3)
    unknown = [replace(line, realised_s=np.nan) for line in log.lines[:50]]
    here = replace(log.lines[0], destination=log.lines[0].origin, edges=(), realised_s=0.0)
    mixed = replace(log, lines=(*unknown, *log.lines, here))
    first = fit_drift(network, log, context, QUICK)
    second = fit_drift(network, mixed, context, QUICK)
    assert second.model.details["log"]["left_out"] == 51
    assert second.model.checksum == first.model.checksum


def test_logs_that_cannot_be_learned_from() -> None:
    network = town()
    log = planted_log(network, 0, 2)
    lines = log.lines

    def refused(says: str, log: QuoteLog, **changes: Any) -> None:
        with pytest.raises(InputError, match=says):
            fit_drift(network, log, context, replace(QUICK, **changes))

    refused("the quotes are of another network", replace(log, network_checksum="x"))
    refused("no quote of the log says what its path took", replace(log, lines=()))
    refused("the quotes are of one day: at least two", planted_log(network, 0, 1))
    refused("loss 'relative': a drift may be zero", log, loss="relative")
    wrong = replace(lines[0], edges=(0, 99))
    refused("edge 99, which is not in the network", replace(log, lines=(wrong, *lines[1:])))


# --- routes that are given ------------------------------------------------------


def test_given_routes_are_timed_as_they_are() -> None:
    network = town()
    table = trips(network, 50)
    data = TrainingData.prepare(network, table, split(table, (1.0, 0.0, 0.0)), TrainParams(SMALL))
    columns = data.contexts.shape[1]
    model = RepresentationNetwork(
        SMALL,
        data.edges,
        data.base_s,
        data.bounds.on(data.network).expected_s,
        columns,
        0,
    )
    solved, seconds = LowerLevel(network, table, data.contexts).solve(model, np.arange(50))
    given = GivenRoutes(solved, data.contexts)
    rows = np.array([7, 3, 49, 3])
    routes, again = given.solve(model, rows)
    np.testing.assert_allclose(again, seconds[rows], rtol=1e-12)
    for position, row in enumerate(rows):
        one = routes.edges[routes.start[position] : routes.start[position + 1]]
        np.testing.assert_array_equal(one, solved.of(np.array([row]))[0])
    detour = Routes(np.repeat(solved.edges, 2), 2 * solved.start)
    twice = GivenRoutes(detour, data.contexts).solve(model, rows)[1]
    np.testing.assert_allclose(twice, 2 * seconds[rows], rtol=1e-12)


def test_targets_below_zero_are_learned_towards() -> None:
    """Where quotes are far too long, the drift goes to what the fastest drive allows."""
    network = town()
    log = planted_log(network, 0, 3)
    lines = (
        replace(line, times={**line.times, "duration_s": 5 * line.times["duration_s"]})
        for line in log.lines
    )
    gone = replace(log, lines=tuple(lines))
    params = replace(DRIFT_PARAMS, batch_size=32, epochs=20, learning_rate=0.02, huber_s=1e3)
    drift = fit_drift(network, gone, context, params)
    found = drift.edge_drift_s(context(log.lines[0].asked_at), network)
    base = drift.model.base_ratio * network.free_flow_times_s
    most = base - drift.model.bounds.on(network).expected_s[0]
    assert (found >= -most * (1 + 1e-5)).all()
    assert found.sum() < -0.8 * most.sum()


# --- a world whose traffic builds up and clears ---------------------------------


def slow_streets(network: RoadNetwork) -> RoadNetwork:
    """The same streets driven so slowly that a rush overtakes a trip."""
    return RoadNetwork.from_arrays(
        network.tail, network.head, network.length_m, network.lon, network.lat,
        speed_kmh=np.full(network.num_edges, 8.0), road_class=network.road_class,
    )  # fmt: skip


def test_new_days_of_a_rush_are_quoted_better(grid: RoadNetwork, tmp_path: Path) -> None:
    network = slow_streets(grid)
    params = SyntheticParams(
        days=5, hours=((6, 11),), bin_s=120, incidents_per_hour=0.0, seen=1.0, rainy_share=0.0,
        seed=3,
    )  # fmt: skip
    recording = synthetic_traffic(network, CALENDAR, params)
    world = ReplayedTraffic(recording)
    pairs = [(0, node) for node in range(60, 120, 8)] + [(119, node) for node in range(0, 60, 8)]
    logs = []
    # on the first day the router knows no history yet: its quotes drift otherwise
    for name, stretches in (("past", recording.stretches[1:4]), ("new", recording.stretches[4:])):
        for stretch in stretches:
            start = stretch.start + timedelta(minutes=10)
            record_quotes(world, pairs, tmp_path / name, Schedule(24, start, 600))
        logs.append(QuoteLog.load(tmp_path / name, network))
    past, new = logs
    drift = fit_drift(network, past, recording.context, replace(DRIFT_PARAMS, batch_size=64))
    missed_s, drift_s = missed_by(new), corrections(drift, network, new)
    known = np.isfinite(missed_s)
    left_s = (missed_s - drift_s)[known]
    assert np.abs(left_s).mean() < 0.92 * np.abs(missed_s[known]).mean()
    hour = np.array([CALENDAR.local(line.asked_at).hour for line in new.lines])
    assert drift_s[hour == 7].mean() > 5.0  # the rush builds up: quotes promise too much
    assert drift_s[hour == 9].mean() < -5.0  # and clears

"""Response times fitted on logs whose truth is known."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.context import ContextEncoding
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.response_time import Effects, ResponseModel, ResponsePair
from ideal_dispatch.records.responses import REMARKS, Responses
from ideal_dispatch.records.trips import RESPONSE, STAMPS, TARGETS, Trips

pytest.importorskip("torch", reason="response times are fitted with torch")
from ideal_dispatch.learning.response_fitting import fit_responses, fit_trips, responses_of

TRUTH = ResponseModel(
    Effects(70.0, 0.3, station={"A": 0.8, "B": 1.0, "C": 1.3}),
    drive_scale=0.9,
    drive_spread=0.15,
    slack_s=20.0,
    shared=0.2,
    surprise=0.08,
    wide=0.6,
)
START = np.datetime64("2023-03-01T00:00:00", "s")


def drawn_log(
    calls: int = 1200, *, recalled: bool = False, stamped: bool = True, seed: int = 0
) -> tuple[Responses, np.ndarray]:
    """Two units to every call, drawn as the truth says, and the seconds along their paths."""
    rng = np.random.default_rng(seed)
    size = (calls, 2)
    path = rng.uniform(60.0, 400.0, size)
    station = rng.permuted(np.tile(["A", "B", "C"], (calls, 1)), axis=1)[:, :2]
    surprised = rng.random(size) < TRUTH.surprise
    factor = np.vectorize(TRUTH.turnout.station.get)(station)
    turnout = 70.0 * factor * np.exp(0.3 * rng.standard_normal(size))
    mean = TRUTH.drive_scale * path
    own = np.sqrt(np.log1p((TRUTH.drive_spread**2 * mean**2 + TRUTH.slack_s**2) / mean**2))
    off = own * rng.standard_normal(size) + TRUTH.shared * rng.standard_normal((calls, 1))
    off = off + surprised * TRUTH.wide * rng.standard_normal(size)
    drive = mean * np.exp(-0.5 * (own**2 + TRUTH.shared**2) + off)
    at = START + np.arange(calls)[:, None] * np.timedelta64(600, "s") + np.zeros(size, "m8[s]")

    def later(seconds: np.ndarray) -> Any:
        return at + np.round(seconds).astype("m8[s]")

    arrival = turnout + drive
    first = arrival.min(axis=1, keepdims=True)
    lost = recalled & (arrival > first)
    none = np.datetime64("NaT", "s")
    columns: dict[str, Any] = {
        "unit": station,
        "station": station,
        "dispatched": at,
        "received": at,
        "en_route": np.where(stamped & ~(lost & (turnout > first)), later(turnout), none),
        "on_scene": np.where(lost, none, later(arrival)),
        "cancelled": np.where(lost, later(first + np.zeros(size)), none),
    }
    names = np.repeat([f"call {n:05d}" for n in range(calls)], 2)
    columns = {name: values.reshape(-1) for name, values in columns.items()}
    log = Responses.of(names, row=np.arange(2 * calls), **columns)
    return log, path.reshape(-1)[log.row]


def _gains_come_true(found: ResponseModel) -> None:
    """What the fitted model expects of other calls is what happens there."""
    log, path = drawn_log(5000, seed=1)
    response = found.of(path, station=log.station)
    first, second = response[0::2], response[1::2]  # a call's units follow each other
    pair = ResponsePair(first, second)
    ahead = log.response_s[0::2] - log.response_s[1::2]
    assert pair.gain_s.mean() == pytest.approx(np.maximum(ahead, 0.0).mean(), rel=0.06)
    assert pair.second_first.mean() == pytest.approx((ahead > 0.0).mean(), abs=0.02)
    assert response.mean_s.mean() == pytest.approx(log.response_s.mean(), rel=0.03)
    late = response.later_than(400.0).mean()
    assert late == pytest.approx((log.response_s > 400.0).mean(), abs=0.02)


def test_the_truth_is_found_again() -> None:
    found = fit_responses(*drawn_log())
    assert found.turnout.seconds * found.turnout.station["B"] == pytest.approx(70.0, rel=0.05)
    ratio = found.turnout.station["C"] / found.turnout.station["A"]
    assert ratio == pytest.approx(1.3 / 0.8, rel=0.05)
    assert found.drive_scale == pytest.approx(0.9, rel=0.06)
    assert found.shared == pytest.approx(0.2, rel=0.2)
    _gains_come_true(found)
    assert found.rows == 2400
    assert found.until == "2023-03-09"
    assert found.source == "2,400 responses of a log"
    assert found.drive == ""


def test_without_the_time_of_leaving_the_sum_teaches_as_much() -> None:
    found = fit_responses(*drawn_log(stamped=False))
    assert found.beside_s == 0.0, "it cannot be told from turnout"
    _gains_come_true(found)


def test_recalled_units_count_with_what_they_would_have_taken_longer() -> None:
    log, path = drawn_log(recalled=True)
    assert 0.45 < log.arrived.mean() < 0.55
    found = fit_responses(log, path)
    there = log.arrived
    naive = fit_responses(log.select(there), path[there])
    truth = float(TRUTH.of(250.0, station="B").mean_s)
    off, naive_off = (
        float(model.of(250.0, station="B").mean_s) - truth for model in (found, naive)
    )
    assert naive_off < -20.0, "those who arrived were the quick ones"
    assert abs(off) < 0.4 * abs(naive_off)


def test_when_another_arrived_is_known_from_all_rows_of_the_call() -> None:
    """A recalled unit had not arrived when another did, whether that one teaches or not."""
    log, path = drawn_log(recalled=True)
    late = np.where(log.arrived, log.cancelled, log.cancelled + np.timedelta64(20, "m"))
    log = replace(log, cancelled=late)
    rows = ~log.arrived | (log.calls % 2 == 0)  # the others of every second call teach nothing
    found = fit_responses(log, path, rows)
    assert found.rows == rows.sum()
    alone = fit_responses(log.select(rows), path[rows])
    assert alone.rows < found.rows, "nobody is known to have arrived at these calls"


def test_factors_of_few_responses_stay_near_one() -> None:
    log, path = drawn_log()
    rare = log.station.astype("U9")
    rare[np.flatnonzero(log.station == "C")[:3]] = "seldom"
    found = fit_responses(replace(log, station=rare), path)
    assert abs(np.log(found.turnout.station["seldom"])) < abs(np.log(found.turnout.station["C"]))


def test_without_places_names_and_hours_speak() -> None:
    log, _ = drawn_log()
    found = fit_responses(log, np.full(len(log), np.nan))
    assert found.unplaced is not None
    nobody = np.full(3, np.nan)
    told = found.of(nobody, station=np.array(["A", "B", "C"])).median_s
    usual = [np.median(log.response_s[log.station == name]) for name in "ABC"]
    np.testing.assert_allclose(told, usual, rtol=0.05)


def test_a_log_with_and_without_places_has_one_shared_part() -> None:
    log, path = drawn_log()
    some = np.where(np.arange(len(log)) % 4 < 2, path, np.nan)  # both units of every other call
    found = fit_responses(log, some)
    assert found.unplaced is not None
    _gains_come_true(found)
    kept = ~np.isnan(some)
    alone = fit_responses(log.select(kept), some[kept])
    assert found.shared == pytest.approx(alone.shared, rel=0.1)


def test_a_forgotten_button_changes_next_to_nothing() -> None:
    log, path = drawn_log()
    wild = np.array(log.on_scene)
    wild[::40] = log.en_route[::40] + np.timedelta64(2, "s")
    wild[20::40] += np.timedelta64(3, "h")
    found, usual = fit_responses(replace(log, on_scene=wild), path), fit_responses(log, path)
    told, expected = (model.of(250.0, station="B").median_s for model in (found, usual))
    assert told == pytest.approx(float(expected), rel=0.03)


def test_rows_with_a_remark_teach_nothing() -> None:
    log, path = drawn_log(400)
    remark = np.zeros(len(log), np.uint8)
    remark[::2] = len(REMARKS) - 1
    kept = remark == 0
    marked = fit_responses(replace(log, remark=remark), path)
    assert marked == fit_responses(log.select(kept), path[kept])


def test_too_little_is_said_in_one_line() -> None:
    log, path = drawn_log(20)
    with pytest.raises(InputError, match="40 usable responses; at least 50 are needed"):
        fit_responses(log, path)
    with pytest.raises(InputError, match="3 drives for 40 responses"):
        fit_responses(log, path[:3])


# --- trips ------------------------------------------------------------------------------


def drawn_trips(
    calls: int, per_call: int, *, apart_s: int = 20, turnout: bool = False, seed: int = 0
) -> tuple[Trips, np.ndarray]:
    """Drives as the truth says, several to each call, and the model's seconds for each."""
    rng = np.random.default_rng(seed)
    size = (calls, per_call)
    path = rng.uniform(60.0, 400.0, size)
    mean = TRUTH.drive_scale * path
    own = np.sqrt(np.log1p((TRUTH.drive_spread**2 * mean**2 + TRUTH.slack_s**2) / mean**2))
    off = own * rng.standard_normal(size) + TRUTH.shared * rng.standard_normal((calls, 1))
    off = off + (rng.random(size) < TRUTH.surprise) * TRUTH.wide * rng.standard_normal(size)
    seconds = mean * np.exp(-0.5 * (own**2 + TRUTH.shared**2) + off)
    if turnout:
        seconds = seconds + 70.0 * np.exp(0.3 * rng.standard_normal(size))
    at = START + np.arange(calls)[:, None] * np.timedelta64(3600, "s")
    at = at + np.arange(per_call) * np.timedelta64(apart_s, "s")
    node = np.repeat(np.arange(calls), per_call) if apart_s <= 60 else np.arange(calls * per_call)
    trips = Trips(
        origin=np.zeros(path.size, np.int32),
        destination=node.astype(np.int32),
        observed_s=seconds.reshape(-1),
        contexts=np.full((path.size, len(ContextEncoding().columns)), np.nan),
        at=at.reshape(-1),
        target=np.full(path.size, TARGETS.index(RESPONSE if turnout else STAMPS)),
    )
    return trips, path.reshape(-1)


@pytest.mark.parametrize("apart_s", [20, 200])
def test_the_spread_of_drives_is_found_in_trips(apart_s: int) -> None:
    """By calls with several units, or by what trips of a quarter of an hour have in common."""
    trips, path = drawn_trips(1500, 2, apart_s=apart_s)
    found = fit_trips(trips, path, np.arange(len(trips)), drive="a model")
    whole = np.sqrt(TRUTH.drive_spread**2 + (TRUTH.slack_s / 230.0) ** 2)
    assert np.hypot(found.drive_spread, found.slack_s / 230.0) == pytest.approx(whole, rel=0.1)
    assert found.shared == pytest.approx(TRUTH.shared, rel=0.15)
    assert found.drive_scale == pytest.approx(TRUTH.drive_scale, rel=0.05)
    assert found.turnout == ResponseModel.published().turnout
    assert (found.rows, found.drive, found.until) == (3000, "a model", "2023-05-02")
    drives, others = found.of(path[0::2], rolling=True), found.of(path[1::2], rolling=True)
    ahead = trips.observed_s[0::2] - trips.observed_s[1::2]
    expected = ResponsePair(drives, others).gain_s.mean()
    assert expected == pytest.approx(np.maximum(ahead, 0.0).mean(), rel=0.06)


def test_trips_from_the_dispatch_have_a_turnout_in_them() -> None:
    trips, path = drawn_trips(1500, 2, turnout=True)
    found = fit_trips(trips, path, np.arange(len(trips)))
    response = found.of(path)
    assert response.mean_s.mean() == pytest.approx(trips.observed_s.mean(), rel=0.03)
    assert found.turnout.seconds == pytest.approx(70.0, rel=0.2)


def test_trips_of_other_rows_are_not_learned_from() -> None:
    trips, path = drawn_trips(400, 2)
    rows = np.arange(200, 400)
    spoilt = replace(
        trips, observed_s=np.where(np.isin(np.arange(800), rows), trips.observed_s, 9e4)
    )
    assert fit_trips(spoilt, path, rows) == fit_trips(trips, path, rows)
    for bad, drive_s in ((rows[:49], path), (rows, np.zeros(800)), (rows, path[1:])):
        with pytest.raises(InputError, match="response times: "):
            fit_trips(trips, drive_s, bad)


def test_unknown_moments_have_nothing_in_common() -> None:
    trips, path = drawn_trips(100, 1)
    nowhere = replace(trips, at=None)
    found = fit_trips(nowhere, path, np.arange(100))
    assert (found.until, found.rows) == ("", 100)


def test_a_trained_model_is_judged_by_trips_it_has_not_seen() -> None:
    trips, path = drawn_trips(100, 2)
    model: Any = SimpleNamespace(
        split=SimpleNamespace(validation=np.arange(60), test=np.arange(60, 120)),
        predicted_s=path + 30.0, trip_constant_s=30.0, data=SimpleNamespace(trips=trips),
        checksum="of a model",
    )  # fmt: skip
    drive_s = model.predicted_s - 30.0
    assert responses_of(model) == fit_trips(trips, drive_s, np.arange(120), drive="of a model")
    model.split = SimpleNamespace(validation=np.arange(40), test=np.arange(0))
    assert responses_of(model) == ResponseModel.published()

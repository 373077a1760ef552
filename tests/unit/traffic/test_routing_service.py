"""Asking a service that fails, refuses, repeats keys or is down, with Google's as the example."""

import logging
from dataclasses import replace
from datetime import timedelta
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import IdealError, InputError, TrafficError, TrafficServiceError
from ideal_dispatch.outside_service import BudgetError, Patience, RequestBudget
from ideal_dispatch.traffic.google_routes import GoogleParams, GoogleRoutes
from ideal_dispatch.traffic.routing_service import RecordedAnswers, RefusedError
from tests.stand_in import Answer
from tests.unit.traffic.google_stand_in import NOW, PLAIN, QUICK, connected, error, town

BUSY = [
    error(429, "RESOURCE_EXHAUSTED", "Quota exceeded"),
    error(500, "INTERNAL", "Internal error encountered."),
    error(503, "UNAVAILABLE", "The service is currently unavailable."),
    Answer("<html>Sign in to the network</html>"),
    Answer('{"routes": [{"dura'),
    Answer('{"routes": NaN}'),
    Answer('{"routes": [{"duration": 1e999}]}'),
    Answer('{"routes"', promised=1000),
    Answer(b"\xff\xfe"),
    Answer("[" * 100_000),
]


@pytest.mark.parametrize("bad", BUSY)
def test_a_passing_failure_is_asked_again(grid: RoadNetwork, bad: Answer) -> None:
    with connected(town(grid, first=[bad, bad, bad]), PLAIN) as (source, server):
        assert source.quote(3, 116, NOW).duration_s > 0
        assert len(server.asked) == 4


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (BUSY[0], "HTTP 429 RESOURCE_EXHAUSTED: Quota exceeded; given up after 4 of 4 tries"),
        (BUSY[1], "HTTP 500 INTERNAL: Internal error encountered"),
        (BUSY[3], "the answer is not whole JSON: '<html>Sign in to the network</html>'"),
        (BUSY[4], "the answer is not whole JSON"),
        (BUSY[5], "no valid JSON .NaN is not a finite number"),
        (BUSY[6], "no valid JSON .1e999 is not a finite number"),
        (Answer("<h1>down</h1>", 503), "HTTP 503 '<h1>down</h1>'"),
        (Answer(b"x" * 300_000), "larger than 100,000 bytes; not read"),
    ],
)
def test_a_lasting_failure_is_an_error_of_one_line(
    grid: RoadNetwork, bad: Answer, message: str
) -> None:
    patience = replace(QUICK, max_bytes=100_000)
    with connected(town(grid, first=[bad] * 4), PLAIN, patience=patience) as (source, _):
        with pytest.raises(TrafficServiceError, match=f"^Google Routes: .*{message}") as caught:
            source.quote(3, 116, NOW)
        assert "\n" not in str(caught.value)


def test_a_slow_server_ends_at_the_deadline(grid: RoadNetwork) -> None:
    patience = Patience(timeout_s=0.1, deadline_s=0.25, pause_s=0.0)
    late = [Answer("late", delay_s=0.4) for _ in range(9)]
    with (
        connected(town(grid, first=late), PLAIN, patience=patience) as (source, _),
        pytest.raises(TrafficServiceError, match="no whole answer within .*given up after . of 4"),
    ):
        source.quote(3, 116, NOW)


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now_s, self.slept = 0.0, list[float]()

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds


def test_pauses_have_full_jitter_and_keep_retry_after(grid: RoadNetwork) -> None:
    slept = []
    for asked_s in ("0", "3"):
        time = FakeTime()
        later = error(429, "RESOURCE_EXHAUSTED", "Quota", {"Retry-After": asked_s})
        options: dict[str, Any] = {"timer": time}
        options["patience"] = Patience(pause_s=1.0)
        with connected(town(grid, first=[later] * 3), PLAIN, **options) as (source, _):
            source.quote(3, 116, NOW)
        slept.append(time.slept)
    draws = np.random.default_rng(0).uniform(0.0, [1.0, 2.0, 4.0])
    np.testing.assert_allclose(slept[0], draws)
    np.testing.assert_allclose(slept[1], draws + 3.0)


def test_a_wait_beyond_the_deadline_is_left_to_the_caller(grid: RoadNetwork) -> None:
    later = error(429, "RESOURCE_EXHAUSTED", "Quota", {"Retry-After": "3600"})
    with connected(town(grid, first=[later]), PLAIN) as (source, server):
        with pytest.raises(TrafficServiceError, match="wait 3600 s; given up after 1 of 4"):
            source.quote(3, 116, NOW)
        assert len(server.asked) == 1


def test_a_dead_service_is_left_alone_and_tried_again(grid: RoadNetwork) -> None:
    time = FakeTime()
    patience = replace(QUICK, attempts=1)
    place = town(grid, first=[BUSY[1]] * 6)
    with connected(place, PLAIN, timer=time, patience=patience) as (source, server):
        for _ in range(8):
            with pytest.raises(TrafficServiceError):
                source.quote(3, 116, NOW)
        with pytest.raises(TrafficServiceError, match="left alone for 30 s after 5 fail"):
            source.quote(3, 116, NOW)
        assert len(server.asked) == 5
        time.now_s = 31.0
        with pytest.raises(TrafficServiceError, match="HTTP 500"):  # the trial fails
            source.quote(3, 116, NOW)
        with pytest.raises(TrafficServiceError, match="left alone"):
            source.quote(3, 116, NOW)
        time.now_s = 62.0
        source.quote(3, 116, NOW)
        source.quote(3, 116, NOW)
        assert len(server.asked) == 8


def test_a_replay_says_what_an_open_circuit_said(grid: RoadNetwork, tmp_path: FilePath) -> None:
    answers = RecordedAnswers(tmp_path)
    with connected(town(grid), PLAIN, answers=answers) as (source, _):
        source.quote(3, 116, NOW)  # the best guess, without its range
    patience = replace(QUICK, attempts=1, failures=1)
    options: dict[str, Any] = {"answers": answers, "patience": patience}
    with connected(town(grid, first=[BUSY[1]] * 9), **options) as (source, _):
        live = source.quote(3, 116, NOW)
    assert "left alone for 30 s" in live.fell_back
    assert GoogleRoutes(grid, answers=answers).quote(3, 116, NOW).fell_back == live.fell_back


def test_the_budget_ends_a_run_and_counts_retries(grid: RoadNetwork) -> None:
    budget = RequestBudget(5)
    with connected(town(grid, first=[BUSY[1]]), budget=budget) as (source, server):
        source.quote(3, 116, NOW)
        assert budget.spent == 4
        with pytest.raises(BudgetError, match="exceed the budget of 5 requests .5 sent."):
            source.quote(3, 117, NOW)
        assert len(server.asked) == 5
    assert isinstance(BudgetError(), IdealError)


def test_the_key_is_nowhere(
    grid: RoadNetwork, tmp_path: FilePath, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "AIza-secret-1234"  # a key the town does not know
    echo = Answer(f"<html>who is {secret}?</html>", 500)
    refused = error(403, "PERMISSION_DENIED", f"key {secret} is not known")
    answers = RecordedAnswers(tmp_path)
    place = town(grid, first=[echo] * 4 + [refused])
    with connected(place, key=secret, answers=answers) as (source, server):
        texts = [repr(source), str(source.describe())]
        for kind in (TrafficServiceError, RefusedError):
            with pytest.raises(kind, match=r"\[key\]") as caught:
                source.quote(3, 116, NOW)
            texts += [str(caught.value), repr(caught.value), str(vars(caught.value))]
        assert {asked.headers["x-goog-api-key"] for asked in server.asked} == {secret}
    texts += [path.read_text() for path in tmp_path.iterdir()]
    assert len(texts) > 8
    assert secret not in "".join(texts) + caplog.text


def test_a_wrong_key_is_refused_at_once(grid: RoadNetwork) -> None:
    with connected(town(grid), key="wrong") as (source, server):
        with pytest.raises(RefusedError, match="HTTP 403 PERMISSION_DENIED: The caller does not"):
            source.quote(3, 116, NOW)
        assert len(server.asked) == 1


@pytest.mark.parametrize("way", ["static_ratio", "stopover", "own_query"])
def test_recorded_answers_are_replayed_to_the_byte(
    grid: RoadNetwork, tmp_path: FilePath, way: Any
) -> None:
    answers, params = RecordedAnswers(tmp_path), GoogleParams(way)
    place = town(grid, first=[BUSY[1]] * 2)
    with connected(place, params, answers=answers) as (source, server):
        said = [source.quote(3, n, NOW + timedelta(minutes=n)) for n in (116, 40)]
        asked = len(server.asked)
        again = source.quote(3, 116, NOW + timedelta(minutes=116))
        assert len(server.asked) == asked  # recorded: not asked again
    replay = GoogleRoutes(grid, params, answers=answers)
    assert repr(replay.quote(3, 116, NOW + timedelta(minutes=116))) == repr(said[0]) == repr(again)
    assert repr(replay.quote(3, 40, NOW + timedelta(minutes=40))) == repr(said[1])
    with pytest.raises(TrafficError, match="no recorded answer to this .*record it with a"):
        replay.quote(3, 41, NOW)
    with pytest.raises(TrafficError, match="2026-03-02T08:01:00"):
        replay.quote(3, 116, NOW + timedelta(minutes=1))


def test_failures_are_replayed_as_failures_but_asked_again_live(
    grid: RoadNetwork, tmp_path: FilePath
) -> None:
    answers = RecordedAnswers(tmp_path)
    place = town(grid, first=[BUSY[0]] * 4)
    with connected(place, PLAIN, answers=answers) as (source, _):
        with pytest.raises(TrafficServiceError, match="HTTP 429"):
            source.quote(3, 116, NOW)
        replay = GoogleRoutes(grid, PLAIN, answers=answers)
        with pytest.raises(TrafficServiceError, match="HTTP 429"):
            replay.quote(3, 116, NOW)
        source.quote(3, 116, NOW)
    replay.quote(3, 116, NOW)
    assert len(list(tmp_path.iterdir())) == 1


def test_damaged_recordings(grid: RoadNetwork, tmp_path: FilePath) -> None:
    answers = RecordedAnswers(tmp_path)
    with connected(town(grid), PLAIN, answers=answers) as (source, _):
        source.quote(3, 116, NOW)
        source.quote(3, 117, NOW)
    first, second = sorted(tmp_path.iterdir())
    replay = GoogleRoutes(grid, PLAIN, answers=answers)
    second.write_bytes(first.read_bytes())
    first.write_text("{")
    messages = set()
    for destination in (116, 117):
        with pytest.raises(IdealError, match="; delete it") as caught:
            replay.quote(3, destination, NOW)
        messages.add(str(caught.value).split(": ")[-1])
    assert messages == {
        "damaged recorded answer; delete it",
        "answers another question; delete it",
    }
    with pytest.raises(InputError, match="no such folder; create it first"):
        RecordedAnswers(tmp_path / "nowhere")


def test_a_proxy_is_used(grid: RoadNetwork) -> None:
    nowhere: dict[str, Any] = {
        "proxy": "http://127.0.0.1:9",
        "patience": replace(QUICK, attempts=1),
    }
    with connected(town(grid), PLAIN, **nowhere) as (source, server):
        with pytest.raises(TrafficServiceError):
            source.quote(3, 116, NOW)
        assert not server.asked


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(InputError, match="patience: attempts 0: at least 1 is needed"):
        Patience(attempts=0)
    with pytest.raises(InputError, match="pause_s -1: zero or more is needed"):
        Patience(pause_s=-1)
    with pytest.raises(InputError, match="request budget -1"):
        RequestBudget(-1)

"""Asking a service that is slow, fails, refuses, repeats keys or is down."""

import json
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.outside_service import (
    BudgetError,
    HttpAnswer,
    NoAnswerError,
    OutsideService,
    Patience,
    RequestBudget,
    one_line,
    parsed,
    public,
    reason,
    refusal,
)
from tests.stand_in import Answer, Asked, Server, serve

QUICK = Patience(timeout_s=60.0, deadline_s=120.0, pause_s=0.0)
ONCE = replace(QUICK, attempts=1)
GOOD = Answer('{"yes": 1}')
BUSY = [
    Answer('{"error": {"status": "EXHAUSTED", "message": "Quota"}}', 429),
    Answer("<h1>down</h1>", 503),
    Answer("<html>Sign in to the network</html>"),
    Answer('{"yes'),
    Answer('{"yes": NaN}'),
    Answer('{"yes": 1e999}'),
    Answer('{"yes"', promised=1000),
    Answer(b"\xff\xfe"),
    Answer("[" * 100_000),
    Answer("x" * 300_000),
]


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now_s, self.slept = 0.0, list[float]()

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds


@contextmanager
def connected(*first: Answer, **options: Any) -> Iterator[tuple[OutsideService, Server]]:
    """A client, and a server that gives these answers and then :data:`GOOD`."""
    left = list(first)
    patience = replace(options.pop("patience", QUICK), max_bytes=200_000)
    rng = np.random.default_rng(0)
    with (
        serve(lambda asked: left.pop(0) if left else GOOD) as server,
        closing(OutsideService("test", rng, patience=patience, **options)) as client,
    ):
        yield client, server


def ask(client: OutsideService, server: Server, **request: Any) -> Any:
    return client.ask(parsed, "GET", server.url, **request)


def test_a_request_arrives_as_given() -> None:
    with connected(Answer("Öl", 418, {"X-Kind": "tea"})) as (client, server):
        answer = client.ask(
            lambda answer: answer, "POST", f"{server.url}/a", params={"q": "1 2"},
            headers={"X-Key": "k"}, content=b"{}",
        )  # fmt: skip
    assert (answer.status, answer.body, answer.headers["x-kind"]) == (418, "Öl".encode(), "tea")
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.query) == ("POST", "/a", {"q": "1 2"})
    assert (asked.headers["x-key"], asked.body) == ("k", b"{}")


def test_it_can_be_used_again_after_it_was_closed() -> None:
    with connected() as (client, server):
        for _ in range(2):
            assert ask(client, server) == {"yes": 1}
            client.close()


@pytest.mark.parametrize("bad", BUSY)
def test_a_failure_is_asked_again_and_a_lasting_one_is_an_error_of_one_line(bad: Answer) -> None:
    with connected(*[bad] * 3) as (client, server):
        assert ask(client, server) == {"yes": 1}
        assert len(server.asked) == 4
    with connected(*[bad] * 4) as (client, server):
        with pytest.raises(NoAnswerError, match="4 of 4 tries") as caught:
            ask(client, server)
        assert len(server.asked) == 4
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("slow", [Answer("late", delay_s=0.4), Answer("drip" * 99, drip_s=0.05)])
def test_a_slow_server_ends_at_the_deadline(slow: Answer) -> None:
    patience = Patience(timeout_s=0.1, deadline_s=0.25, pause_s=0.0)
    with (
        connected(*[slow] * 9, patience=patience) as (client, server),
        pytest.raises(NoAnswerError, match=r"within 0\.\d+ s.* of 4"),
    ):
        ask(client, server)
    assert 2 <= len(server.asked) <= 3


def test_slow_headers_end_at_the_limit_and_leave_no_thread_behind() -> None:
    """Each byte comes in time, all of them in ten seconds; the next exchange is whole."""
    patience = replace(ONCE, timeout_s=0.3)
    with connected(Answer("late", header_drip_s=0.1), patience=patience) as (client, server):
        with pytest.raises(NoAnswerError, match=r"0\.3 s"):
            ask(client, server)
        for thread in threading.enumerate():
            if thread.name == "http exchange":
                thread.join(5.0)
                assert not thread.is_alive()
        assert ask(client, server, deadline=client.deadline()) == {"yes": 1}


def test_many_questions_at_once() -> None:
    def answer(asked: Asked) -> Answer:
        return Answer(json.dumps(asked.path), delay_s=0.05)

    with serve(answer) as server, closing(OutsideService("test", patience=QUICK)) as client:
        with ThreadPoolExecutor(8) as pool:
            said = pool.map(lambda n: client.ask(parsed, "GET", f"{server.url}/{n}"), range(40))
        assert list(said) == [f"/{n}" for n in range(40)]


def test_pauses_have_full_jitter_and_keep_retry_after() -> None:
    slept = []
    for asked_s in ("0", "3"):
        time = FakeTime()
        later = [Answer("busy", 429, {"Retry-After": asked_s})] * 3
        with connected(*later, timer=time, patience=Patience(pause_s=1.0)) as (client, server):
            ask(client, server)
        slept.append(time.slept)
    draws = np.random.default_rng(0).uniform(0.0, [1.0, 2.0, 4.0])
    np.testing.assert_allclose(slept[0], draws)
    np.testing.assert_allclose(slept[1], draws + 3.0)


def test_pauses_have_a_longest() -> None:
    time, patience = FakeTime(), Patience(attempts=6, deadline_s=60.0, longest_pause_s=0.75)
    with connected(*[BUSY[1]] * 5, timer=time, patience=patience) as (client, server):
        ask(client, server)
    draws = np.random.default_rng(0).uniform(0.0, [0.5, 0.75, 0.75, 0.75, 0.75])
    np.testing.assert_allclose(time.slept, draws)


def test_a_wait_beyond_the_deadline_is_left_to_the_caller() -> None:
    later = Answer("busy", 429, {"Retry-After": "3600"})
    with connected(later) as (client, server):
        with pytest.raises(NoAnswerError, match=r"3600 s.* 1 of 4"):
            ask(client, server)
        assert len(server.asked) == 1


def test_a_dead_service_is_left_alone_and_tried_again() -> None:
    time = FakeTime()
    with connected(*[BUSY[1]] * 6, timer=time, patience=ONCE) as (client, server):
        for _ in range(8):
            with pytest.raises(NoAnswerError, match="503"):  # the same words all the while
                ask(client, server)
        assert len(server.asked) == 5
        time.now_s = 31.0
        for _ in range(2):  # the trial fails, and it is left alone again
            with pytest.raises(NoAnswerError):
                ask(client, server)
        assert len(server.asked) == 6
        time.now_s = 62.0
        ask(client, server)
        ask(client, server)
        assert len(server.asked) == 8


def test_refusals_are_answers() -> None:
    def read(answer: HttpAnswer) -> Any:
        raise InputError(f"{answer.status}")

    with connected(*[Answer("no", 404)] * 9) as (client, server):
        for _ in range(9):
            with pytest.raises(InputError, match="404"):
                client.ask(read, "GET", server.url)
        assert len(server.asked) == 9  # never left alone


def test_the_budget_ends_a_run_and_counts_retries() -> None:
    budget = RequestBudget(3)
    with connected(BUSY[1], budget=budget) as (client, server):
        ask(client, server)
        assert budget.spent == 2
        ask(client, server)
        with pytest.raises(BudgetError, match="3"):
            ask(client, server)
        assert len(server.asked) == budget.spent == 3


def test_a_kept_budget_outlives_its_run(tmp_path: Path) -> None:
    for spent in (1, 2):
        with closing(RequestBudget(2, tmp_path / "requests")) as budget:
            budget.spend("test")
            assert budget.spent == spent
    with closing(RequestBudget(2, tmp_path / "requests")) as budget, pytest.raises(BudgetError):
        budget.spend("test")


def test_a_secret_is_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "AIza-secret-1234"
    echo = Answer(f"<html>who is {secret}?</html>", 500)
    options: dict[str, Any] = {"secrets": [secret, ""], "patience": ONCE}
    with connected(echo, Answer(f'"{secret}"'), **options) as (client, server):
        with pytest.raises(NoAnswerError, match=r"\[key\]") as caught:
            ask(client, server, headers={"x-key": secret})
        assert ask(client, server, headers={"x-key": secret}) == "[key]"
        assert {asked.headers["x-key"] for asked in server.asked} == {secret}
    assert secret not in str(caught.value) + repr(client) + caplog.text


@pytest.mark.parametrize("url", ["http://me:secret@127.0.0.1:1/", "ftp://me:secret@x", "http://["])
def test_an_address_that_cannot_be_used_does_not_show_its_password(url: str) -> None:
    client = OutsideService("test", patience=ONCE)
    with closing(client), pytest.raises((NoAnswerError, InputError)) as caught:
        client.ask(parsed, "GET", url)
    assert "secret" not in str(caught.value)
    assert public("https://host/path?q=a@b") == "https://host/path?q=a@b"


def test_a_proxy_is_used_and_a_wrong_one_is_not_repeated() -> None:
    with connected(proxy="http://127.0.0.1:9", patience=ONCE) as (client, server):
        with pytest.raises(NoAnswerError):
            ask(client, server)
        assert not server.asked
    with (
        connected(proxy="ftp://me:secret@x") as (client, server),
        pytest.raises(InputError, match="proxy") as caught,
    ):
        ask(client, server)
    assert "secret" not in str(caught.value)


def test_how_long_to_wait() -> None:
    def asked(text: str) -> float | None:
        return HttpAnswer(503, {"retry-after": text}, b"").retry_after_s

    later = datetime.now(UTC) + timedelta(hours=1)
    assert [asked(text) for text in ("7", " 0 ", "soon", "-1", "²", "")] == [
        7.0, 0.0, None, None, None, None,
    ]  # fmt: skip
    assert 3500 < (asked(format_datetime(later)) or 0) <= 3600


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"error": {"status": "DENIED", "message": "no\\nkey"}}', " DENIED: no key"),
        ('[{"error": {"message": "no key"}}]', " no key"),
        ('{"error_code": 442, "error": "No path"}', " error 442: No path"),
        ('{"error": true, "reason": "bad date"}', " bad date"),
        ("<h1>x</h1>", " '<h1>x</h1>'"),
        ("3", ""),
        ("[]", ""),
    ],
)
def test_why_in_a_services_own_words(body: str, words: str) -> None:
    assert reason(refusal(HttpAnswer(400, {}, body.encode()))) == words


def test_foreign_text_fits_one_line() -> None:
    assert one_line("a\n\tb\x00\x1b[31m" + "c" * 500, 10) == "a b[31mccc"
    assert HttpAnswer(500, {}, b"\xff<h1>\nx").excerpt == " '�<h1> x'"
    assert HttpAnswer(500, {}, b"").excerpt == ""


@pytest.mark.parametrize(
    ("settings", "key"), [({"attempts": 0}, "attempts"), ({"pause_s": -1}, "pause_s")]
)
def test_settings_that_make_no_sense(settings: dict[str, Any], key: str) -> None:
    with pytest.raises(InputError, match=key):
        Patience(**settings)
    with pytest.raises(InputError, match="budget"):
        RequestBudget(-1)

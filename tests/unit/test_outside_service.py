from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.outside_service import (
    HttpAnswer,
    NoAnswerError,
    OutsideService,
    Patience,
    one_line,
    public,
)
from tests.stand_in import Answer, serve

ONCE = Patience(attempts=1, timeout_s=2.0, max_bytes=1000, rest_s=0.0)


@pytest.fixture
def service() -> Iterator[OutsideService]:
    with closing(OutsideService("test", patience=ONCE)) as made:
        yield made


def whole(answer: HttpAnswer) -> HttpAnswer:
    return answer


def test_a_request_arrives_as_given(service: OutsideService) -> None:
    with serve(lambda asked: Answer("Öl", 418, {"X-Kind": "tea"})) as server:
        request: dict[str, Any] = {
            "params": {"q": "1 2"}, "headers": {"X-Key": "k"}, "content": b"{}",
        }  # fmt: skip
        answer = service.ask(whole, "POST", f"{server.url}/a", **request)
        service.close()
        service.ask(whole, "GET", server.url)  # over a new connection
    assert (answer.status, answer.body, answer.headers["x-kind"]) == (418, "Öl".encode(), "tea")
    asked = server.asked[0]
    assert (asked.method, asked.path, asked.query) == ("POST", "/a", {"q": "1 2"})
    assert (asked.headers["x-key"], asked.body) == ("k", b"{}")


@pytest.mark.parametrize(
    "answer",
    [
        Answer("late", delay_s=0.6),
        Answer("drip" * 99, drip_s=0.05),
        Answer(b"x" * 5000),
        Answer("half", promised=100),
    ],
)
def test_answers_that_are_late_or_not_whole(answer: Answer) -> None:
    service = OutsideService("test", patience=replace(ONCE, timeout_s=0.2))
    with (
        serve(lambda asked: answer) as server,
        closing(service),
        pytest.raises(NoAnswerError, match=server.url),
    ):
        service.ask(whole, "GET", server.url)


def test_many_requests_at_once(service: OutsideService) -> None:
    with (
        serve(lambda asked: Answer(asked.path, delay_s=0.05)) as server,
        ThreadPoolExecutor(8) as pool,
    ):
        said = pool.map(lambda n: service.ask(whole, "GET", f"{server.url}/{n}").body, range(40))
        assert list(said) == [f"/{n}".encode() for n in range(40)]


@pytest.mark.parametrize("url", ["x.hk", "http://x:port", "ftp://me:secret@x"])
def test_addresses_that_make_no_sense(service: OutsideService, url: str) -> None:
    with pytest.raises(InputError, match="^test address") as caught:
        service.ask(whole, "GET", url)
    assert "secret" not in str(caught.value)


def test_passwords_are_not_repeated(service: OutsideService) -> None:
    assert public("http://me:secret@127.0.0.1:1/a@b") == "http://127.0.0.1:1/a@b"
    assert public("https://host/path?q=a@b") == "https://host/path?q=a@b"
    proxied = OutsideService("test", patience=ONCE, proxy="ftp://me:secret@x")
    for one, error in ((service, NoAnswerError), (proxied, InputError)):
        with pytest.raises(error) as caught:
            one.ask(whole, "GET", "http://me:secret@127.0.0.1:1/")
        assert "secret" not in str(caught.value)


def test_how_long_to_wait() -> None:
    def asked(text: str) -> float | None:
        return HttpAnswer(503, {"retry-after": text}, b"").retry_after_s

    assert [asked(text) for text in ("7", " 0 ", "soon", "-1", "²")] == [7, 0, None, None, None]
    later = datetime.now(UTC) + timedelta(hours=1)
    assert 3500 < (asked(format_datetime(later)) or 0) <= 3600
    assert HttpAnswer(503, {}, b"").retry_after_s is None


def test_foreign_text_fits_one_line() -> None:
    assert one_line("a\n\tb\x00\x1b[31m" + "c" * 500, 10) == "a b[31mccc"
    assert HttpAnswer(500, {}, b"\xff<h1>\nx").excerpt == " '�<h1> x'"
    assert HttpAnswer(500, {}, b"").excerpt == ""

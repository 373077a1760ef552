import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.http_client import HttpAnswer, HttpClient, NoAnswerError, one_line, public
from tests.stand_in import Answer, serve


def client(timeout_s: float = 2.0, max_bytes: int = 1000) -> HttpClient:
    return HttpClient("test", timeout_s, max_bytes)


def test_a_request_arrives_as_given() -> None:
    with (
        serve(lambda asked: Answer("Öl", 418, {"X-Kind": "tea"})) as server,
        closing(client()) as http,
    ):
        answer = http.exchange(
            "POST", f"{server.url}/a", params={"q": "1 2"}, headers={"X-Key": "k"}, body=b"{}"
        )
    assert (answer.status, answer.body, answer.headers["x-kind"]) == (418, "Öl".encode(), "tea")
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.query) == ("POST", "/a", {"q": "1 2"})
    assert (asked.headers["x-key"], asked.body) == ("k", b"{}")


def test_it_can_be_used_again_after_it_was_closed() -> None:
    with serve(lambda asked: Answer("x")) as server:
        http = client()
        for _ in range(2):
            assert http.exchange("GET", server.url).body == b"x"
            http.close()


@pytest.mark.parametrize("answer", [Answer("late", delay_s=0.4), Answer("drip" * 99, drip_s=0.05)])
def test_a_shorter_limit_for_one_exchange(answer: Answer) -> None:
    with (
        serve(lambda asked: answer) as server,
        closing(client()) as http,
        pytest.raises(NoAnswerError, match="no whole answer within 0.1 s"),
    ):
        http.exchange("GET", server.url, timeout_s=0.1)


def test_too_much_and_too_little() -> None:
    with closing(client()) as http:
        for answer, message in (
            (Answer(b"x" * 5000), "larger than 1,000 bytes; not read"),
            (Answer("half", promised=100), "no answer .*; check the network"),
        ):
            with (
                serve(lambda asked, answer=answer: answer) as server,  # type: ignore[misc]
                pytest.raises(NoAnswerError, match=message),
            ):
                http.exchange("GET", server.url)


def test_addresses_that_make_no_sense() -> None:
    with (
        closing(client()) as http,
        pytest.raises(InputError, match="test address 'ftp://x' cannot be used"),
    ):
        http.exchange("GET", "ftp://x")


def test_how_long_to_wait() -> None:
    def asked(text: str) -> float | None:
        return HttpAnswer(503, {"retry-after": text}, b"").retry_after_s

    later = datetime.now(UTC) + timedelta(hours=1)
    assert (asked("7"), asked(" 0 "), asked("soon"), asked("-1"), asked("²")) == (
        7.0, 0.0, None, None, None,
    )  # fmt: skip
    assert 3500 < (asked(format_datetime(later)) or 0) <= 3600
    assert HttpAnswer(503, {}, b"").retry_after_s is None


def test_foreign_text_fits_one_line() -> None:
    assert one_line("a\n\tb\x00\x1b[31m" + "c" * 500, 10) == "a b[31mccc"
    assert HttpAnswer(500, {}, b"\xff<h1>\nx").excerpt == " '�<h1> x'"
    assert HttpAnswer(500, {}, b"").excerpt == ""


def test_slow_headers_end_at_the_limit_and_leave_nobody_behind() -> None:
    """Each byte comes in time, all of them in ten seconds; the next exchange is whole."""
    answers = [Answer("late", header_drip_s=0.1), Answer("x")]
    with serve(lambda asked: answers.pop(0)) as server, closing(client()) as http:
        with pytest.raises(NoAnswerError, match="no whole answer within 0.3 s"):
            http.exchange("GET", server.url, timeout_s=0.3)
        for thread in threading.enumerate():
            if thread.name == "http exchange":
                thread.join(5.0)
                assert not thread.is_alive()
        assert http.exchange("GET", server.url).body == b"x"


def test_many_exchanges_at_once() -> None:
    with serve(lambda asked: Answer(asked.path, delay_s=0.05)) as server, closing(client()) as http:
        with ThreadPoolExecutor(8) as pool:
            said = pool.map(lambda n: http.exchange("GET", f"{server.url}/{n}").body, range(40))
        assert list(said) == [f"/{n}".encode() for n in range(40)]


def test_a_password_in_an_address_is_not_repeated() -> None:
    assert public("http://me:secret@127.0.0.1:1/a@b") == "http://127.0.0.1:1/a@b"
    assert public("https://host/path?q=a@b") == "https://host/path?q=a@b"
    with closing(client()) as http:
        for url in ("http://me:secret@127.0.0.1:1/", "ftp://me:secret@x"):
            with pytest.raises((NoAnswerError, InputError)) as caught:
                http.exchange("GET", url)
            assert "secret" not in str(caught.value)


def test_a_proxy_that_makes_no_sense_is_not_repeated() -> None:
    http = HttpClient("test", timeout_s=1, max_bytes=10, proxy="ftp://me:secret@x")
    with pytest.raises(InputError, match="^test client: the proxy cannot be used$"):
        http.exchange("GET", "http://127.0.0.1:1")

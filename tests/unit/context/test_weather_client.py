from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from ideal_dispatch.context.weather_client import AnswerCache, WeatherClient
from ideal_dispatch.errors import InputError, WeatherError, WeatherServiceError
from tests.unit.context.stand_in import Answer, stand_in

QUICK = WeatherClient(timeout_s=60.0, pause_s=0.0)
IMPATIENT = WeatherClient(timeout_s=0.2, pause_s=0.0)


def once_then(bad: Answer, good: Answer) -> Callable[[str, dict[str, str]], Answer]:
    answers = [bad, good]
    return lambda path, query: answers.pop(0) if len(answers) > 1 else answers[0]


def test_a_good_answer() -> None:
    with stand_in(lambda path, query: Answer("Öl")) as server:
        assert QUICK.get(f"{server.url}/x", {"a": "1 2"}) == "Öl".encode()
    assert server.asked == [("/x", {"a": "1 2"})]


@pytest.mark.parametrize("status", [429, 500, 502, 503])
@pytest.mark.parametrize(
    "later", ["", "0", format_datetime(datetime(2020, 1, 1, tzinfo=UTC)), "soon", "-1"]
)
def test_an_overloaded_server_is_asked_once_more(status: int, later: str) -> None:
    headers = {"Retry-After": later} if later else {}
    with stand_in(once_then(Answer("busy", status, headers), Answer("fine"))) as server:
        assert QUICK.get(server.url) == b"fine"
    assert len(server.asked) == 2


def test_but_not_for_ever() -> None:
    with stand_in(lambda path, query: Answer("<h1>Internal\nError</h1>", 500)) as server:
        with pytest.raises(WeatherServiceError, match="HTTP 500 '<h1>Internal Error</h1>'; try ag"):
            QUICK.get(server.url)
        assert len(server.asked) == 2


def test_a_long_wait_is_left_to_the_caller() -> None:
    busy = Answer("Daily limit exceeded", 429, {"Retry-After": "3600"})
    with stand_in(lambda path, query: busy) as server:
        with pytest.raises(WeatherServiceError, match="HTTP 429 'Daily limit.*asks to wait 3600"):
            QUICK.get(server.url)
        assert len(server.asked) == 1


def test_a_wrong_request_is_not_repeated() -> None:
    with stand_in(lambda path, query: Answer('{"error": true}', 400)) as server:
        with pytest.raises(WeatherError, match="HTTP 400 .*check the address") as caught:
            QUICK.get(server.url, {"key": "secret"})
        assert len(server.asked) == 1
    assert "secret" not in str(caught.value)
    assert not isinstance(caught.value, WeatherServiceError)


def test_a_redirect_names_the_new_address() -> None:
    with (
        stand_in(lambda path, query: Answer(b"", 301, {"Location": "https://new/"})) as server,
        pytest.raises(WeatherError, match="moved to https://new/ "),
    ):
        QUICK.get(server.url)


@pytest.mark.parametrize("answer", [Answer("late", delay_s=0.6), Answer("drip" * 500, drip_s=0.05)])
def test_a_slow_server_is_given_up(answer: Answer) -> None:
    with (
        stand_in(lambda path, query: answer) as server,
        pytest.raises(WeatherServiceError, match="no whole answer within 0.2 s"),
    ):
        IMPATIENT.get(server.url)


def test_a_truncated_answer_is_none() -> None:
    with (
        stand_in(lambda path, query: Answer("half", promised=100)) as server,
        pytest.raises(WeatherServiceError, match="no answer .*; check the network"),
    ):
        QUICK.get(server.url)


def test_a_huge_answer_is_not_read() -> None:
    with (
        stand_in(lambda path, query: Answer(b"x" * 200_000)) as server,
        pytest.raises(WeatherServiceError, match="larger than 100,000 bytes; not read"),
    ):
        WeatherClient(max_bytes=100_000).get(server.url)


def test_nobody_there() -> None:
    with stand_in(lambda path, query: Answer()) as server:
        pass
    with pytest.raises(WeatherServiceError, match=f"{server.url}: no answer"):
        QUICK.get(server.url)


def test_settings_and_addresses_that_make_no_sense() -> None:
    for url in ("data.weather.gov.hk", "http://x:port", "ftp://x"):
        with pytest.raises(InputError, match="weather address .* cannot be used"):
            QUICK.get(url)
    with pytest.raises(InputError, match="weather client: timeout_s 0: .* is needed"):
        WeatherClient(timeout_s=0).get("http://127.0.0.1")


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2024, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def wait(self, **span: float) -> None:
        self.now += timedelta(**span)


def failing() -> str:
    raise WeatherServiceError("down")


def test_answers_are_kept_while_fresh() -> None:
    clock = Clock()
    cache = AnswerCache[str](clock)
    hour = timedelta(hours=1)
    assert cache.get("a", hour, lambda: "old") == ("old", None)
    clock.wait(minutes=59)
    assert cache.get("a", hour, failing) == ("old", None)
    clock.wait(minutes=1)
    assert cache.get("a", hour, lambda: "new") == ("new", None)
    clock.wait(days=-1)  # a clock set back: the answer is of the future
    assert cache.get("a", hour, lambda: "newer") == ("newer", None)


def test_an_outdated_answer_comes_with_the_reason() -> None:
    clock = Clock()
    cache = AnswerCache[str](clock)
    cache.get("a", timedelta(minutes=5), lambda: "old")
    clock.wait(minutes=6)
    answer, error = cache.get("a", timedelta(minutes=5), failing)
    assert (answer, str(error)) == ("old", "down")


def test_a_dead_server_is_left_alone_for_a_minute() -> None:
    clock = Clock()
    cache = AnswerCache[str](clock)
    asked = []

    def ask() -> str:
        asked.append(clock.now)
        raise WeatherServiceError("down")

    for _ in range(130):
        with pytest.raises(WeatherServiceError, match="down"):
            cache.get(len(asked), timedelta(hours=1), ask)
        clock.wait(seconds=1)
    assert len(asked) == 3


def test_a_refused_request_does_not_block_others() -> None:
    def refuse() -> str:
        raise WeatherError("no such day")

    cache = AnswerCache[str](Clock())
    with pytest.raises(WeatherError, match="no such day"):
        cache.get("a", timedelta(hours=1), refuse)
    assert cache.get("b", timedelta(hours=1), lambda: "fine") == ("fine", None)


def test_the_cache_is_bounded() -> None:
    cache = AnswerCache[int](Clock(), capacity=2)
    hour = timedelta(hours=1)
    for key in (1, 2, 1, 3):
        cache.get(key, hour, lambda key=key: key)  # type: ignore[misc]
    assert cache.get(1, hour, lambda: -1) == (1, None)
    assert cache.get(2, hour, lambda: -1) == (-1, None)

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from ideal_dispatch.context.weather import OutdatedWeatherError
from ideal_dispatch.context.weather_stations import PATIENCE, WeatherDocuments, WeatherStations
from ideal_dispatch.errors import InputError, WeatherError, WeatherServiceError
from tests.unit.context.stand_in import Answer, stand_in

NOW = datetime(2024, 1, 1, tzinfo=UTC)
QUICK = replace(PATIENCE, timeout_s=60.0, deadline_s=120.0, pause_s=0.0)
HOUR = timedelta(hours=1)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def wait(self, **span: float) -> None:
        self.now += timedelta(**span)


def degrees(body: bytes) -> WeatherStations:
    """Stations of a document that is one number."""
    return WeatherStations({("roof", "temperature_c"): {int(NOW.timestamp()): float(body)}}, "test")


def documents(url: str, clock: Clock | None = None, **options: Any) -> WeatherDocuments:
    return WeatherDocuments(url, "degrees", clock or Clock(), **{"patience": QUICK, **options})


def ask(source: WeatherDocuments | str, key: str = "a", at: datetime = NOW, **params: str) -> float:
    source = documents(source) if isinstance(source, str) else source
    weather = source.reading(at, 114.0, 22.0, degrees, fresh=HOUR, params=params, key=key)
    return weather.temperature_c.value


def once_then(bad: Answer, good: Answer) -> Callable[[str, dict[str, str]], Answer]:
    answers = [bad, good]
    return lambda path, query: answers.pop(0) if len(answers) > 1 else answers[0]


def test_a_good_answer() -> None:
    with stand_in(lambda path, query: Answer("21.5")) as server:
        assert ask(f"{server.url}/x", b="1 2") == 21.5
    assert server.asked == [("/x", {"b": "1 2"})]


@pytest.mark.parametrize("status", [429, 500, 502, 503])
@pytest.mark.parametrize(
    "later", ["", "0", format_datetime(datetime(2020, 1, 1, tzinfo=UTC)), "soon", "-1"]
)
def test_an_overloaded_server_is_asked_once_more(status: int, later: str) -> None:
    headers = {"Retry-After": later} if later else {}
    with stand_in(once_then(Answer("busy", status, headers), Answer("7"))) as server:
        assert ask(server.url) == 7
    assert len(server.asked) == 2


def test_but_not_for_ever() -> None:
    with stand_in(lambda path, query: Answer("<h1>Internal\nError</h1>", 500)) as server:
        with pytest.raises(
            WeatherServiceError, match="HTTP 500 '<h1>Internal Error</h1>'; given up after 2 of 2"
        ):
            ask(server.url)
        assert len(server.asked) == 2


def test_a_long_wait_is_left_to_the_caller() -> None:
    busy = Answer("Daily limit exceeded", 429, {"Retry-After": "3600"})
    with stand_in(lambda path, query: busy) as server:
        with pytest.raises(
            WeatherServiceError, match="HTTP 429 'Daily limit.*asks to wait 3600 s; given"
        ):
            ask(server.url)
        assert len(server.asked) == 1


def test_a_wrong_request_is_not_repeated() -> None:
    with stand_in(lambda path, query: Answer('{"error": true}', 400)) as server:
        with pytest.raises(WeatherError, match="HTTP 400 .*check the address") as caught:
            ask(server.url, token="secret")
        assert len(server.asked) == 1
    assert "secret" not in str(caught.value)
    assert not isinstance(caught.value, WeatherServiceError)


def test_a_redirect_names_the_new_address() -> None:
    with (
        stand_in(
            lambda path, query: Answer(b"", 301, {"Location": "https://new/?key=k"})
        ) as server,
        pytest.raises(WeatherError, match="moved to https://new/ "),
    ):
        ask(server.url)


@pytest.mark.parametrize("answer", [Answer("late", delay_s=0.6), Answer("drip" * 500, drip_s=0.05)])
def test_a_slow_server_is_given_up(answer: Answer) -> None:
    with (
        stand_in(lambda path, query: answer) as server,
        pytest.raises(WeatherServiceError, match="no whole answer within 0.2 s"),
    ):
        ask(documents(server.url, patience=replace(QUICK, timeout_s=0.2)))


def test_a_truncated_answer_is_none() -> None:
    with (
        stand_in(lambda path, query: Answer("half", promised=100)) as server,
        pytest.raises(WeatherServiceError, match="no answer .*; check the network"),
    ):
        ask(server.url)


def test_a_huge_answer_is_not_read() -> None:
    with (
        stand_in(lambda path, query: Answer(b"x" * 200_000)) as server,
        pytest.raises(WeatherServiceError, match="larger than 100,000 bytes; not read"),
    ):
        ask(documents(server.url, patience=replace(QUICK, max_bytes=100_000)))


def test_nobody_there() -> None:
    with stand_in(lambda path, query: Answer()) as server:
        pass
    with pytest.raises(WeatherServiceError, match=f"{server.url}: no answer"):
        ask(server.url)


def test_settings_and_addresses_that_make_no_sense() -> None:
    for url in ("data.weather.gov.hk", "http://x:port", "ftp://x"):
        with pytest.raises(InputError, match="weather address .* cannot be used"):
            ask(url)
    with pytest.raises(InputError, match="patience: timeout_s 0: more than 0 is needed"):
        replace(QUICK, timeout_s=0)


def test_a_key_that_the_server_repeats_is_not_shown() -> None:
    with (
        stand_in(lambda path, query: Answer("who is s3cret?", 403)) as server,
        pytest.raises(WeatherError, match=r"HTTP 403 .who is \[key\]") as caught,
    ):
        ask(documents(server.url, secrets=["s3cret"]))
    assert "s3cret" not in str(caught.value)


def test_answers_are_kept_while_fresh() -> None:
    clock, said = Clock(), ["1", "2", "3"]
    with stand_in(lambda path, query: Answer(said.pop(0))) as server:
        source = documents(server.url, clock)
        assert ask(source) == 1
        clock.wait(minutes=59)
        assert ask(source) == 1
        clock.wait(minutes=1)
        assert ask(source) == 2
        clock.wait(days=-1)  # a clock set back: the answer is of the future
        assert ask(source) == 3


def test_an_outdated_answer_comes_with_the_reason() -> None:
    clock = Clock()
    with stand_in(once_then(Answer("5"), Answer("", 503))) as server:
        source = documents(server.url, clock)
        ask(source)
        clock.wait(minutes=70)
        with pytest.raises(OutdatedWeatherError, match="HTTP 503") as caught:
            ask(source, at=clock.now)
    assert caught.value.known.temperature_c.value == 5


class FakeTime:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.mark.parametrize("bad", [Answer("", 503), Answer("<html>no degrees</html>")])
def test_a_dead_server_is_left_alone_for_a_minute(bad: Answer) -> None:
    timer, said = FakeTime(), set[str]()
    with stand_in(lambda path, query: bad) as server:
        source = documents(server.url, timer=timer, patience=replace(QUICK, attempts=1))
        for number in range(130):
            with pytest.raises(
                WeatherServiceError, match=r"HTTP 503|is no degrees \(could not"
            ) as caught:
                ask(source, str(number))
            said.add(str(caught.value))
            timer.now_s += 1.0
        assert len(server.asked) == 3
        assert len(said) == 4  # what came back, and why it was not asked after each of three


def test_who_wants_no_rest_asks_again_at_once() -> None:
    with stand_in(once_then(Answer("", 503), Answer("5"))) as server:
        source = documents(server.url, patience=replace(QUICK, attempts=1, rest_s=0.0))
        with pytest.raises(WeatherServiceError, match="HTTP 503"):
            ask(source)
        assert ask(source) == 5


def test_a_refused_request_does_not_block_others() -> None:
    answers, timer = [Answer("", 503), Answer("no such day", 400), Answer("5")], FakeTime()
    with stand_in(lambda path, query: answers.pop(0)) as server:
        source = documents(server.url, timer=timer, patience=replace(QUICK, attempts=1))
        with pytest.raises(WeatherServiceError, match="HTTP 503"):
            ask(source, "a")
        timer.now_s += 61.0  # what is asked after its rest is a trial
        with pytest.raises(WeatherError, match="no such day"):
            ask(source, "a")
        assert ask(source, "b") == 5


def test_the_documents_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ideal_dispatch.context.weather_stations._CAPACITY", 2)
    with stand_in(lambda path, query: Answer("5")) as server:
        source = documents(server.url)
        for key in ("1", "2", "1", "3"):
            ask(source, key)
        assert len(server.asked) == 3
        ask(source, "1")
        assert len(server.asked) == 3
        ask(source, "2")
        assert len(server.asked) == 4

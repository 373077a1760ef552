"""Timestamps without zone, of the future or of an hour ago; clocks that jump; summer time."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from ideal_dispatch.service.http.schemas import RecommendationRequest
from ideal_dispatch.service.solver.messages import KnownUnits, KnownWeather
from tests.faults.service_faults import advised, codes, post, words
from tests.service_town import Local, Town, application, later, local

NOTHING = KnownUnits({}, None), KnownWeather()


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    with local(application(town.settings("clocks.toml"))) as opened:
        yield opened


def test_timestamp_without_zone(client: Local, town: Town) -> None:
    naive = datetime.now(UTC).replace(tzinfo=None).isoformat()
    answer = post(client, town.call(received_at=naive))
    assert answer.status_code == 422
    assert "timezone" in answer.json()["error"]["message"]
    assert answer.json()["error"]["where"] == "body.received_at"


def test_timestamp_of_the_future(client: Local, town: Town) -> None:
    made = advised(client, town.call("future", received_at=later(3600)))
    assert made.decision == "no_advice"
    assert "ahead of the clock here" in words(made, "call_in_future")


def test_timestamp_slightly_ahead_is_a_clock_that_differs(client: Local, town: Town) -> None:
    made = advised(client, town.call("skew", received_at=later(30)))
    assert made.decision != "no_advice"
    assert "clock_skew" in codes(made)


def test_timestamp_an_hour_old(client: Local, town: Town) -> None:
    made = advised(client, town.call("old", received_at=later(-3600)))
    assert made.decision == "no_advice"
    assert "60 min ago" in words(made, "call_too_old")
    recent = advised(client, town.call("recent", received_at=later(-300)))
    assert recent.decision != "no_advice"


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_timestamps_at_the_ends_of_time(client: Local, town: Town, moment: str) -> None:
    made = advised(client, town.call(f"end-{moment[:4]}", received_at=moment))
    assert made.decision == "no_advice"
    assert codes(made)[0] in ("call_too_old", "call_in_future")


@pytest.mark.parametrize(("days", "code"), [(1, "call_too_old"), (-1, "call_in_future")])
def test_clock_jump(client: Local, town: Town, days: int, code: str) -> None:
    """The wall clock jumps while a call is answered: the advice is that of a steady clock.

    For the next call it is a clock that disagrees with the caller's, and that is said.
    """
    adviser, reader = client.adviser, client.adviser.reader
    real, readings = reader._clock, 0
    now = real()  # what the primary has driven already is the same both times

    def jumping() -> datetime:
        nonlocal readings
        readings += 1
        return now + timedelta(days=days if readings > 1 else 0)

    weather = {"weather": {"temperature_c": 20.0}}  # dated by the same look at the clock
    request = RecommendationRequest.model_validate(town.call("jump", context=weather)).call()
    try:
        reader._clock = lambda: now
        steady = adviser.advise(request, *NOTHING, time.monotonic() + 10.0)
        reader._clock = jumping
        made = adviser.advise(
            request, KnownUnits({}, None), KnownWeather(), time.monotonic() + 10.0
        )
    finally:
        reader._clock = real
    assert readings == 1
    assert steady["decision"] == "send_second"
    for part in ("decision", "gain_s", "nominal", "second", "degraded"):
        assert made[part] == steady[part]

    reader._clock = lambda: real() + timedelta(days=days)
    try:
        jumped = advised(client, town.call(f"jumped {days}"))
    finally:
        reader._clock = real
    assert jumped.decision == "no_advice"
    assert codes(jumped) == [code]
    assert advised(client, town.call(f"after {days}")).decision == "send_second"


def test_summer_time(town: Town) -> None:
    """The hour that comes twice and the hour that never comes are moments like any other."""
    zone = ZoneInfo("America/New_York")
    city = {"time_zone": "America/New_York", "country": "US"}
    traffic = {"kind": "forecast", "file": ""}
    with local(application(town.settings("dst.toml", city=city, traffic=traffic))) as client:
        adviser = client.adviser
        for text in ("2026-11-01T05:30:00+00:00", "2026-11-01T06:30:00+00:00",
                     "2026-03-08T06:59:59+00:00", "2026-03-08T07:00:01+00:00"):  # fmt: skip
            now = datetime.fromisoformat(text)
            adviser.reader._clock = lambda now=now: now  # type: ignore[misc]
            for received in (now, now.astimezone(zone)):
                body = town.call("dst", received_at=received.isoformat())
                request = RecommendationRequest.model_validate(body).call()
                made = adviser.advise(
                    request, KnownUnits({}, None), KnownWeather(), time.monotonic() + 10
                )
                assert made["decision"] != "no_advice"

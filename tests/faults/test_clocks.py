"""Moments without zone, of the future or of an hour ago; clocks that are wrong or jump."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from benchmarks.exclusive import AHEAD
from ideal_dispatch.service.clock import micros
from ideal_dispatch.service.deciding.engine import Picture
from ideal_dispatch.service.deciding.weather import KnownWeather
from ideal_dispatch.service.record import rows
from ideal_dispatch.service.requests import RecommendationRequest
from ideal_dispatch.service.units import Unit
from tests.service_town import (
    Local,
    Town,
    application,
    codes,
    counts,
    later,
    local,
    serving,
)


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    with local(application(town.settings("clocks.toml"))) as opened:
        opened.report()
        yield opened


@pytest.mark.parametrize(
    ("seconds", "code", "advised"),
    [
        (3600, "call_in_future", False),
        (30, "clock_skew", True),
        (-300, "", True),
        (-3600, "call_too_old", False),
    ],
)
def test_callers_whose_clocks_differ(
    client: Local, town: Town, seconds: float, code: str, advised: bool
) -> None:
    made = client.advice(town.call(f"skew {seconds}", received_at=later(seconds)))
    assert (made["decision"] != "no_advice") is advised
    assert not code or code in codes(made)


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_moments_at_the_ends_of_time(client: Local, town: Town, moment: str) -> None:
    made = client.advice(town.call(f"end-{moment[:4]}", received_at=moment))
    assert codes(made)[0] in ("call_too_old", "call_in_future")


def test_a_worker_whose_clock_is_an_hour_ahead(town: Town, tmp_path: Path) -> None:
    """Time is the database's: two workers give, hold and end the same promises."""
    (tmp_path / "sitecustomize.py").write_text(AHEAD)
    config = town.config("ahead.toml", server={"deadline_s": 30.0, "expiry_s": 60.0})
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with (
        serving(config) as right,
        serving(config, environment={"PYTHONPATH": path}) as wrong,
    ):
        wrong.report(*counts(D0=1, D1=1))
        wrong.report(town.unit("A1", at=later(0)))
        for call in ("given", "left out"):
            moment: dict[str, Any] = {} if call == "given" else {"received_at": None}
            primary = {"unit": "A1"} if call == "given" else {"depot": "D0"}
            made = wrong.advice(town.call(call, primary=primary, threshold_s=-1000.0, **moment))
            assert made["decision"] == "send_second"
            age = datetime.now(UTC) - datetime.fromisoformat(made["asked_at"])
            assert abs(age) < timedelta(minutes=30)
            promised = right.unit(made["second"]["unit"])["promised"]
            assert (promised["call_id"], promised["until"]) == (call, made["expires_at"])
            assert right.reply(made, "override").status_code == 200
        assert right.read("/v1/city")["clock"]["now"] <= wrong.read("/v1/city")["clock"]["now"]
        assert wrong.read("/v1/city")["clock"]["now"] < later(1800)


@pytest.mark.parametrize("seconds", [-5.0, -86_400.0, 86_400.0])
def test_the_databases_clock_jumps(
    client: Local, town: Town, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Advice is given before and after; set back a little, time stands still meanwhile."""
    before = client.advice(town.call(f"before {seconds}"))
    clock = rows.database_now
    monkeypatch.setattr(rows, "database_now", lambda c: clock(c) + round(seconds * 1e6))
    made = client.advice(town.call(f"jumped {seconds}", received_at=None))
    assert made["decision"] != "no_advice"
    assert abs(seconds) > 10.0 or made["asked_at"] >= before["asked_at"]
    if seconds > 0.0:  # a day's rest, and the clock is right again
        monkeypatch.undo()
        client.report()
    assert client.advice(town.call(f"after {seconds}", received_at=None))["decision"] != "no_advice"


def test_summer_time(town: Town) -> None:
    """The hour that comes twice and the hour that never comes are moments like any other."""
    zone = ZoneInfo("America/New_York")
    city = {"time_zone": "America/New_York", "country": "US"}
    traffic = {"kind": "forecast", "file": ""}
    with local(application(town.settings("dst.toml", city=city, traffic=traffic))) as client:
        for text in ("2026-11-01T05:30:00+00:00", "2026-11-01T06:30:00+00:00",
                     "2026-03-08T06:59:59+00:00", "2026-03-08T07:00:01+00:00"):  # fmt: skip
            now = datetime.fromisoformat(text)
            us = micros(now)
            units = tuple(Unit(d, d, "at_station", us, us, us) for d in ("D0", "D1"))
            for received in (now, now.astimezone(zone)):
                body = town.call("dst", received_at=received.isoformat())
                call = RecommendationRequest.model_validate(body)
                made = client.service.engine.adviser.advise(
                    call, Picture(us, units), KnownWeather(), time.monotonic() + 60.0
                )
                assert made.decision != "no_advice"

"""The vehicle location feed: its parser from data, and what reaches the service."""

import json
import runpy
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from benchmarks.ports import free_port
from tests.conftest import ROOT
from tests.examples.programs import running
from tests.stand_in import Answer, Asked, serve
from tests.waiting import wait_for

parse: Callable[[str, datetime], dict[str, Any] | None]
parse = runpy.run_path(str(ROOT / "examples" / "avl_feed.py"))["parse"]
NOW = datetime(2026, 3, 1, 8, 18, 40, tzinfo=UTC)
RMC = "$GPRMC,081836.00,A,2135.07,N,11714.36,E,023.2,090.0,010326,,,A*53"
GGA = "$GPGGA,081840,2135.10,N,11714.40,E,1,08,0.9,5.0,M,,M,,*5F"


def sentence(text: str) -> str:
    total = 0
    for letter in text:
        total ^= ord(letter)
    return f"${text}*{total:02X}"


def test_a_position_has_its_time_place_speed_and_course() -> None:
    assert parse(f"A117,{RMC}\r\n", NOW) == {
        "id": "A117", "at": "2026-03-01T08:18:36+00:00", "lat": 21.5845, "lon": 117.2393333,
        "speed_kmh": 43.0, "heading": 90.0,
    }  # fmt: skip
    south_west = sentence("GNRMC,081836,A,3352.5,S,07030.6,W,,,010326,,,A")
    assert parse(f"1/83-1 {south_west}", NOW) == {
        "id": "1/83-1", "at": "2026-03-01T08:18:36+00:00", "lat": -33.875, "lon": -70.51,
        "speed_kmh": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("clock", "now", "at"),
    [
        ("081840", NOW, "2026-03-01T08:18:40"),
        ("235959", datetime(2026, 3, 1, 0, 0, 5, tzinfo=UTC), "2026-02-28T23:59:59"),
        ("000001", datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC), "2026-03-01T00:00:01"),
    ],
)
def test_a_position_without_a_date_is_of_the_nearest_day(
    clock: str, now: datetime, at: str
) -> None:
    news = parse(f"A117 {sentence(f'GPGGA,{clock},2135.10,N,11714.40,E,1,08,0.9,5.0,M,,M,,')}", now)
    assert news is not None
    assert news["at"] == f"{at}+00:00"


@pytest.mark.parametrize(
    ("code", "status"),
    [("1", "available"), ("3", "en_route"), ("8", "at_hospital"), ("32773", "en_route")],
)
def test_a_status_code_is_a_status(code: str, status: str) -> None:
    assert parse(f"A117 {code}", NOW) == {"id": "A117", "at": NOW.isoformat(), "status": status}


@pytest.mark.parametrize(
    "line",
    [
        "A117 0",
        "A117 32775",
        f"A117,{sentence('GPRMC,081836,V,,,,,,,010326,,,N')}",
        f"A117,{sentence('GPGGA,081840,,,,,0,00,,,M,,M,,')}",
        f"A117,{sentence('GPGSV,1,1,00')}",
    ],
)
def test_a_line_without_place_and_status_says_nothing(line: str) -> None:
    assert parse(line, NOW) is None


@pytest.mark.parametrize(
    "line",
    [
        "",
        "A117",
        RMC,
        f"A117,{RMC[:-2]}54",
        "A117 4711",
        f"A117 {sentence('GPRMC,081836,A,2135.07,X,11714.36,E,1,1,010326')}",
        f"A117 {sentence('GPRMC,081836,A,2135.07,N')}",
        f"A117 {sentence('GPRMC,256199,A,2135.07,N,11714.36,E,1,1,010326')}",
    ],
)
def test_a_line_that_cannot_be_read_is_refused(line: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        parse(line, NOW)


def test_all_statuses_and_the_last_positions_reach_the_service_once_it_is_there() -> None:
    """It is away first, then refuses every list with the unit X."""
    taken: list[dict[str, Any]] = []
    answers = [503, 500]

    def service(asked: Asked) -> Answer:
        assert (asked.method, asked.path) == ("PUT", "/v1/units")
        news = json.loads(asked.body)
        if answers:
            return Answer("{}", status=answers.pop())
        if any(one["id"] == "X" for one in news):
            return Answer("{}", status=422)
        taken.extend(news)
        return Answer(json.dumps({"taken": len(news), "ignored": []}))

    with serve(service) as server, running("avl_feed.py", server.url) as process:
        lines = ["A117 3", "X 3", f"A117,{RMC}", "garbled", f"A117,{GGA}", "A117 4"]
        process.communicate("\n".join(lines) + "\n", timeout=60)  # it ends with its input
    assert process.returncode == 0
    assert [one["status"] for one in taken if "status" in one] == ["en_route", "on_scene"]
    (position,) = (one for one in taken if "lon" in one)
    assert position["lat"] == pytest.approx(21.585)


@pytest.mark.parametrize("kind", ["--tcp", "--udp"])
def test_it_listens_at_a_port(kind: str) -> None:
    port = free_port()

    def service(asked: Asked) -> Answer:
        return Answer(json.dumps({"taken": 1, "ignored": []}))

    def say() -> bool:
        """A datagram that is lost, and a port that is not open yet, cost a try."""
        how = socket.SOCK_STREAM if kind == "--tcp" else socket.SOCK_DGRAM
        with socket.socket(socket.AF_INET, how) as speaker:
            if speaker.connect_ex(("127.0.0.1", port)) == 0:
                speaker.send(b"A117 3\n")
        return bool(server.asked)

    with serve(service) as server, running("avl_feed.py", server.url, kind, port):
        wait_for(say)
    assert json.loads(server.asked[0].body)[0]["status"] == "en_route"

"""``ideal units follow``: a feed at the command line."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch.cli.units import follow
from ideal_dispatch.errors import InputError
from ideal_dispatch.service.units.avl import checksum
from tests.stand_in import Answer, serve
from tests.unit.service.units.fleet_stand_in import TOKEN, fleet

RMC = "GPRMC,081836.00,A,2135.07,N,11714.36,E,023.2,090.0,010326,,,A"
IDEAL = Path(sys.executable).with_name("ideal")


def feature(**properties: Any) -> str:
    place = {"type": "Point", "coordinates": [117.2, 21.5]}
    made = {"type": "Feature", "geometry": place, "properties": properties}
    return json.dumps(made) + "\n"


@pytest.fixture
def feed(tmp_path: Path) -> str:
    path = tmp_path / "feed.txt"
    path.write_text(
        feature(vehicle="A117", station="Kelp Point", status=2, at="2026-03-01T08:15:00Z")
        + f"${RMC}*{checksum(RMC)}\n"
        + "rubbish\n"
        + feature(vehicle="A117", status=3, at="2026-03-01T08:19:00Z")
    )
    return str(path)


def test_a_check_prints_what_is_there(feed: str, capsys: pytest.CaptureFixture[str]) -> None:
    follow(feed, unit="A117", field=["id=vehicle"], check=True)
    said = capsys.readouterr()
    table = " ".join(said.out.split())
    assert table.startswith("unit news lon lat km/h last (UTC) statuses station A117 3 117.20000")
    assert "21.50000 43 01 Mar 08:19:00 2 ×1, 3 ×1 Kelp Point" in table
    assert "3 of 4 lines could be read; nothing was sent" in said.out
    assert said.err == (
        "warning: lines that cannot be read: 1, the last: 'rubbish': neither an NMEA sentence nor "
        "a GeoJSON feature\n"
    )


def test_a_feed_is_sent(feed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cad.token").write_text(f"{TOKEN}\n")
    with fleet() as service:
        follow(
            feed, url=service.url, token_file_=tmp_path / "cad.token", unit="A117",
            field=["id=vehicle"], every=60.0,
        )  # fmt: skip
    assert [one["status"] for one in service.news] == ["2", "3"]
    assert service.units["A117"]["status"] == "en_route"
    said = capsys.readouterr()
    assert said.out == "4 lines, 1 units, 2 news taken, 1 lines not read\n"
    assert "Following" not in said.err


def test_a_pipe_is_followed_until_it_ends() -> None:
    """Each line is sent when it comes; nothing but the result is printed."""
    with fleet() as service:
        command = f"{IDEAL} units follow - --url {service.url} --token {TOKEN} --every 0.1"
        with subprocess.Popen(
            command.split(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as running:
            assert running.stdin is not None
            running.stdin.write(feature(id="A1", station="Old Pier", status="free"))
            running.stdin.flush()
            while not service.news and running.poll() is None:
                time.sleep(0.01)
            assert running.poll() is None
            out, err = running.communicate(feature(id="A1", status="4"), timeout=120)
    assert (running.returncode, out, err) == (0, "2 lines, 1 units, 2 news taken\n", "")
    assert service.units["A1"]["status"] == "on_scene"


def test_a_wrong_token_ends_in_one_line(feed: str) -> None:
    with fleet() as service:
        command = f"{IDEAL} units follow {feed} --url {service.url} --token wrong --unit A117"
        done = subprocess.run(
            command.split(), capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: http://127.0.0.1:")
    assert last.endswith(
        "HTTP 401 the token is not known; give the token of a cad, dispatcher or admin"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "whose news are these. Give --token or --token-file, one of them"),
        ({"token": "x", "token_file_": Path("x")}, "whose news are these"),
        ({"token_file_": Path("gone")}, "gone: no such file"),
        ({"token": ""}, "the token is empty or no token; `ideal serve --new-token` makes one"),
        ({"token": "x", "url": "localhost"}, "--url localhost: write it as https://ideal.example"),
        ({"token": "x", "field": ["vehicle"]}, "--field vehicle: write it as id=vehicle"),
        ({"token": "x", "field": ["colour=red"]}, "field 'colour' is not known; known: id, status"),
        ({"source": "gone.txt"}, "gone.txt: no such file"),
    ],
)
def test_what_cannot_be_followed(feed: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        follow(**{"source": feed, **options})


def test_a_check_that_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "feed").write_text("one\ntwo\n")
    with pytest.raises(InputError, match="no news of a unit in 2 lines"):
        follow(str(tmp_path / "feed"), check=True)


def test_an_address_that_streams(capsys: pytest.CaptureFixture[str]) -> None:
    text = feature(unit="A1", status="free", at="2026-03-01T08:15:00Z")
    with serve(lambda asked: Answer(text)) as source:
        follow(source.url, check=True)
    assert "free ×1" in capsys.readouterr().out

"""A feed followed: what arrives at the service, also where one of the two is broken."""

import json
import os
import re
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.units import feed as module
from ideal_dispatch.service.units.avl import LineReader
from ideal_dispatch.service.units.feed import Feed
from ideal_dispatch.service.units.feed_source import Source
from ideal_dispatch.service.units.fleet_client import FleetClient
from ideal_dispatch.service.units.gathered import Gathered
from tests.service_town import Town, serving, token
from tests.stand_in import Answer, Asked, serve
from tests.unit.service.units.fleet_stand_in import TOKEN, FleetStandIn, fleet, refusal
from tests.waiting import PATIENCE_S, wait_for

SOON_S = 0.01


def line(unit: str, second: int, **properties: Any) -> str:
    """A line of a feed; the unit drives east, by a thousandth of a degree a second."""
    place = {"type": "Point", "coordinates": [round(117.2 + second / 1000, 3), 21.5]}
    at = f"2026-03-01T08:00:{second:02d}Z"
    told = {"unit": unit, "at": at, **properties}
    return json.dumps({"type": "Feature", "geometry": place, "properties": told}) + "\n"


def known(*units: str) -> str:
    return "".join(line(unit, 0, station="Kelp Point", status="2") for unit in units)


def write(folder: Path, text: str) -> str:
    path = folder / "feed.jsonl"
    path.write_text(text)
    return str(path)


def made(source: str, said: list[str], every_s: float = SOON_S, **settings: Any) -> Feed:
    return Feed(Source(source), LineReader(), said.append, every_s=every_s, **settings)


def at_once(source: str, said: list[str]) -> Feed:
    """A feed that is read to its end before anything is sent."""
    return made(source, said, every_s=PATIENCE_S)


def follow(feed: Feed, service: FleetStandIn, timeout_s: float = PATIENCE_S) -> None:
    with closing(FleetClient(service.url, TOKEN, timeout_s)) as client:
        feed.follow(client)


def follow_until_refused(feed: Feed, service: FleetStandIn) -> None:
    """Streams have no end: a token that is taken back is one."""
    with pytest.raises(InputError, match="HTTP 401 enough"):
        follow(feed, service)


def test_a_file_arrives(tmp_path: Path) -> None:
    text = known("A1", "A2") + line("A1", 1) + line("A1", 2, status="3") + line("A1", 3, status="4")
    said: list[str] = []
    with fleet() as service:
        feed = at_once(write(tmp_path, text + line("A2", 5)), said)
        follow(feed, service)
    assert [one["status"] for one in service.news if one["id"] == "A1"] == ["2", "3", "4"]
    assert service.units["A1"]["status"] == "on_scene"
    assert service.units["A2"]["lon"] == 117.205
    assert feed.counts.lines == 6
    assert (feed.counts.taken, feed.counts.refused, said) == (len(service.news), 0, [])
    assert service.asked[0].headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "bad",
    [
        Answer("", 500),
        Answer("busy", 503, {"Retry-After": "0"}),
        refusal(409, "units_counted", "counts are told here"),
        refusal(429, "too_many_failures", "wait"),
        Answer('{"taken": 1', 200),
        Answer('{"taken": 1}', 200),
        Answer('["no"]', 200),
        Answer('{"taken": 3, "ignored": []}', 200, promised=1000),
        Answer("x" * 1_100_000, 200),
    ],
)
def test_what_the_service_did_not_take_is_sent_again(tmp_path: Path, bad: Answer) -> None:
    said: list[str] = []
    with fleet(bad, bad) as service:
        feed = made(write(tmp_path, known("A1") + line("A1", 1, status="3")), said)
        follow(feed, service)
    assert [one["status"] for one in service.news] == ["2", "3"]
    assert re.match("the service cannot be told and is tried again: 1, the last: http://", said[0])
    assert not any("\n" in words or TOKEN in words for words in said)


def test_a_service_that_is_slow(tmp_path: Path) -> None:
    said: list[str] = []
    with fleet(Answer("", delay_s=3.0)) as service:
        feed = made(write(tmp_path, known("A1")), said)
        follow(feed, service, timeout_s=0.5)
        wait_for(lambda: bool(service.news))
    assert "no whole answer within 0.5 s" in said[0]
    assert service.units["A1"]["status"] == "at_station"


def test_a_service_that_comes_later(tmp_path: Path) -> None:
    """Places that came meanwhile replace older ones, statuses do not."""
    pipe, said = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    away = [Answer("", 503)] * 3
    with fleet(*away) as service:
        feed = made(str(pipe), said)
        running = threading.Thread(target=follow, args=(feed, service))
        running.start()
        with pipe.open("w") as feeding:
            feeding.write(known("A1"))
            for second in range(1, 40):
                feeding.write(line("A1", second, status="34"[second % 2]))
                feeding.flush()
        running.join(PATIENCE_S)
        assert not running.is_alive()
    assert [one["status"] for one in service.news if "status" in one] == [
        "2", *("34"[second % 2] for second in range(1, 40)),
    ]  # fmt: skip
    assert service.units["A1"]["lon"] == 117.239


def test_nobody_listens(tmp_path: Path) -> None:
    """Refused connections are tried again until somebody does."""
    with fleet() as service:
        url = service.url
    said: list[str] = []
    feed = made(write(tmp_path, known("A1")), said)
    client = FleetClient(url, TOKEN)
    running = threading.Thread(target=feed.follow, args=(client,), daemon=True)
    running.start()
    wait_for(lambda: bool(said))
    assert "Connection refused" in said[0]
    assert running.is_alive()
    with fleet() as service:
        client._url = f"{service.url}/v1/fleet/units"
        running.join(PATIENCE_S)
        client.close()
        assert [one["id"] for one in service.news] == ["A1"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (refusal(401, "unauthorized", "no such token"),
         "HTTP 401 no such token; give the token of a cad, dispatcher or admin"),
        (refusal(403, "forbidden", "an auditor may not"), "HTTP 403 an auditor may not; give the"),
        (Answer("<html>", 404), "HTTP 404 .*; is it the address of the service, without a path?"),
        (Answer("", 301, {"Location": "https://elsewhere"}), "HTTP 301; is it the address"),
        (Answer(f"you said {TOKEN}", 400), r"you said \[token\]"),
    ],
)  # fmt: skip
def test_what_no_list_will_mend_ends_it(tmp_path: Path, answer: Answer, words: str) -> None:
    with fleet(answer) as service, pytest.raises(InputError, match=words) as caught:
        follow(made(write(tmp_path, known("A1")), []), service)
    assert "\n" not in str(caught.value)


def test_one_wrong_item_keeps_no_other_back(tmp_path: Path) -> None:
    units = [f"A{number}" for number in range(20)]
    text = known(*units) + line("A7", 1, status="99") + line("A7", 2, status="3")
    text += line("X1", 1) + line("A3", 1, station="Nowhere")
    said: list[str] = []
    with fleet() as service:
        feed = at_once(write(tmp_path, text), said)
        follow(feed, service)
    assert set(service.units) == set(units)
    assert service.units["A7"]["status"] == "en_route"
    assert feed.counts.refused == 3
    assert len(said) == 1
    assert re.fullmatch(
        "news refused by the service: 3, the last: unit X1: .* X1 is new: .*", said[0]
    )


def test_a_list_that_is_too_large_is_halved(tmp_path: Path) -> None:
    units = [f"A{number}" for number in range(40)]
    with fleet(body_bytes=1000) as service:
        feed = made(write(tmp_path, known(*units)), [])
        follow(feed, service)
    assert set(service.units) == set(units)
    assert feed.counts.refused == 0


def test_many_units_are_several_lists(tmp_path: Path) -> None:
    units = [f"A{number}" for number in range(1001)]
    with fleet() as service:
        follow(made(write(tmp_path, known(*units)), []), service)
    assert len(service.units) == 1001
    assert max(map(len, service.told)) <= 1000


def test_places_of_a_unit_that_is_not_known_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not asked about every second; a status with its station makes it known at once."""
    with fleet() as service, closing(FleetClient(service.url, TOKEN)) as client:
        feed = made(write(tmp_path, ""), [])

        def told(text: str) -> int:
            before = len(service.asked)
            for news in LineReader().read(text):
                feed.gathered.take(news)
            assert feed._send(client, feed.gathered.hand_out()) is None
            return len(service.asked) - before

        assert told(line("X1", 1)) == 1
        assert told(line("X1", 2)) == 0
        assert feed.counts.refused == 2
        assert told(line("X1", 3, station="Old Pier", status="1")) == 1
        assert told(line("X1", 4)) == 1
        assert service.units["X1"]["lon"] == 117.204
        monkeypatch.setattr(module, "_ASIDE_S", 0.0)
        assert told(line("X2", 1)) == told(line("X2", 2)) == 1


def test_news_that_the_service_ignores_are_told(tmp_path: Path) -> None:
    said: list[str] = []
    with fleet() as service:
        service.units["A1"] = {"id": "A1", "at": "2026-03-01T09:00:00.000Z"}
        feed = at_once(write(tmp_path, known("A1")), said)
        follow(feed, service)
    assert feed.counts.ignored == 1
    assert said == [
        "news ignored by the service: 1, the last: A1: older than what is known"
    ]  # fmt: skip


def test_bad_lines_are_counted_told_once_and_stop_nothing(tmp_path: Path) -> None:
    text = known("A1") + "rubbish\n" * 50 + "\x1b[31m{\n" + line("A1", 1, status="3")
    said: list[str] = []
    with fleet() as service:
        feed = at_once(write(tmp_path, text), said)
        follow(feed, service)
    assert service.units["A1"]["status"] == "en_route"
    assert (feed.counts.lines, feed.counts.unread) == (53, 51)
    assert said == [
        "lines that cannot be read: 51, the last: '[31m{': neither an NMEA sentence nor a GeoJSON "
        "feature"
    ]


def test_one_bad_feature_of_a_collection_hides_no_other(tmp_path: Path) -> None:
    features = [json.loads(line(f"A{n}", n, station="Kelp Point", status="2")) for n in range(4)]
    features[1]["geometry"]["coordinates"] = [0, 0]
    features[2]["type"] = "Vehicle"
    collection = {"type": "FeatureCollection", "features": features}
    said: list[str] = []
    with fleet() as service:
        feed = at_once(write(tmp_path, json.dumps(collection)), said)
        follow(feed, service)
    assert sorted(service.units) == ["A0", "A3"]
    assert feed.counts.unread == 1
    assert said[0].endswith("JSON, but no GeoJSON feature")


def test_a_file_waits_and_a_pipe_loses_the_oldest(tmp_path: Path) -> None:
    text = known("A1") + "".join(line("A1", n, status="34"[n % 2]) for n in range(1, 30))
    with fleet(Answer("", 503), Answer("", 503)) as service:
        feed = made(write(tmp_path, text), [], gathered=Gathered(changes=4))
        follow(feed, service)
        assert sum("status" in one for one in service.news) >= 30
        assert feed.counts.lost == 0
    said: list[str] = []
    gathered = Gathered(changes=4)
    for one in text.splitlines():
        for news in LineReader().read(one):
            gathered.take(news)
    with fleet() as service:
        service.units["A1"] = {"id": "A1", "at": ""}
        feed = made(write(tmp_path, ""), said, gathered=gathered)
        follow(feed, service)
    assert len(service.news) == 4
    assert feed.counts.lost == 26
    assert said == ["changes lost while the service was away: 26, the last: the oldest"]


def test_the_real_service_is_told(tmp_path: Path, town: Town) -> None:
    """Codes of its settings are known; one wrong item keeps no other back."""
    now = datetime.now(UTC) - timedelta(seconds=30)

    def lines_of(unit: str, **properties: Any) -> str:
        """One line for every status, a second apart."""
        statuses = properties.pop("statuses")
        return "".join(
            line(unit, n, status=one, at=(now + timedelta(seconds=n)).isoformat(), **properties)
            for n, one in enumerate(statuses)
        )

    text = lines_of("A1", station="D0", statuses=["2", "C", "5", "4"])
    text += lines_of("A2", station="D1", statuses=["1"]) + lines_of("A3", statuses=["1"])
    text += lines_of("A2", statuses=["77"])
    config = town.config("feed.toml", units={"statuses": "fms", "codes": {"C": "dispatched"}})
    said: list[str] = []
    with serving(config) as served:
        feed = at_once(write(tmp_path, text), said)
        with closing(FleetClient(served.url, token("cad"))) as client:
            feed.follow(client)
        units = {one["id"]: one for one in served.get("/v1/fleet/units").json()}
        for wrong, status in ((token("auditor"), 403), ("x" * 40, 401)):
            with (
                closing(FleetClient(served.url, wrong)) as client,
                pytest.raises(InputError, match=f"HTTP {status} .*; give the token of a cad"),
            ):
                at_once(write(tmp_path, text), []).follow(client)
    assert {name: one["status"] for name, one in units.items()} == {
        "A1": "on_scene", "A2": "available",
    }  # fmt: skip
    assert (units["A1"]["station"], units["A1"]["source"]) == ("D0", "cad")
    assert units["A1"]["position"]["lon"] == 117.203
    assert (feed.counts.taken, feed.counts.refused) == (5, 2)
    assert re.search("news refused by the service: 2, the last: unit A[23]: .*HTTP 422", said[0])


# --- streams ---------------------------------------------------------------------------


def test_a_stream_that_breaks_is_opened_again() -> None:
    """It ends, breaks off in the middle of a line, is not there for a while, and goes on."""
    answers = [
        Answer(known("A1")),
        Answer(line("A1", 1, status="3") + '{"type": "Fea', promised=10_000),
        Answer("", 503),
        Answer("", 404),
        Answer(line("A1", 2, status="4")),
    ]
    said: list[str] = []

    def stream(asked: Asked) -> Answer:
        return answers.pop(0) if answers else Answer("", 503)

    with serve(stream) as source, fleet() as service:
        feed = made(f"{source.url}/avl", said)
        running = threading.Thread(target=follow_until_refused, args=(feed, service))
        running.start()
        wait_for(lambda: service.units.get("A1", {}).get("status") == "on_scene")
        service.first.append(refusal(401, "unauthorized", "enough"))
        answers.append(Answer(line("A1", 3)))
        running.join(PATIENCE_S)
        assert not running.is_alive()
    assert [one["status"] for one in service.news if "status" in one] == ["2", "3", "4"]
    assert re.match(r"the stream broke off and is opened again: \d, the last: ", said[0])


@pytest.mark.parametrize(
    ("status", "words"), [(404, "HTTP 404; check the address of the feed"), (301, "HTTP 301")]
)
def test_an_address_that_never_was_a_feed(status: int, words: str) -> None:
    with serve(lambda asked: Answer("", status)) as source, fleet() as service:
        with pytest.raises(InputError, match=words):
            follow(made(source.url, []), service)
        assert service.asked == []


def test_an_address_with_a_password_is_told_without_it() -> None:
    with serve(lambda asked: Answer("", 404)) as source:
        url = source.url.replace("//", "//me:secret@")
        with pytest.raises(InputError, match="^http://127") as caught:
            made(url, []).check(PATIENCE_S)
    assert "secret" not in str(caught.value)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gone: no such file"):
        Source(str(tmp_path / "gone"))


# --- checks ----------------------------------------------------------------------------


def test_a_check_says_what_is_there_and_sends_nothing(tmp_path: Path) -> None:
    text = known("A1") + line("A1", 1, status="3") + "rubbish\n" + line("A2", 2)
    said: list[str] = []
    feed = made(write(tmp_path, text), said)
    found = feed.check(PATIENCE_S)
    assert {unit: one.news for unit, one in found.items()} == {"A1": 2, "A2": 1}
    assert found["A1"].statuses == {"2": 1, "3": 1}
    assert (found["A1"].last["station"], found["A1"].last["lon"]) == ("Kelp Point", 117.201)
    assert (feed.counts.lines, feed.counts.unread) == (4, 1)
    assert len(said) == 1


def test_a_check_of_a_stream_ends_with_the_stream() -> None:
    with serve(lambda asked: Answer(known("A1"))) as source:
        assert list(made(source.url, []).check(PATIENCE_S)) == ["A1"]


# --- the client ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "token", "words"),
    [
        ("ideal.example", TOKEN, "--url ideal.example: write it as https://ideal.example"),
        ("http://localhost", "", "the token is empty or no token"),
        ("http://localhost", "two words", "the token is empty or no token"),
        ("http://localhost", "tökén", "the token is empty or no token"),
    ],
)
def test_a_client_that_cannot_be_made(url: str, token: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        FleetClient(url, token)


def test_an_address_may_end_with_a_slash() -> None:
    with fleet() as service:
        service.units["A1"] = {"id": "A1", "at": ""}
        news = {"id": "A1", "at": "2026-03-01T08:00:00.000Z", "status": "3"}
        with closing(FleetClient(f"{service.url}/", TOKEN)) as client:
            assert client.tell([news]).taken == 1

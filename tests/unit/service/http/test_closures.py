"""Closures over HTTP: told, listed, used by every route, opened again, and on record."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import numpy as np
import pytest

from ideal_dispatch.service import clock
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.clock import ClockTable
from ideal_dispatch.service.http.closures import ClosureOut
from tests.service_town import PATIENCE_S, Local, Town, application, bearer, later, local
from tests.waiting import wait_for

CLOSURES = "/v1/closures"


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    with local(application(town.settings("closures.toml"))) as running:
        yield running


@pytest.fixture(autouse=True)
def all_open(client: Local) -> Iterator[None]:
    yield
    for one in listed(client):
        assert end(client, one["id"]).status_code == 204
    assert listed(client) == []


def close(client: Local, role: str = "dispatcher", **told: Any) -> httpx.Response:
    return client.post(CLOSURES, json=told, headers=bearer(role))


def closed(client: Local, **told: Any) -> dict[str, Any]:
    answer = close(client, **told)
    assert answer.status_code == 201, answer.text
    ClosureOut.model_validate(answer.json())
    made: dict[str, Any] = answer.json()
    return made


def end(client: Local, id_: str, role: str = "dispatcher") -> httpx.Response:
    return client.delete(f"{CLOSURES}/{id_}", headers=bearer(role))


def listed(client: Local) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(CLOSURES, headers=bearer("auditor")).json()
    return found


def advice(client: Local, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post("/v1/recommendations", json=body, headers=bearer("cad"))
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


@contextmanager
def two_hours_ahead() -> Iterator[None]:
    """The clock of the service, for a while."""
    now = datetime.now(UTC)
    clock.use(ClockTable(now + timedelta(hours=2), now))
    try:
        yield
    finally:
        clock.use(ClockTable())


def test_a_road_is_closed_and_opened_again(client: Local, town: Town) -> None:
    before = advice(client, town.call("before"))
    assert before["closures"] == []
    route = before["primary"]["route"]["edges"]
    line = [[round(x, 6) for x in point] for point in town.network.polyline(route[2]).tolist()]
    made = closed(client, reason="parade", line=line)
    assert route[2] in made["edges"]
    assert (made["reason"], made["by"], made["active"]) == ("parade", "dispatcher", True)
    assert (made["line"], made["polygon"], made["from"], made["until"]) == (line, None, None, None)
    assert listed(client) == [made]
    around = advice(client, town.call("around"))
    assert around["closures"] == [made["id"]]
    assert not set(around["primary"]["route"]["edges"]) & set(made["edges"])
    assert end(client, made["id"]).status_code == 204
    assert listed(client) == []
    assert end(client, made["id"]).status_code == 404
    assert advice(client, town.call("after"))["primary"]["route"]["edges"] == route


def test_a_closure_begins_and_ends_by_the_clock(client: Local, town: Town) -> None:
    tomorrow = closed(client, edges=[3], **{"from": later(86_400)})
    assert not tomorrow["active"]
    assert advice(client, town.call("today"))["closures"] == []
    soon = closed(client, edges=[5], until=later(3600))
    assert soon["active"]
    with two_hours_ahead():
        assert [one["id"] for one in listed(client)] == [tomorrow["id"]]
        assert advice(client, town.call("then"))["closures"] == []
        assert end(client, soon["id"]).status_code == 404


def test_desks_hear_the_whole_list_whenever_it_changes(client: Local) -> None:
    heard: list[list[tuple[list[int], bool]]] = []
    opened = threading.Event()

    def listen() -> None:
        url = f"{client.base_url}/v1/events"
        with httpx.stream("GET", url, headers=bearer(), timeout=PATIENCE_S) as stream:
            opened.set()
            kind = ""
            for line in stream.iter_lines():
                name, _, text = line.partition(": ")
                kind = text if name == "event" else kind
                if name == "data" and kind == "closures":
                    heard.append([(one["edges"], one["active"]) for one in json.loads(text)])
                    if heard[-1] == [([9], True)]:
                        return

    desk = threading.Thread(target=listen)
    desk.start()
    assert opened.wait(PATIENCE_S)
    first = closed(client, edges=[3])
    closed(client, edges=[9], **{"from": later(3600)})
    assert end(client, first["id"]).status_code == 204
    with two_hours_ahead():
        desk.join(PATIENCE_S)
    assert not desk.is_alive()
    assert heard == [
        [([3], True)], [([3], True), ([9], False)], [([9], False)], [([9], True)],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({}, "exactly one of edges, line and polygon"),
        ({"edges": [1], "line": [[114.0, 22.0], [114.1, 22.0]]}, "exactly one of edges, line"),
        ({"edges": []}, "at least 1 item"),
        ({"edges": [99_999]}, "edges: edge 99999 is not in the network"),
        ({"edges": ["1"]}, "valid integer"),
        ({"line": [[114.0, 22.0]]}, "at least 2 items"),
        ({"line": [[114.0, 22.0, 5.0], [114.1, 22.0]]}, "at most 2 items"),
        ({"line": [[22.0, 114.0], [22.0, 114.1]]}, "not on Earth; swapped?"),
        ({"line": [[11.0, 22.0], [11.1, 22.0]]}, "no road runs within 20 m along it"),
        ({"polygon": [[11.0, 22.0], [11.1, 22.0], [11.1, 22.1]]}, "no road lies in it"),
        ({"line": [[114.0, 22.0]] * 501}, "at most 500 items"),
        ({"edges": [1], "until": "2026-03-01T08:00:00Z"}, "that moment is over"),
        ({"edges": [1], "until": "2996-03-01T08:00:00"}, "timezone"),
        ({"edges": [1], "from": later(90), "until": later(60)}, "until is not after from"),
        ({"edges": [1], "reason": "x" * 201}, "at most 200 characters"),
        ({"edges": [1], "why": "parade"}, "Extra inputs are not permitted"),
    ],
)
def test_what_makes_no_sense_is_refused(client: Local, told: dict[str, Any], words: str) -> None:
    answer = close(client, **told)
    assert answer.status_code == 422
    assert words in answer.json()["error"]["message"]


def test_who_may_close(client: Local) -> None:
    assert close(client, "auditor", edges=[1]).status_code == 403
    made = close(client, "cad", edges=[1]).json()
    assert end(client, made["id"], "auditor").status_code == 403
    assert end(client, "0" * 32).status_code == 404
    assert client.get(CLOSURES).status_code == 401


def test_there_are_not_too_many(client: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ideal_dispatch.service.closures.MOST", 1)
    closed(client, edges=[1])
    answer = close(client, edges=[2])
    assert answer.status_code == 422
    assert "1 closures are known; delete" in answer.json()["error"]["message"]


def test_a_clock_that_jumps_ahead_for_a_while_loses_no_closure(
    client: Local, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ideal_dispatch.service.closures.MOST", 1)  # what is over does not count
    made = closed(client, edges=[3], until=later(3600))
    with two_hours_ahead():
        wait_for(lambda: client.service.closures._told == [])  # the worker looked at its closures
        other = closed(client, edges=[5])  # and the store at its table
        assert listed(client) == [other]
    assert listed(client) == [made, other]
    assert advice(client, town.call("right again"))["closures"] == [made["id"], other["id"]]
    store = AuditStore(client.service.settings.database_url)
    assert [one.id for one in store.read_closures()][-2:] == [made["id"], other["id"]]
    store.close()


def test_one_closes_not_too_much(
    client: Local, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ideal_dispatch.service.solver.solver.MOST_CLOSED", 3)
    lon, lat = town.network.lon, town.network.lat
    west, east, south, north = (float(f(x)) for x in (lon, lat) for f in (np.min, np.max))
    answer = close(client, polygon=[[west, south], [east, south], [east, north], [west, north]])
    assert answer.status_code == 422
    words = "polygon: it closes 436 edges, at most 3 are possible; draw a smaller one, or several"
    assert answer.json()["error"]["message"] == words


def test_a_call_cut_off_is_advised_on_once_its_road_is_open(client: Local, town: Town) -> None:
    """The same request gets a new answer: why there was none has passed."""
    made = closed(client, edges=np.flatnonzero(town.network.head == 65).tolist(), reason="flood")
    call = town.call("cut off")
    none = advice(client, call)
    assert none["decision"] == "no_advice"
    assert "(flood)" in none["headline"]
    assert none["closures"] == [made["id"]]
    assert end(client, made["id"]).status_code == 204
    again = advice(client, call)
    assert again["decision"] != "no_advice"
    assert (again["revision"], again["revision_of"]) == (2, none["id"])


def test_closures_are_on_record(client: Local) -> None:
    made = closed(client, edges=[3], reason="flood", until=later(600))
    assert end(client, made["id"], "admin").status_code == 204
    store = AuditStore(client.service.settings.database_url)
    last = [row.entry.body for row in store.recent("closure", 2)]
    assert last[0] == {"ended": made["id"], "actor": "admin"}
    assert last[1]["actor"] == "dispatcher"
    kept = dict(last[1]["closure"])
    assert kept.pop("network") == client.service.solver.facts.checksums["network"]
    assert kept == {name: value for name, value in made.items() if name != "active"}
    assert made["id"] not in [one.id for one in store.read_closures()]
    store.close()


def test_closures_of_another_network_are_laid_again_or_not_used(
    client: Local, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of a city change, and edges get other numbers; what was drawn stays."""
    line = town.network.polyline(3).round(6).tolist()
    drawn, named = closed(client, line=line), closed(client, edges=[7])
    kept, find = client.service.ledger.closures, client.solver.closed_edges
    looked_at = threading.Event()

    def find_later(*given: Any) -> list[int]:
        assert looked_at.wait(PATIENCE_S)
        return find(*given)

    monkeypatch.setattr(client.solver, "closed_edges", find_later)
    for one in list(kept):
        kept.lay(one, [1], "another network")
    assert [one["active"] for one in listed(client)] == [False, False]
    looked_at.set()
    wait_for(lambda: [one["active"] for one in listed(client)] == [True, False])
    assert listed(client)[0]["edges"] == drawn["edges"]
    assert advice(client, town.call("laid"))["closures"] == [drawn["id"]]
    assert listed(client)[1] == {**named, "edges": [], "active": False}
    laid = kept.get(drawn["id"])
    assert laid is not None
    kept.lay(laid, [], laid.network)
    assert not listed(client)[0]["active"]  # its line is along no road now
    assert advice(client, town.call("nothing"))["closures"] == []


def test_moments_are_told_as_they_are_kept(client: Local) -> None:
    at = datetime.now(UTC).replace(microsecond=123_000) + timedelta(hours=1)
    made = closed(client, edges=[3], until=at.astimezone().isoformat())
    assert datetime.fromisoformat(made["until"]) == at
    assert made["until"].endswith(".123Z")

"""Rows of the audit reach the centre's addresses: signed, in order, whatever these answer."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch.service import webhooks as module
from ideal_dispatch.service.audit.record import Entry, Row
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.observations import Observations
from ideal_dispatch.service.settings import ServiceSettings, Webhook
from ideal_dispatch.service.webhooks import TRIES, Teller
from tests.audit_entries import entry, stored, takes
from tests.postgres import Postgres
from tests.service_town import Town, application, bearer, local
from tests.webhook_receiver import SECRET, Answer, Receiver, is_genuine, receiving

KINDS: Any = ("recommendation", "response", "reassessment", "reply", "closure", "unit")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests do not wait as long as a centre may."""
    monkeypatch.setattr(module, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(module, "_LONGEST_PAUSE_S", 0.1)
    monkeypatch.setattr(module, "_LOOK_S", 0.05)
    monkeypatch.setattr(module, "_TIMEOUT_S", 60.0)  # nor do they depend on a quick machine


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'audit.db'}"
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.new_database()


@pytest.fixture
def store(url: str) -> Iterator[AuditStore]:
    with closing(AuditStore(url)) as store:
        store.read_units()  # the tables are made
        yield store


def advice(number: int) -> Entry:
    """An answer with all that is on record beside it."""
    body = {
        "answer": {"id": f"advice-{number}", "decision": "send_second"}, "takes": takes("D1"),
        "request": {"note": "private"}, "request_sha256": "0", "actor": "CAD",
    }  # fmt: skip
    return entry(number, body=body)


@contextmanager
def telling(receiver: Receiver, url: str, name: str = "cad") -> Iterator[Teller]:
    webhook = Webhook(name, receiver.url, KINDS, SECRET)
    teller = Teller(webhook, url, Observations())
    teller.start()
    try:
        receiver.wait_for(lambda: teller._held or teller._renew_at > 0)
        yield teller
    finally:
        teller.stop(30.0)


def ids(rows: list[Row]) -> list[str]:
    return [row.id for row in rows]


def test_what_the_api_shows_is_told_and_nothing_else(url: str, store: AuditStore) -> None:
    stored(store, [advice(0)])  # before there was a webhook
    at = datetime(2026, 3, 1, 8, tzinfo=UTC)
    bodies: dict[str, dict[str, Any]] = {
        "response": {"recommendation_id": "advice-1", "response": {"action": "accept", "by": "B"}},
        "reassessment": {"dispatch_id": "advice-1", "said": {"advice": "stand_down"}},
        "reply": {"dispatch_id": "advice-1", "advice_id": "x", "response": {"action": "accept"}},
        "closure": {"closure": {"id": "road", "reason": "parade"}},
        "unit": {"units": [{"id": "A117", "status": "en_route"}], "gone": []},
    }
    more = [Entry(kind, "", {**body, "actor": "B"}, at=at) for kind, body in bodies.items()]
    with receiving() as receiver, telling(receiver, url):
        rows = stored(store, [advice(1), *more, Entry("service", "", {"event": "x"}, at=at)])
        again = store.append([advice(1)], keep_duplicates=True)  # one that had its key first
        rows += stored(store, [advice(2)])
        receiver.wait_for(lambda: len(receiver.taken) >= 7)
    told = [row for row in rows if row.kind != "service"]
    assert receiver.taken == ids(told)
    assert isinstance(again[0], Row)
    answer = {"id": "advice-1", "decision": "send_second", "response": None}
    assert receiver.messages[0] == {
        "id": rows[0].id, "number": 2, "event": "recommendation", "call_id": "call-1",
        "at": "2025-01-01T00:01:00.000Z", "data": answer,
    }  # fmt: skip
    assert [one["call_id"] for one in receiver.messages[1:3]] == [None, None]
    said = {"dispatch_id": "advice-1", "advice_id": rows[2].id, "advice": "stand_down"}
    shown = {**bodies, "reassessment": said}
    assert {one["event"]: one["data"] for one in receiver.messages[1:6]} == shown
    assert (receiver.forged, receiver.elsewhere) == ([], [])


def test_a_signature_covers_body_and_moment() -> None:
    body, stamp = b'{"id":1}', str(int(datetime.now(UTC).timestamp()))
    signed = {"Ideal-Timestamp": stamp, "Ideal-Signature": module.signature(SECRET, stamp, body)}
    assert is_genuine(SECRET, signed, body)
    assert not is_genuine(SECRET, signed, body + b" ")
    assert not is_genuine("other", signed, body)
    assert not is_genuine(SECRET, {**signed, "Ideal-Timestamp": str(int(stamp) + 1)}, body)
    old = str(int(stamp) - 3600)
    replayed = {"Ideal-Timestamp": old, "Ideal-Signature": module.signature(SECRET, old, body)}
    assert not is_genuine(SECRET, replayed, body)


@pytest.mark.parametrize("answer", [500, 503, 429, 408, 425, 301, 307, "hang", "reset"])
def test_what_is_not_taken_is_tried_again_in_order(
    answer: Answer, url: str, store: AuditStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = TRIES + 2  # more often than a refusal
    if answer == "hang":
        tries = 1
        monkeypatch.setattr(module, "_TIMEOUT_S", 5.0)
    with receiving(*[answer] * tries) as receiver, telling(receiver, url):
        rows = stored(store, [advice(1), advice(2)])
        receiver.wait_for(lambda: len(receiver.taken) == 2)
    assert [id_ for id_, _ in receiver.came] == [rows[0].id] * (tries + 1) + [rows[1].id]
    assert receiver.elsewhere == []  # redirects are not followed


def test_what_is_refused_is_passed_over(
    url: str, store: AuditStore, caplog: pytest.LogCaptureFixture
) -> None:
    with receiving(*[410] * TRIES) as receiver, telling(receiver, url):
        rows = stored(store, [advice(1), advice(2)])
        receiver.wait_for(lambda: receiver.taken)
    assert [id_ for id_, _ in receiver.came] == [rows[0].id] * TRIES + [rows[1].id]
    assert f"webhook cad: row {rows[0].number} is passed over: HTTP 410" in caplog.text


def test_what_is_refused_after_an_outage_holds_up_nothing(url: str, store: AuditStore) -> None:
    with receiving(*[503] * TRIES, *[410] * TRIES) as receiver, telling(receiver, url):
        rows = stored(store, [advice(1), advice(2)])
        receiver.wait_for(lambda: receiver.taken)
    assert [id_ for id_, _ in receiver.came] == [rows[0].id] * (2 * TRIES) + [rows[1].id]


def test_a_row_that_makes_no_sense_holds_up_nothing(url: str, store: AuditStore) -> None:
    with receiving() as receiver, telling(receiver, url):
        rows = stored(store, [entry(1), advice(2)])  # the first has no answer in it
        receiver.wait_for(lambda: receiver.taken)
    assert receiver.taken == [rows[1].id]


def test_two_workers_tell_each_row_once_and_one_takes_over(
    url: str, store: AuditStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RENEW_S", 0.1)
    with receiving() as receiver, ExitStack() as stack:
        workers = [stack.enter_context(telling(receiver, url)) for _ in range(2)]
        rows = []
        for number in range(30):
            rows += stored(store, [advice(number)])
            for worker in workers:
                worker.wake()
        receiver.wait_for(lambda: len(receiver.came) >= 30)
        next(worker for worker in workers if worker._held).stop(30.0)
        rows += stored(store, [advice(number) for number in range(30, 40)])
        receiver.wait_for(lambda: len(receiver.came) >= 40)
    assert receiver.taken == ids(rows)
    assert len(receiver.came) == 40


def test_a_worker_that_was_away_tells_nothing_twice(url: str, store: AuditStore) -> None:
    """Its lease ended while it was frozen, and another went on."""
    with receiving() as receiver, telling(receiver, url) as away:
        stored(store, [advice(1)])
        receiver.wait_for(lambda: away._stored == 1)
        away.stop(30.0)
        away._stopped.clear()
        with telling(receiver, url):
            stored(store, [advice(2)])
            receiver.wait_for(lambda: len(receiver.taken) == 2)
        away._held, away._renew_at, away._number = True, float("inf"), 1  # as it was before
        (row,) = stored(store, [advice(3)])
        away._number = 3  # it had just sent this one
        away._store()
        assert not away._held
        assert away._holds()
        assert (away._stored, away._number) == (2, 3)
        assert row.number == 3
        away._outbox.close()


def test_one_slow_address_holds_up_no_other(
    url: str, store: AuditStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIMEOUT_S", 5.0)
    with (
        receiving("hang") as slow,
        receiving() as quick,
        telling(slow, url, "slow"),
        telling(quick, url, "quick"),
    ):
        rows = stored(store, [advice(number) for number in range(5)])
        quick.wait_for(lambda: len(quick.taken) == 5)
        assert quick.taken == ids(rows)


def test_the_service_says_how_far_behind_an_address_is(town: Town) -> None:
    """Advice goes on; the address has all of it once it is back."""
    with receiving(*[500] * 1000) as receiver:
        path = town.config("telling.toml")
        hook = f'[[webhooks]]\nname = "cad"\nurl = "{receiver.url}"\nevents = ["recommendation"]\n'
        path.write_text(path.read_text() + hook)
        environment = {"IDEAL_WEBHOOK_SECRETS": f"cad:{SECRET}"}
        settings = ServiceSettings.load(path, environment)
        with local(application(settings)) as client:

            def part() -> str:
                return str(client.get("/healthz").json()["parts"]["webhooks"])

            receiver.wait_for(lambda: client.service.webhooks._tellers[0]._held)
            made = [
                client.post("/v1/recommendations", json=town.call(f"told-{n}"),
                            headers=bearer("cad")).json()
                for n in range(3)
            ]  # fmt: skip
            receiver.wait_for(lambda: part() == "cad 3 behind")
            metrics = client.get("/metrics", headers=bearer("auditor")).text
            assert 'ideal_webhook_behind{name="cad"} 3.0' in metrics
            receiver.answers.clear()
            receiver.wait_for(lambda: len(receiver.taken) == 3 and part() == "ready")
            shown = client.get(f"/v1/recommendations/{made[0]['id']}", headers=bearer()).json()
    delivered: Callable[[str], dict[str, Any]] = lambda id_: next(  # noqa: E731
        one["data"] for one in receiver.messages if one["id"] == id_
    )
    assert delivered(made[0]["id"]) == shown
    assert receiver.taken == [one["id"] for one in made]

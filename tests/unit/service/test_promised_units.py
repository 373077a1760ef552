"""Nobody is sent twice: a unit that was advised for one call is not advised for another."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest

from ideal_dispatch.service.audit.record import Entry
from ideal_dispatch.service.audit.store import Outcome
from ideal_dispatch.service.settings import ServiceSettings
from tests.faults.audit_checks import wait_for_replay
from tests.postgres import Postgres
from tests.service_town import PATIENCE_S, PATIENT, Local, Town, application, bearer, local, respond
from tests.waiting import wait_for

ASK = "/v1/recommendations"
LAST = [{"name": "D1", "units": 1}]


@pytest.fixture
def settings(town: Town) -> ServiceSettings:
    name = f"promises-{time.monotonic_ns()}.toml"
    return town.settings(name, server=PATIENT, units={"default": 0})


def asked(client: Local, town: Town, call_id: str, **more: Any) -> dict[str, Any]:
    """The answer for a call whose primary was sent, and for which a second is worth a lot."""
    values = {"primary": {"depot": "D0"}, "threshold_s": -1000.0, "depots": LAST, **more}
    answer = client.post(ASK, json=town.call(call_id, **values), headers=bearer("cad"))
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


def second(made: dict[str, Any]) -> str | None:
    """The depot of the second that is to be sent."""
    return made["second"]["depot"] if made["decision"] == "send_second" else None


def promised_to(made: dict[str, Any]) -> str:
    """What is said of the last unit."""
    words = [one["words"] for one in made["degraded"] if one["code"] == "last_unit_promised"]
    return words[0] if words else ""


def tell(client: Local, **units: int) -> list[dict[str, Any]]:
    told = [{"depot": depot, "units": count} for depot, count in units.items()]
    rows: list[dict[str, Any]] = client.put("/v1/units", json=told, headers=bearer("cad")).json()
    return rows


def test_the_last_unit_goes_to_one_call(client: Local, town: Town) -> None:
    first = asked(client, town, "a")
    assert (second(first), promised_to(first)) == ("D1", "")
    other = asked(client, town, "b")
    assert other["decision"] == "primary_only"
    assert promised_to(other) == "the last unit of D1 is promised to call a"
    assert second(asked(client, town, "c", depots=[*LAST, {"name": "D2", "units": 1}])) == "D2"
    assert second(asked(client, town, "d", depots=[{"name": "D1", "units": 2}])) == "D1"
    none_left = asked(client, town, "e", primary=None)
    assert none_left["decision"] == "no_advice"
    assert [one["code"] for one in none_left["degraded"]].count("last_unit_promised") == 1
    assert none_left["degraded"][0]["code"] == "last_unit_promised"
    lines = none_left["explanation"]["text"].splitlines()
    assert len(lines) == len(set(lines)), "it is said once"


def test_a_refused_unit_is_free_and_an_accepted_one_is_not(client: Local, town: Town) -> None:
    tell(client, D0=1, D1=1, D2=0)
    first = asked(client, town, "a", depots=None)
    assert second(first) == "D1"
    respond(client, first, "accept")
    assert promised_to(asked(client, town, "b", depots=None)).endswith("D1 is promised to call a")
    respond(client, first, "override")
    other = asked(client, town, "c", depots=None)
    assert second(other) == "D1"
    respond(client, other, "accept")
    tell(client, D1=1)  # news of the depot: what was accepted is not in this count
    assert second(asked(client, town, "d", depots=None)) == "D1"


def test_a_unit_that_the_cad_sent_is_no_second_for_another_call(client: Local, town: Town) -> None:
    """Its depot's count was told before."""
    tell(client, D0=1, D1=1, D2=0)
    asked(client, town, "a", depots=None, primary={"depot": "D1"}, threshold_s=1000.0)
    assert "D1 is promised to call a" in promised_to(asked(client, town, "b", depots=None))
    made = asked(client, town, "c")
    assert second(made) == "D1", made["degraded"]  # the CAD's own list is without it


def test_a_repeat_keeps_its_unit_and_a_revision_releases_it(client: Local, town: Town) -> None:
    body = town.call("a", primary={"depot": "D0"}, threshold_s=-1000.0, depots=LAST)
    first, again = (client.post(ASK, json=body, headers=bearer("cad")).json() for _ in range(2))
    assert first["id"] == again["id"]
    assert second(asked(client, town, "b")) is None
    revised = asked(client, town, "a", node=30)
    assert (revised["revision"], second(revised)) == (2, "D1")
    assert second(asked(client, town, "c")) is None
    assert second(asked(client, town, "a", depots=[])) is None
    assert second(asked(client, town, "d")) == "D1"


def test_an_expired_advice_releases_its_unit(town: Town) -> None:
    with local(application(town.settings("expiring.toml", server={"expiry_s": 0.001}))) as client:
        assert second(asked(client, town, "a")) == "D1"
        assert second(asked(client, town, "b")) == "D1"


def test_a_primary_that_we_chose_is_promised_too(client: Local, town: Town) -> None:
    made = asked(client, town, "a", primary=None, threshold_s=1000.0)
    assert (made["decision"], made["primary"]["depot"]) == ("primary_only", "D1")
    assert second(asked(client, town, "b")) is None


def test_a_primary_that_we_chose_and_the_cad_then_named_is_one_unit(
    client: Local, town: Town
) -> None:
    tell(client, D0=0, D1=2, D2=0)
    chosen = asked(client, town, "a", depots=None, primary=None, threshold_s=1000.0)
    assert chosen["primary"]["depot"] == "D1"
    respond(client, chosen, "accept")
    asked(client, town, "a", depots=None, primary={"depot": "D1"}, threshold_s=1000.0)
    row = client.get("/v1/units", headers=bearer("auditor")).json()[1]
    assert [one["kind"] for one in row["promised"]] == ["sent"]
    assert second(asked(client, town, "b", depots=None)) == "D1"


def test_simulated_calls_promise_nothing(client: Local, town: Town) -> None:
    headers = bearer("admin")
    client.post("/v1/simulated-calls", json={"count": 3, "every_s": 0.5}, headers=headers)
    wait_for(lambda: len(client.get(ASK, headers=headers).json()) >= 3)
    assert all(not row["promised"] for row in client.get("/v1/units", headers=headers).json())


def test_promises_are_shown_and_told_to_desks(client: Local, town: Town) -> None:
    rows = tell(client, D1=2)
    assert rows[1]["promised"] == []
    made = asked(client, town, "a", depots=None)
    row = client.get("/v1/units", headers=bearer("auditor")).json()[1]
    assert row["units"] == 2  # as told
    expected = {"call_id": "a", "kind": "advised", "until": made["expires_at"]}
    assert row["promised"] == [expected]
    respond(client, made, "accept")
    row = client.get("/v1/units", headers=bearer("auditor")).json()[1]
    assert [one["kind"] for one in row["promised"]] == ["accepted"]


def test_promises_are_read_back_after_a_restart(settings: ServiceSettings, town: Town) -> None:
    with local(application(settings)) as client:
        tell(client, D1=1)
        first = asked(client, town, "a", depots=None)
        respond(client, first, "accept")
    with local(application(settings)) as client:
        made = asked(client, town, "b", depots=None)
        assert (second(made), promised_to(made)[-6:]) == (None, "call a")


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_who_loses_the_race_at_another_worker_is_decided_again(
    town: Town, kind: str, request: pytest.FixtureRequest
) -> None:
    """Two workers that know nothing of each other: the transaction decides."""
    name, audit = f"race-{kind}.toml", {}
    if kind == "postgresql":
        postgres: Postgres = request.getfixturevalue("postgres")
        audit = {"url": postgres.new_database()}
    settings = town.settings(name, audit=audit, server=PATIENT, units={"default": 0})
    calls = 12
    with ExitStack() as stack:
        two = [stack.enter_context(local(application(settings))) for _ in range(2)]
        pool = stack.enter_context(ThreadPoolExecutor(calls))
        made = list(pool.map(
            lambda n: asked(two[n % 2], town, f"c-{n}", depots=[*LAST, {"name": "D2", "units": 1}]),
            range(calls),
        ))  # fmt: skip
        got = sorted(second(one) or "" for one in made)
        assert got == [""] * (calls - 2) + ["D1", "D2"]
        assert all(promised_to(one) for one in made if second(one) is None)
        promised = two[0].service.ledger._store.read_units().promises
        assert sorted(one.start for one in promised if one.kind == "advised") == ["D1", "D2"]


def test_without_a_database_the_answer_says_so(town: Town, postgres: Postgres) -> None:
    """What this worker itself promised is still known, and all is on record afterwards."""
    audit = {"url": postgres.new_database()}
    server = PATIENT | {"deadline_s": 10.0}
    settings = town.settings("no-database.toml", audit=audit, server=server)
    with local(application(settings)) as client:
        assert "promises_unknown" not in str(asked(client, town, "before", depots=[]))
        postgres.stop("immediate")
        try:
            first, other = asked(client, town, "a"), asked(client, town, "b")
        finally:
            postgres.start()
        for made in (first, other):
            assert "promises_unknown" in [one["code"] for one in made["degraded"]]
        assert (second(first), second(other)) == ("D1", None)
        assert promised_to(other).endswith("call a")
        ledger = client.service.ledger
        wait_for_replay(ledger.writer)
        advised = [one for one in ledger._store.read_units().promises if one.kind == "advised"]
        assert [(one.call_id, one.start) for one in advised] == [("a", "D1")]
        assert len(ledger._store.of_call("b", 9)) == 1


def test_an_answer_that_came_on_record_after_a_stall_keeps_its_unit(
    client: Local, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database takes the first entry after all, while the answer goes to the spool."""
    ledger, given = client.service.ledger, threading.Event()
    store, writer, append = ledger._store, ledger.writer, ledger._store.append

    def stalled(entries: Sequence[Entry], **options: Any) -> list[Outcome]:
        if any(entry.promising for entry in entries):
            with writer._changed:
                writer._divert("no answer yet")
            assert given.wait(PATIENCE_S)
        return append(entries, **options)

    monkeypatch.setattr(store, "append", stalled)
    received_at = datetime.now(UTC).isoformat()
    made = asked(client, town, "a", received_at=received_at)
    assert "promises_unknown" in [one["code"] for one in made["degraded"]]
    given.set()
    wait_for_replay(writer)
    assert [row.duplicate_of for row in store.of_call("a", 9)] == [None, made["id"]]
    respond(client, made, "accept")
    (row,) = (one for one in store.read_units().promises if one.kind != "sent")
    assert (row.start, row.kind, row.advice) == ("D1", "accepted", made["id"])
    again = asked(client, town, "a", received_at=received_at)
    assert (again["id"], again["response"]["action"]) == (made["id"], "accept")

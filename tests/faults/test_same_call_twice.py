"""The same call again: the same answer and one row; a new body is a linked revision."""

import os
import signal

from ideal_dispatch.service.audit.record import Row
from ideal_dispatch.service.audit.store import AuditStore
from tests.faults.service_faults import PATIENT
from tests.service_town import Town, serving


def rows_of(town: Town, name: str, call_id: str) -> list[Row]:
    store = AuditStore(f"sqlite:///{town.folder}/{name}.db")
    try:
        return store.of_call(call_id, 99)
    finally:
        store.close()


def test_same_call_id_twice_also_after_sigkill(town: Town) -> None:
    """Whoever lost an answer in a crash asks again, and gets that answer."""
    config = town.config("same-call.toml", server=PATIENT)
    body = town.call("twice")
    with serving(config) as served:
        first = served.post(body).json()
        assert served.post(body).json() == first
        os.kill(served.process.pid, signal.SIGKILL)
        served.process.wait(30)
    with serving(config) as served:
        assert served.post(body).json() == first
        revised = served.post(town.call("twice", node=30)).json()
        assert (revised["revision"], revised["revision_of"]) == (2, first["id"])
        assert served.post(body).json() == first  # the old question still has its old answer
    stored = rows_of(town, "same-call.toml", "twice")
    assert [row.entry.id for row in stored] == [first["id"], revised["id"]]


def test_same_key_with_another_body_changes_nothing(town: Town) -> None:
    config = town.config("same-key.toml", server=PATIENT)
    with serving(config) as served:
        first = served.post(town.call("key"), headers={"Idempotency-Key": "k"})
        other = served.post(town.call("key", node=30), headers={"Idempotency-Key": "k"})
    assert (first.status_code, other.status_code) == (200, 409)
    assert other.json()["error"]["code"] == "key_used"
    stored = rows_of(town, "same-key.toml", "key")
    assert [row.entry.id for row in stored] == [first.json()["id"]]

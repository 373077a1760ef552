"""What a worker remembers of its answers, and how questions are told apart."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch.service import ledger as module
from ideal_dispatch.service.audit.record import Entry, OvertakenEntry, StoreError
from ideal_dispatch.service.audit.spool import Spool
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.audit.writer import AuditWriter
from ideal_dispatch.service.ledger import Ledger
from ideal_dispatch.service.recorded_answers import RecordedAnswer
from tests.audit_entries import takes

NOW, SECOND = datetime.now(UTC), timedelta(seconds=1)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    store = AuditStore(f"sqlite:///{tmp_path / 'audit.db'}")
    opened = Ledger(store, AuditWriter(store, Spool(tmp_path / "spool")))
    yield opened
    opened.close()


def made(id: str, **changes: Any) -> dict[str, Any]:  # noqa: A002
    expires = (NOW + timedelta(seconds=60)).isoformat()
    return {
        "id": id, "decision": "primary_only", "degraded": [], "expires_at": expires,
        "created_at": NOW.isoformat(), **changes,
    }  # fmt: skip


def entry(call_id: str, number: int) -> Entry:
    id_ = f"{call_id}-{number}"
    body = {"request_sha256": "0", "answer": made(id_)}
    return Entry("recommendation", call_id, body, at=NOW, key=f"key:{number}", id=id_)


def test_memory_is_bounded_by_answers_and_the_rest_is_found_in_the_database(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CALLS", 4)
    monkeypatch.setattr(module, "_REVISIONS", 3)
    monkeypatch.setattr(module, "_ANSWERS", 7)

    async def fill() -> None:
        for call in range(6):
            for number in range(5):
                await ledger.record(entry(f"c{call}", number), 5.0)
        assert {call: len(known) for call, known in ledger._calls.items()} == {"c4": 3, "c5": 3}
        assert [one.key for one in ledger._calls["c5"]] == ["key:2", "key:3", "key:4"]
        assert len((await ledger.earlier("c0")).answers) == 5
        assert [one.key for one in (await ledger.earlier("c5")).answers] == [
            f"key:{n}" for n in range(5)
        ]
        found = await ledger.get("c0-0")
        assert found is not None
        assert found["response"] is None

    asyncio.run(fill())


def test_no_advice_is_told_without_the_response_to_it(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would look as if nobody had answered, and could be answered twice."""

    def gone(*_: object) -> None:
        raise StoreError("gone since the last question")

    ledger._store.append([entry("of another worker", 0)])
    monkeypatch.setattr(ledger._store, "of_call", gone)
    with pytest.raises(StoreError, match="gone since"):
        asyncio.run(ledger.get("of another worker-0"))


def test_of_a_call_that_is_asked_about_for_ever_the_last_rows_are_read(ledger: Ledger) -> None:
    async def probe() -> None:
        for number in range(50):
            await ledger.record(entry("probe", number), 5.0)
        ledger._calls.clear()
        last = await ledger.earlier("probe", "key:49")
        assert [one.key for one in last.answers] == [f"key:{n}" for n in range(30, 50)]
        first = await ledger.earlier("probe", "key:3")
        assert [one.key for one in first.answers[:2]] == ["key:3", "key:30"]
        assert first.to("key:3") is first.answers[0]
        assert first.seen == last.seen == 50
        assert (await ledger.earlier("probe", "key:new")).to("key:new") is None

    asyncio.run(probe())


def test_what_is_taken_back_takes_no_response_with_it(ledger: Ledger) -> None:
    """The first answer is accepted while a revision is under way, which comes too late."""

    def advice(number: int, depot: str) -> Entry:
        made = entry("c", number)
        answer = {**made.body["answer"], "asked_at": (NOW + number * SECOND).isoformat()}
        return replace(made, body={**made.body, "answer": answer, "takes": takes(depot)}, seen=0)

    async def revise() -> None:
        await ledger.record(advice(1, "D1"), 5.0)
        revision = asyncio.create_task(ledger.record(advice(2, "D2"), 5.0))
        await asyncio.sleep(0)
        assert [one.start for one in ledger.units.promises] == ["D2"]
        body = {"recommendation_id": "c-1", "response": {"action": "accept"}}
        ledger.units.take(Entry("response", "c", body, at=NOW + SECOND))
        with pytest.raises(OvertakenEntry):
            await revision
        assert [(one.start, one.kind) for one in ledger.units.promises] == [("D1", "accepted")]

    asyncio.run(revise())


def test_of_two_counts_of_one_moment_the_later_entry_counts(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object, **__: object) -> None:
        raise StoreError("down, so that they stay in the spool")

    monkeypatch.setattr(ledger._store, "append", down)

    def told(count: int) -> Entry:
        body = {"units": {"D0": count}, "updated_at": NOW.isoformat()}
        return Entry("units", "", body, at=NOW)

    async def read() -> None:
        ledger.writer.spool.write([told(2), told(0)])
        await ledger.read_spooled_units()
        assert ledger.units.known("c", listed=False).units == {"D0": 0}

    asyncio.run(read())


@pytest.mark.parametrize("key", ["key:a", "body:0", "key:again-2:key:a"])
def test_attempts_at_one_question_have_keys_of_their_own(key: str) -> None:
    first = RecordedAnswer(key, "0", made("1"))
    second = RecordedAnswer(first.next_key, "0", made("2"))
    third = RecordedAnswer(second.next_key, "0", made("3"))
    assert [one.question for one in (first, second, third)] == [key] * 3
    assert (second.key, third.key) == (f"again-2:{key}", f"again-3:{key}")


@pytest.mark.parametrize(
    ("changes", "stands"),
    [
        ({}, True),
        ({"expires_at": NOW.isoformat()}, False),
        ({"degraded": [{"code": "no_unit", "words": ""}]}, True),  # it is an advice
        ({"decision": "no_advice", "degraded": [{"code": "late", "words": ""}]}, False),
        ({"decision": "no_advice", "degraded": [{"code": "off_map", "words": ""}]}, True),
    ],
)
def test_an_answer_stands_until_it_expires_unless_its_cause_may_pass(
    changes: dict[str, Any], stands: bool
) -> None:
    assert RecordedAnswer("key:a", "0", made("1", **changes)).stands(NOW) == stands


def test_a_spool_whose_disk_hangs_or_fails_keeps_nobody_waiting(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers are then looked up in memory and in the database alone."""
    spool, done = ledger.writer.spool, threading.Event()

    def hanging(*_: Any) -> list[Entry]:
        done.wait(30)
        return []

    def failing(*_: Any) -> list[Entry]:
        raise StoreError("audit spool: disk I/O error")

    async def look() -> None:
        await ledger.record(entry("c", 0), 5.0)
        monkeypatch.setattr(Spool, "knows", lambda *_: True)
        monkeypatch.setattr(Spool, "__len__", lambda _: 1)
        for broken in (hanging, failing):
            for name in ("of_call", "recent", "get"):
                monkeypatch.setattr(spool, name, broken)
            assert [one.key for one in (await ledger.earlier("c", timeout_s=0.1)).answers] == [
                "key:0"
            ]
            assert [one["id"] for one in await ledger.recent(5)] == ["c-0"]
            with pytest.raises(StoreError, match="spool"):
                await ledger.get("unknown")
            await ledger.read_spooled_units()
        done.set()
        monkeypatch.undo()

    asyncio.run(look())


def test_a_question_answered_in_the_moment_of_a_cancellation_does_not_swallow_it(
    ledger: Ledger,
) -> None:
    """Else a task in the background goes on, and the service never stops."""

    async def stop() -> bool:
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        loop.run_in_executor = lambda *_: answer  # type: ignore[method-assign]
        task = asyncio.create_task(ledger.ask(lambda _: None))
        await asyncio.sleep(0)
        answer.set_result(None)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(stop())

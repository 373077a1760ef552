"""A chain is tampered with in every way that we know; each is found and named."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.audit.record import Mark, Row
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.audit.verification import parse_mark, verify
from tests.audit_entries import AT, entry, stored
from tests.contracts.audit_store import execute
from tests.postgres import Postgres

UNGUARD = ("DROP TRIGGER audit_no_update", "DROP TRIGGER audit_no_delete")
SWAP = (
    "UPDATE audit SET number = -1 WHERE number = 4",
    "UPDATE audit SET number = 4 WHERE number = 5",
    "UPDATE audit SET number = 5 WHERE number = -1",
)
CLOSE_UP = (
    "DELETE FROM audit WHERE number = 4",
    "UPDATE audit SET number = number - 1 WHERE number = 5",
    "UPDATE audit SET number = number - 1 WHERE number = 6",
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'audit.db'}"


@pytest.fixture
def store(url: str) -> Iterator[AuditStore]:
    """Six rows whose guards are gone."""
    store = AuditStore(url)
    stored(store, [entry(number) for number in range(1, 7)])
    execute(url, *UNGUARD)
    yield store
    store.close()


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (["UPDATE audit SET body = '{}' WHERE number = 3"], "row 3 was edited: its c"),
        (["UPDATE audit SET body = '{' WHERE number = 3"], "its body is no longer JSON"),
        (["UPDATE audit SET body = x'00ff' WHERE number = 3"], "row 3 was edited"),
        (["UPDATE audit SET at = '2030' WHERE number = 1"], "row 1 was edited"),
        (["UPDATE audit SET hash = 'x' WHERE number = 6"], "row 6 was edited"),
        (["DELETE FROM audit WHERE number = 3"], "row 3 is missing, before row 4"),
        (["DELETE FROM audit WHERE number IN (2, 3)"], "rows 2 to 3 are missing"),
        (["DELETE FROM audit WHERE number = 1"], "row 1 is missing, before row 2"),
        (["DELETE FROM audit WHERE number > 4"], "rows 5 to 6 are missing: the end of"),
        (["DELETE FROM audit"], "rows 1 to 6 are missing: the end of the chain was cut"),
        (SWAP, "row 4 was written as row 5: rows changed places"),
        (CLOSE_UP, "row 4 was written as row 5: .* or some were taken out"),
        (["UPDATE audit SET number = 0 WHERE number = 1"], "row 0 stands before the"),
        (
            ["UPDATE audit_marks SET number = 5 WHERE name = 'head'"],
            "row 6 was added behind the chain's head",
        ),
        (
            ["UPDATE audit_marks SET hash = 'x' WHERE name = 'head'"],
            "row 6 is not the one that the chain's head names",
        ),
        (
            [
                "DELETE FROM audit WHERE number < 4",
                "UPDATE audit_marks SET number = 3, hash = (SELECT previous_hash FROM audit "
                "WHERE number = 4) WHERE name = 'anchor'",
            ],
            "rows 1 to 3 are missing, and no row says that they were pruned",
        ),
        (
            ["UPDATE audit_marks SET hash = 'x' WHERE name = 'anchor'"],
            "row 1 does not follow the rows that came before it",
        ),
    ],
)  # fmt: skip
def test_tampering_is_found_and_named(
    store: AuditStore, url: str, statements: list[str], words: str
) -> None:
    assert verify(store).fault is None
    execute(url, *statements)
    fault = verify(store).fault
    assert fault is not None
    assert re.search(words, fault), fault


def test_a_row_rewritten_with_its_hash_is_found(store: AuditStore, url: str) -> None:
    with store.chain() as chain:
        third = list(chain.rows)[2]
    forged = Row.after(Mark(2, third.previous_hash), entry(3, body={"decision": "primary_only"}))
    execute(
        url, f"UPDATE audit SET id = '{forged.id}', body = '{forged.body}', hash = '{forged.hash}' "
        "WHERE number = 3",
    )  # fmt: skip
    fault = verify(store).fault
    assert fault is not None
    assert "row 3 is not the one that row 4 was written after" in fault


def test_a_noted_head_finds_a_chain_that_was_rewritten(store: AuditStore, tmp_path: Path) -> None:
    head = verify(store).head
    assert verify(store, head).fault is None
    assert verify(store, Mark(2, store.rows(1, 1)[0].hash)).fault is None
    other = AuditStore(f"sqlite:///{tmp_path / 'forged.db'}")
    stored(other, [entry(number, body={"forged": True}) for number in range(1, 7)])
    assert verify(other).fault is None
    fault = verify(other, head).fault
    assert fault is not None
    assert fault == "row 6 is not the one that was noted: the chain was rewritten"
    fault = verify(other, Mark(9, head.hash)).fault
    assert fault is not None
    assert fault == "rows 7 to 9 are missing: the noted head came after them"
    other.close()


def test_a_noted_head_outlives_pruning(store: AuditStore) -> None:
    marks = [Mark(row.number, row.hash) for row in store.rows(0, 10)]
    store.prune(AT + timedelta(minutes=4))
    for mark in marks:  # rows 1 and 2 are gone, 3 is the anchor
        assert verify(store, mark).fault is None
    assert verify(store, Mark(3, "f" * 64)).fault is not None


def test_an_empty_chain_is_whole(tmp_path: Path) -> None:
    store = AuditStore(f"sqlite:///{tmp_path / 'empty.db'}")
    found = verify(store)
    assert (found.rows, found.head.number, found.fault) == (0, 0, None)
    store.close()


def test_verification_sees_one_moment(postgres: Postgres) -> None:
    store = AuditStore(postgres.new_database())
    stored(store, [entry(number) for number in range(3)])
    with store.chain() as chain:
        stored(store, [entry(5)])
        store.prune(AT + timedelta(minutes=2))
        assert (chain.head.number, len(list(chain.rows))) == (3, 3)
    assert verify(store).fault is None
    store.close()


@pytest.mark.parametrize("text", ["", "7", "7:abc", f"x:{'a' * 64}", f"-1:{'a' * 64}"])
def test_heads_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--head .*: write it as 734:"):
        parse_mark(text)
    assert parse_mark(f"7:{'A' * 64}") == Mark(7, "a" * 64)

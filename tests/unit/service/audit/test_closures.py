"""Closures as a fold over entries, in memory and in the table."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ideal_dispatch.service.audit.closures import KEPT, Closure, Closures
from ideal_dispatch.service.audit.record import Entry
from ideal_dispatch.service.audit.store import AuditStore

NOW = datetime.now(UTC).replace(microsecond=0)


def closure(name: str, **changes: Any) -> Closure:
    given = {"edges": (1, 2), "network": "n", "by": "cad", "at": NOW, **changes}
    return Closure(name, **given)


def made(one: Closure) -> Entry:
    return Entry("closure", "", {"closure": one.plain(), "actor": "cad"}, at=NOW)


def ended(name: str) -> Entry:
    return Entry("closure", "", {"ended": name, "actor": "cad"}, at=NOW)


def known(closures: Closures) -> list[str]:
    return [one.id for one in closures]


def test_a_closure_comes_back_from_its_json() -> None:
    one = closure(
        "a", since=NOW, until=NOW + timedelta(hours=1), reason="parade", line=[[1.0, 2.0]]
    )
    assert Closure.of(one.plain()) == one


def test_when_one_is_active() -> None:
    hour = timedelta(hours=1)
    one = closure("a", since=NOW, until=NOW + hour)
    assert [one.active(NOW + n * hour / 2) for n in (-1, 0, 1, 2)] == [False, True, True, False]
    assert closure("b").active(NOW + 1000 * hour)
    closures = Closures([one, closure("b"), closure("c", network="other")])
    assert [found.id for found in closures.active(NOW, "n")] == ["a", "b"]
    assert [row["active"] for row in closures.rows(NOW, "n")] == [True, True, False]
    assert [row["edges"] for row in closures.rows(NOW, "n")] == [[1, 2], [1, 2], []]
    assert [row["id"] for row in closures.rows(NOW + hour, "n")] == ["b", "c"]
    closures.forget(NOW + hour)  # perhaps the clock is wrong
    assert known(closures) == ["a", "b", "c"]
    closures.forget(NOW + hour + KEPT)
    assert known(closures) == ["b", "c"]


def test_one_that_ended_does_not_come_back() -> None:
    """A worker knows at once what it wrote, and reads its own rows and the table after that."""
    closures = Closures()
    one = closure("a")
    closures.take(made(one))
    closures.take(ended("a"))
    closures.take(made(one))
    closures.put(one)
    assert known(closures) == []
    assert closures.get("a") is None


@pytest.mark.parametrize(
    "body",
    [
        {}, {"closure": None}, {"closure": {"id": "a"}},
        {"closure": {**closure("a").plain(), "until": "soon"}},
        {"closure": {**closure("a").plain(), "edges": 3}},
    ],
)  # fmt: skip
def test_an_entry_that_makes_no_sense_closes_nothing(body: Any, tmp_path: Path) -> None:
    store = AuditStore(f"sqlite:///{tmp_path / 'audit.db'}")
    entry = Entry("closure", "", body, at=NOW)
    store.append([entry, made(closure("b"))])
    assert [one.id for one in store.read_closures()] == ["b"]
    closures = Closures()
    closures.take(entry)
    assert known(closures) == []
    store.close()


def test_the_table_says_what_the_entries_say(tmp_path: Path) -> None:
    store = AuditStore(f"sqlite:///{tmp_path / 'audit.db'}")
    one, two = closure("a", reason="fair"), closure("b", at=NOW + timedelta(seconds=1))
    entry = made(one)
    store.append([entry, made(two)])
    assert store.read_closures() == [one, two]
    store.append([entry])  # on record already
    assert store.read_closures() == [one, two]
    store.append([ended("a"), ended("nobody")])
    assert store.read_closures() == [two]
    store.append([made(closure("c")), ended("c")], keep_duplicates=True)  # from a spool
    assert store.read_closures() == [two]
    store.close()


def test_ended_ones_leave_the_table(tmp_path: Path) -> None:
    store = AuditStore(f"sqlite:///{tmp_path / 'audit.db'}")
    hour = timedelta(hours=1)
    ends = {"a": -KEPT - hour, "b": -hour, "c": hour}
    store.append([made(closure(name, until=NOW + end)) for name, end in ends.items()])
    store.append([Entry("service", "", {"n": n}, at=NOW) for n in range(70)])
    assert {one.id for one in store.read_closures()} == {"b", "c"}
    store.close()

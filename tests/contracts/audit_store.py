"""What every audit store keeps.

A test class inherits this and gives a fixture ``url`` of an empty database.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import inspect, text

from ideal_dispatch.service import clock
from ideal_dispatch.service.audit import leases
from ideal_dispatch.service.audit import store as store_module
from ideal_dispatch.service.audit.database import Database, migrate
from ideal_dispatch.service.audit.outbox import Outbox
from ideal_dispatch.service.audit.record import (
    FIRST_HASH,
    AuditError,
    DuplicateEntry,
    Entry,
    OutdatedUnits,
    OvertakenEntry,
    PromisedUnits,
    Row,
    StoreError,
)
from ideal_dispatch.service.audit.schema import VERSION
from ideal_dispatch.service.audit.store import AuditStore
from ideal_dispatch.service.audit.units import UnitTables
from ideal_dispatch.service.audit.verification import verify
from ideal_dispatch.service.clock import ClockTable, moment_text
from ideal_dispatch.service.unit_counts import UnitCounts
from tests.audit_entries import AT, entry, stored, takes

HOSTILE = (
    "'); DROP TABLE audit; --", "=cmd|' /C calc'!A0", "<script>alert(1)</script>", "香港 🚑",
    "a\x00b", "\ud800", "\n\r\t", "%s %(x)s :name ?",
)  # fmt: skip


OF_0003 = ("fleet_units", "fleet_places", "fleet_gone", "closures", "leases", "webhooks")
"""Tables that came with version 0003."""


def dropped(*tables: str) -> list[str]:
    return [f"DROP TABLE {table}" for table in tables]


def version(number: str) -> str:
    return f"UPDATE alembic_version SET version_num = '{number}'"


def working(status: str, after_s: float) -> Entry:
    """Unit A1 begins to do something."""
    at = AT + timedelta(seconds=after_s)
    unit = {
        "id": "A1", "station": "D0", "kind": "", "status": status, "call_id": None,
        "since": moment_text(at), "status_at": moment_text(at), "turned_at": moment_text(at),
    }  # fmt: skip
    return Entry("unit", "", {"units": [unit], "gone": []}, at=at)


def left(after_s: float) -> Entry:
    """Unit A1 leaves the fleet."""
    return Entry("unit", "", {"units": [], "gone": ["A1"]}, at=AT + timedelta(seconds=after_s))


class AuditStoreContract:
    """Rows, their chain, and units."""

    @pytest.fixture
    def url(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    def store(self, url: str) -> Iterator[AuditStore]:
        store = AuditStore(url)
        yield store
        store.close()

    def test_rows_are_numbered_and_chained(self, store: AuditStore) -> None:
        entries = [entry(number) for number in range(3)]
        rows = stored(store, entries)
        assert [row.number for row in rows] == [1, 2, 3]
        assert [row.entry for row in rows] == entries
        hashes = [row.hash for row in rows]
        assert [row.previous_hash for row in rows] == [FIRST_HASH, *hashes[:2]]
        assert store.rows(0, 10) == rows
        assert store.rows(1, 1) == rows[1:2]

    def test_nothing_is_appended_by_no_entries(self, store: AuditStore) -> None:
        assert store.append([]) == store.rows(0, 10) == []

    def test_a_walk_along_the_chain_may_end_early(
        self, store: AuditStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(store_module, "_PAGE", 2)
        rows = stored(store, [entry(number) for number in range(7)])
        with store.chain() as chain:
            assert next(chain.rows) == rows[0]
        rows += stored(store, [entry(7)])
        with store.chain() as chain:
            assert list(chain.rows) == rows

    def test_each_entry_hears_its_outcome(self, store: AuditStore) -> None:
        (first,) = stored(store, [entry(1)])
        again, other = entry(1), entry(2)
        outcomes = store.append([first.entry, again, other, entry(2)])
        assert outcomes[0] == first  # the same entry: the row it has
        assert isinstance(outcomes[1], DuplicateEntry)
        assert outcomes[1].entry == first.entry
        assert "call 'call-1' with key 'k' is on record already" in str(outcomes[1])
        assert isinstance(outcomes[2], Row)
        assert isinstance(outcomes[3], DuplicateEntry)
        assert outcomes[3].entry == other
        assert [row.entry for row in store.rows(0, 10)] == [first.entry, other]

    def test_an_entry_is_kept_off_by_one_that_its_writer_had_not_seen(
        self, store: AuditStore
    ) -> None:
        (first,) = stored(store, [entry(1, key="a")])
        late, unaware = entry(1, key="b", seen=0), entry(1, key="b", seen=first.number)
        stored(store, [entry(2), entry(1, key="a", kind="response")])  # other calls, other kinds
        outcomes = store.append([late, unaware, entry(1, key="c", seen=first.number)])
        assert isinstance(outcomes[0], OvertakenEntry)
        assert isinstance(outcomes[1], Row)
        assert isinstance(outcomes[2], OvertakenEntry)  # by the one beside it
        assert isinstance(store.append([entry(1, seen=0, key="a")])[0], DuplicateEntry)
        (kept,) = store.append([late], keep_duplicates=True)  # from the spool, come what may
        assert isinstance(kept, Row)
        assert verify(store).fault is None

    @pytest.mark.parametrize("kind", ["reply", "response"])
    def test_what_a_dispatcher_did_keeps_off_an_advice_made_before(
        self, store: AuditStore, kind: str
    ) -> None:
        (first,) = stored(store, [entry(1)])
        advice = entry(1, key="d/first", kind="reassessment", seen=first.number)
        (last,) = stored(store, [entry(1, key="r", kind=kind)])
        assert isinstance(store.append([advice])[0], OvertakenEntry)
        assert isinstance(store.append([replace(advice, seen=last.number)])[0], Row)

    def test_a_key_counts_within_its_kind_and_call(self, store: AuditStore) -> None:
        entries = [entry(1), entry(1, kind="response"), entry(2), entry(1, key="other")]
        entries += [entry(1, key=None), entry(1, key=None), entry(1, key="")]
        assert [row.entry for row in stored(store, entries)] == entries

    def test_kept_duplicates_say_so(self, store: AuditStore) -> None:
        first, later, latest = entry(1), entry(1, body={"by": "other"}), entry(1)
        stored(store, [first])
        kept = store.append([later, entry(2), latest], keep_duplicates=True)
        assert [row.duplicate_of for row in kept if isinstance(row, Row)] == [
            first.id, None, first.id,
        ]  # fmt: skip
        assert _entry(store.find("recommendation", "call-1", "k")) == first
        assert _entry(store.get(later.id)) == later
        assert store.append([later], keep_duplicates=True) == kept[:1]  # replayed twice
        assert len(store.of_call("call-1", 9)) == 3
        assert verify(store).fault is None

    def test_an_id_with_other_contents_is_kept_as_a_duplicate(self, store: AuditStore) -> None:
        first = entry(1, key=None)
        forged = replace(first, body={"decision": "primary_only"})
        stored(store, [first])
        with pytest.raises(DuplicateEntry):
            stored(store, [forged])
        (kept,) = store.append([forged], keep_duplicates=True)
        assert isinstance(kept, Row)
        assert kept.duplicate_of == first.id
        assert store.append([forged], keep_duplicates=True) == [kept]  # replayed twice
        assert _entry(store.get(first.id)) == first
        assert verify(store).fault is None

    def test_looking_rows_up(self, store: AuditStore) -> None:
        entries = [entry(number, f"call-{number % 2}", key=str(number)) for number in range(6)]
        answer = entry(9, "call-1", kind="response")
        stored(store, [*entries, answer])
        assert _entry(store.get(entries[3].id)) == entries[3]
        assert _entry(store.find("recommendation", "call-1", "3")) == entries[3]
        assert store.get("nothing") is None
        assert store.find("response", "call-1", "3") is None
        assert [row.entry for row in store.of_call("call-1", 9)] == [*entries[1::2], answer]
        assert [row.entry for row in store.of_call("call-1", 2)] == [entries[5], answer]
        assert [row.entry for row in store.of_call("call-1", 9, "response")] == [answer]
        assert [row.entry for row in store.recent("recommendation", 2)] == entries[:3:-1]

    def test_rows_since_a_moment_are_found_behind_older_ones(
        self, store: AuditStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A spool was replayed, so rows of long ago came on record last."""
        monkeypatch.setattr(store_module, "_PAGE", 3)
        minutes = 0, 1, 2, 3, 10, 11, 4, 12, 13, 5, 6
        entries = [entry(number) for number in minutes]
        stored(store, [*entries, entry(20, kind="response")])

        def found(most: int) -> list[int]:
            since = list(store.since("recommendation", AT + timedelta(minutes=10), most))
            return [row.entry.body["number"] for row in since]

        assert found(99) == [13, 12, 11, 10]
        assert found(1) == [13]
        assert not list(store.since("reply", AT, 99))

    def test_hostile_text_comes_back_as_it_was(self, store: AuditStore) -> None:
        body = {"texts": list(HOSTILE), **dict.fromkeys(HOSTILE, 1), "n": [0.1, 1e-320, 2**70]}
        texts = [word for word in HOSTILE if "\x00" not in word and "\ud800" not in word]
        entries = [entry(1, word, key=word, body=body) for word in texts]
        rows = stored(store, entries)
        for word, row in zip(texts, rows, strict=True):
            assert store.find("recommendation", word, word) == row
            assert row.entry.body == body
        assert verify(store).fault is None

    @pytest.mark.parametrize(
        "change",
        ["UPDATE audit SET body = '{}' WHERE number = 2", "DELETE FROM audit WHERE number = 2"],
    )
    def test_rows_cannot_be_changed_by_accident(
        self, store: AuditStore, url: str, change: str
    ) -> None:
        stored(store, [entry(number) for number in range(3)])
        with pytest.raises(StoreError, match="audit rows are append-only"):
            execute(url, change)
        assert verify(store).fault is None

    def test_many_threads_make_one_chain(self, url: str, store: AuditStore) -> None:
        """Also its tables: nobody made them before."""
        stores = [AuditStore(url, timeout_s=300.0) for _ in range(4)]

        def work(worker: int) -> None:
            for number in range(10):
                stored(stores[worker], [entry(number, f"{worker}-{number}")])

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        found = verify(store)
        assert (found.rows, found.fault) == (40, None)
        for one in stores:
            one.close()

    def test_pruning_takes_the_oldest_and_says_so(
        self, store: AuditStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(store_module, "_PRUNED_AT_ONCE", 4)
        rows = stored(store, [entry(number) for number in range(20)])
        assert store.prune(AT + timedelta(minutes=10)) == 10
        assert store.rows(0, 100)[:10] == rows[10:]
        notes = [row.entry.body for row in store.recent("service", 10)]
        assert [note["number"] for note in notes] == [10, 8, 4]
        assert notes[0]["hash"] == rows[9].hash
        found = verify(store)
        assert (found.anchor.number, found.head.number, found.fault) == (10, 23, None)
        assert store.prune(AT + timedelta(minutes=10)) == 0
        assert stored(store, [entry(30)])[0].number == 24
        assert verify(store).fault is None

    def test_pruning_stops_at_the_first_row_that_stays(self, store: AuditStore) -> None:
        late = entry(500, "clock was ahead")
        stored(store, [entry(1), late, entry(2), entry(3)])
        assert store.prune(AT + timedelta(minutes=100)) == 1
        assert store.rows(0, 1)[0].entry == late

    def test_pruning_never_takes_the_last_row(self, store: AuditStore) -> None:
        assert store.prune(AT) == 0
        rows = stored(store, [entry(1), entry(2)])
        assert store.prune(datetime(2100, 1, 1, tzinfo=UTC)) == 1
        assert store.rows(0, 1) == rows[1:]
        assert verify(store).fault is None

    def test_units_keep_the_newest(self, store: AuditStore) -> None:
        assert not store.read_units().told
        stored(store, [told({"Old Town": 2, "Kelp Point": 1})])
        newer, older = told({"Kelp Point": 3}, 2), told({"Kelp Point": 0, "Old Town": 1}, 1)
        row, refused = store.append([newer, older])
        assert isinstance(row, Row)
        assert isinstance(refused, OutdatedUnits)
        assert str(refused).startswith("Kelp Point: 3 units are known as of 2025-01-01T00:00:02")
        assert [one.units for one in store.read_units().told.values()] == [3, 2]
        store.append([older], keep_duplicates=True)  # it was told, and is taken as it is
        known = store.read_units().told
        assert {depot: one.units for depot, one in known.items()} == {
            "Kelp Point": 3,
            "Old Town": 1,
        }
        assert known["Kelp Point"].updated_at == AT + timedelta(seconds=2)

    def test_units_are_known_with_their_row_or_not_at_all(self, store: AuditStore) -> None:
        """What is taken back changes no counts, nor does an entry that is on record already."""
        store.read_units()  # the tables are made
        with store._database.writing() as connection:
            store_module.append(connection, [told({"Old Town": 2})], keep_duplicates=False)
            connection.rollback()
        assert not store.read_units().told
        assert store.rows(0, 10) == []
        first = told({"Old Town": 2})
        stored(store, [first])
        stored(store, [told({"Old Town": 5})])  # of the same moment: the later row counts
        store.append([first], keep_duplicates=True)
        assert [one.units for one in store.read_units().told.values()] == [5]

    @pytest.mark.parametrize(
        "body",
        [{"units": {"Old Town": -1}, "updated_at": AT.isoformat()},
         {"units": {"Old Town": "1"}, "updated_at": AT.isoformat()},
         {"units": {"Old Town": 1}, "updated_at": "2026-03-01T08:00:00"},
         {"units": {"Old Town": 1}, "updated_at": 7}, {"units": 1}, {}],
    )  # fmt: skip
    def test_units_that_make_no_sense_are_on_record_alone(
        self, store: AuditStore, body: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        stored(store, [Entry("units", "", body, at=AT), told({"Kelp Point": 1})])
        assert len(store.rows(0, 10)) == 2
        assert [one.depot for one in store.read_units().told.values()] == ["Kelp Point"]
        assert "changes no counts of units" in caplog.text

    def test_the_last_unit_is_promised_once(self, store: AuditStore) -> None:
        """Also within one commit; what is replayed from the spool is on record in any case."""
        now = datetime.now(UTC)
        one, two = (promising(name, now) for name in ("a", "b"))
        row, refused = store.append([one, two])
        assert isinstance(row, Row)
        assert isinstance(refused, PromisedUnits)
        assert refused.calls == {"D1": ["a"]}
        with pytest.raises(PromisedUnits, match="its units at D1 are not free any more"):
            stored(store, [promising("c", now)])
        assert [(each.call_id, each.start, each.kind) for each in store.read_units().promises] == [
            ("a", "D1", "advised")
        ]
        body = {"recommendation_id": one.id, "response": {"action": "override"}}
        stored(store, [Entry("response", "a", body, at=now)])
        stored(store, [two])
        assert store.append([promising("c", now)], keep_duplicates=True)[0] != refused
        kinds = {each.call_id: each.kind for each in store.read_units().promises}
        assert kinds == {"a": "refused", "b": "advised", "c": "advised"}
        assert verify(store).fault is None

    def test_a_count_told_meanwhile_decides(self, store: AuditStore) -> None:
        now = datetime.now(UTC)
        stored(store, [told_at({"D1": 0}, now)])
        (refused,) = store.append([promising("a", now, listed=False)])
        assert isinstance(refused, PromisedUnits)
        stored(store, [told_at({"D1": 1}, now), promising("a", now, listed=False)])

    def test_what_the_cad_sent_is_read_only_where_it_may_hold(self, store: AuditStore) -> None:
        """Most calls of the last hours sent a unit: an append must not read them all."""
        now = datetime.now(UTC)
        old, before = now - timedelta(minutes=10), now - timedelta(minutes=20)

        def read(listed: bool = False) -> set[str]:
            with store._database.writing() as connection:
                tables = UnitTables(connection, [promising("b", now, listed)])
                return {one.call_id for one in tables.before.promises}

        stored(store, [promising("a", old, sent="D1")])
        assert read() == set()  # nobody told a count, and the advice expired
        stored(store, [told_at({"D1": 1}, before)])
        assert (read(), read(listed=True)) == ({"a"}, set())
        (refused,) = store.append([promising("b", now, listed=False)])
        assert isinstance(refused, PromisedUnits)
        stored(store, [told_at({"D1": 1}, now)])
        assert read() == set()
        stored(store, [promising("b", now, listed=False)])
        assert read() == {"b"}

    def test_promises_that_ended_go(self, store: AuditStore) -> None:
        stored(store, [promising("old", AT)])
        store.append([entry(number) for number in range(70)])
        assert not list(store.read_units().promises)

    def test_many_writers_promise_a_unit_once(self, url: str, store: AuditStore) -> None:
        """Each has a connection of its own; who comes second hears it."""
        store.read_units()
        now = datetime.now(UTC)

        def written(number: int) -> str:
            with closing(AuditStore(url, timeout_s=30.0)) as own:
                (outcome,) = own.append([promising(f"call-{number}", now)])
            return type(outcome).__name__

        with ThreadPoolExecutor(8) as pool:
            outcomes = list(pool.map(written, range(8)))
        assert sorted(outcomes) == ["PromisedUnits"] * 7 + ["Row"]

    def test_a_lease_has_one_holder(self, url: str, store: AuditStore) -> None:
        """Until it ends or is given back; another task is another lease."""
        database = Database(url)

        def take(holder: str, for_s: float, task: str = "webhook cad") -> bool:
            with database.writing() as connection:
                return leases.take(connection, task, holder, for_s)

        assert take("a", 3600.0)
        assert not take("b", 3600.0)
        assert not take("b", 0.0)  # nobody gives back what another holds
        assert take("a", 3600.0)
        assert take("b", 3600.0, task="reassessment")
        assert take("a", 0.0)
        assert take("b", 0.001)
        time.sleep(0.01)
        assert take("a", 3600.0)
        database.close()

    def test_a_lease_goes_by_real_time(self, url: str, store: AuditStore) -> None:
        """The service's clock may run sixty times as fast, or begin elsewhere."""
        database = Database(url)
        clock.use(ClockTable(AT, datetime.now(UTC), 1000.0))
        try:
            for holder, held in (("a", True), ("b", False)):
                with database.writing() as connection:
                    assert leases.take(connection, "task", holder, 600.0) == held
                time.sleep(1.0)
        finally:
            clock.use(ClockTable())
            database.close()

    def test_many_who_want_a_lease_at_once(self, url: str, store: AuditStore) -> None:
        store.read_units()  # the tables are made

        def want(number: int) -> bool:
            with closing(Database(url, timeout_s=30.0)) as own, own.writing() as connection:
                return leases.take(connection, "task", f"worker-{number}", 3600.0)

        with ThreadPoolExecutor(8) as pool:
            taken = list(pool.map(want, range(8)))
        assert sorted(taken) == [False] * 7 + [True]

    def test_an_outbox_has_the_wanted_rows_in_order(self, url: str, store: AuditStore) -> None:
        """A new one begins at the end, goes on where it was, and is never told duplicates."""
        stored(store, [entry(1)])
        outbox = Outbox(url, "cad", ["recommendation", "closure"])
        assert outbox.number() == 1
        assert outbox.rows(1, 10) == ([], 1)
        stored(store, [entry(2), entry(3, kind="response"), entry(4, kind="closure")])
        store.append([entry(2), entry(5, kind="service")], keep_duplicates=True)
        assert outbox.number() == 1
        rows, looked = outbox.rows(1, 10)
        assert ([row.number for row in rows], looked) == ([2, 4], 6)
        assert (outbox.behind(1), outbox.behind(2), outbox.behind(4)) == (2, 1, 0)
        rows, looked = outbox.rows(1, 1)
        assert ([row.number for row in rows], looked) == ([2], 2)
        assert outbox.move(1, 4)
        assert not outbox.move(1, 2)  # another worker was there meanwhile
        assert outbox.number() == 4
        outbox.close()
        other = Outbox(url, "other", [])
        assert other.number() == 6
        other.close()

    def test_migrating_twice_is_harmless(self, url: str, store: AuditStore) -> None:
        assert migrate(url) == VERSION
        stored(store, [entry(1)])
        assert migrate(url) == VERSION
        assert len(store.rows(0, 10)) == 1

    def test_tables_of_the_version_before_are_migrated(self, url: str, store: AuditStore) -> None:
        stored(store, [entry(1)])
        execute(url, *dropped("promises", *OF_0003), version("0001"))
        old = AuditStore(url)
        with pytest.raises(StoreError, match="of version 0001.*run `ideal audit migrate`"):
            old.read_units()
        old.close()
        assert migrate(url) == VERSION
        stored(store, [promising("a", AT)])
        assert len(list(store.read_units().promises)) == 1
        assert verify(store).fault is None

    def test_every_migration_leads_to_the_same_tables(self, url: str, store: AuditStore) -> None:
        stored(store, [entry(1)])
        database = Database(url)

        def tables() -> dict[str, object]:
            with database.reading() as connection:
                found = inspect(connection)
                return {
                    name: (
                        [(one["name"], one["nullable"]) for one in found.get_columns(name)],
                        sorted(str(one["name"]) for one in found.get_indexes(name)),
                    )
                    for name in found.get_table_names()
                }

        new = tables()
        first = {"alembic_version", "audit", "audit_marks", "promises", "units"}
        assert set(new) == first | set(OF_0003)
        for found, *older in (
            ("0001", *dropped("promises", *OF_0003)),
            ("0002", *dropped(*OF_0003)),
        ):
            execute(url, *older, version(found))
            migrate(url)
            assert tables() == new
        database.close()

    def test_promises_of_the_version_before_are_kept(self, url: str, store: AuditStore) -> None:
        stored(store, [promising("a", AT)])
        before = list(store.read_units().promises)
        execute(url, *dropped(*OF_0003), version("0002"))
        migrate(url)
        assert list(store.read_units().promises) == before != []

    def test_a_unit_that_left_by_a_clock_ahead_is_gone(self, store: AuditStore) -> None:
        """It waited in a spool while the clock went back, or another host's clock is ahead."""
        now = clock.now()
        stored(store, [working("at_station", 0)])
        stored(store, [replace(left(0), at=now + timedelta(hours=1))])
        assert not store.read_units().fleet

    def test_a_unit_that_left_and_came_back_stays_when_the_clock_reaches_that_moment(
        self, store: AuditStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The clock was an hour ahead when it left."""
        moments = {"ahead": 3600.0, "right": 0.0, "later": 3660.0}

        def set_clock(name: str) -> None:
            at = AT + timedelta(seconds=moments[name])
            monkeypatch.setattr(clock, "now", lambda: at)

        set_clock("ahead")
        stored(store, [working("at_station", 3540)])
        stored(store, [left(3600)])
        set_clock("right")
        stored(store, [working("available", 0)])
        set_clock("later")
        fresh = UnitCounts()
        fresh.merge(store.read_units())
        assert [one.status for one in fresh.fleet.values()] == ["available"]

    @pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1)])
    def test_a_unit_that_left_is_not_brought_back_by_older_news(
        self, store: AuditStore, order: tuple[int, ...]
    ) -> None:
        """They may come on record later: they waited in the spool of another worker."""
        told = [working("at_station", 0), working("en_route", 10), left(20)]
        for one in order:
            stored(store, [told[one]])
        known = store.read_units()
        assert (known.fleet, list(known.gone)) == ({}, ["A1"])
        stored(store, [working("available", 30)])
        assert store.read_units().fleet["A1"].status == "available"
        stored(store, [left(25)])
        assert "A1" in store.read_units().fleet

    def test_tables_of_other_versions_are_refused(self, url: str) -> None:
        migrate(url)
        for found, message in (("0000", "run `ideal audit migrate`"), ("9999", "upgrade ideal-di")):
            execute(url, f"UPDATE alembic_version SET version_num = '{found}'")
            store = AuditStore(url)
            with pytest.raises(AuditError, match=f"version {found}, .*{message}"):
                stored(store, [entry(1)])
            store.close()

    def test_tables_of_another_program_are_left_alone(self, url: str) -> None:
        execute(url, "CREATE TABLE units (name TEXT)")
        store = AuditStore(url)
        with pytest.raises(StoreError, match="units.* already exists"):
            stored(store, [entry(1)])
        store.close()
        execute(url, "INSERT INTO units VALUES ('theirs')", "DROP TABLE units")
        migrate(url)
        execute(url, "UPDATE alembic_version SET version_num = '0001cafe'")
        with pytest.raises(AuditError, match="of version 0001cafe, which is not ours"):
            migrate(url)

    def test_reading_makes_no_tables(self, url: str) -> None:
        store = AuditStore(url, create=False)
        with pytest.raises(StoreError, match="it has no tables, .* run `ideal audit migrate`"):
            store.rows(0, 1)
        store.close()


def told(units: dict[str, int], second: int = 0) -> Entry:
    """Counts of free units as the service writes them."""
    return told_at(units, AT + timedelta(seconds=second))


def told_at(units: dict[str, int], at: datetime) -> Entry:
    return Entry("units", "", {"units": units, "updated_at": at.isoformat()}, at=at)


def promising(call_id: str, at: datetime, listed: bool = True, sent: str | None = None) -> Entry:
    """An answer that takes the one unit of depot D1 for a minute, beside what the CAD sent."""
    moments = {"asked_at": at.isoformat(), "received_at": at.isoformat()}
    answer = {**moments, "expires_at": (at + timedelta(minutes=1)).isoformat()}
    body = {"answer": answer, "takes": takes("D1", sent=sent, listed=listed)}
    return Entry("recommendation", call_id, body, at=at, key="k", seen=0, promising=True)


def execute(url: str, *statements: str) -> None:
    """Do something to the database that the store would not."""
    database = Database(url)
    try:
        with database.writing(checked=False) as connection:
            for statement in statements:
                connection.execute(text(statement))
    finally:
        database.close()


def _entry(row: Row | None) -> Entry:
    assert row is not None
    return row.entry

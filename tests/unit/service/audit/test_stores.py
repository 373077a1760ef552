"""Both databases keep the contract; what only one of them knows is here too."""

import os
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.audit.database import Database
from ideal_dispatch.service.audit.record import AuditError, StoreError
from ideal_dispatch.service.audit.store import AuditStore
from tests.audit_entries import entry, stored
from tests.contracts.audit_store import AuditStoreContract
from tests.postgres import Postgres


class TestSqlite(AuditStoreContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path / 'audit.db'}"

    def test_only_the_owner_may_read_the_file(self, store: AuditStore, tmp_path: Path) -> None:
        stored(store, [entry(1)])
        for path in tmp_path.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_workers_that_start_together_open_one_new_file(self, tmp_path: Path) -> None:
        """Switching the journal has no patience in SQLite: one of some forty failed by it."""
        for number in range(50):
            database = Database(f"sqlite:///{tmp_path / f'{number}.db'}", timeout_s=300.0)
            together = threading.Barrier(4)

            def read(database: Database = database, together: threading.Barrier = together) -> None:
                together.wait()
                with database.reading(checked=False) as connection:
                    connection.exec_driver_sql("SELECT 1")

            with ThreadPoolExecutor(4) as pool:
                for done in [pool.submit(read) for _ in range(4)]:
                    done.result()
            database.close()

    def test_every_commit_is_synced(self, store: AuditStore) -> None:
        with store._database.writing() as connection:
            settings = [
                connection.exec_driver_sql(f"PRAGMA {name}").scalar()
                for name in ("journal_mode", "synchronous")
            ]
        assert settings == ["wal", 2]

    def test_no_question_walks_the_whole_table(self, store: AuditStore, tmp_path: Path) -> None:
        """The database grows for years; an append must not."""
        stored(store, [entry(1)])
        asked: list[tuple[str, Any]] = []

        @event.listens_for(store._database._engine, "before_cursor_execute")
        def note(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
            asked.append((statement, parameters))

        store.append([entry(1), entry(2), entry(3, "")])
        store.append([entry(1), entry(2)], keep_duplicates=True)
        store.get("x")
        store.find("recommendation", "call-1", "k")
        store.of_call("call-1", 9)
        store.recent("recommendation", 5)
        store.rows(0, 5)
        with sqlite3.connect(tmp_path / "audit.db") as plain:
            selects = [one for one in asked if one[0].startswith("SELECT") and one[1]]
            plans = [
                plan[3]
                for statement, parameters in selects
                for plan in plain.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            ]
        plain.close()
        assert len(selects) == 9
        assert [plan for plan in plans if plan.startswith("SCAN")] == []

    @pytest.mark.parametrize(
        ("url", "message"),
        [
            ("nonsense", "not a URL; write it as sqlite:///audit.db"),
            ("mysql://host/audit", "mysql is not supported"),
            ("sqlite://", "SQLite needs a file"),
            ("sqlite:///:memory:", "SQLite needs a file"),
            ("sqlite:////no/such/folder/audit.db", "the folder /no/such/folder does not exist"),
        ],
    )
    def test_addresses_that_cannot_be_used(self, url: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            AuditStore(url)

    def test_a_file_that_is_no_database(self, tmp_path: Path) -> None:
        (tmp_path / "audit.db").write_text("not a database at all, " * 100)
        with pytest.raises(StoreError, match="audit.db: file is not a database"):
            stored(AuditStore(f"sqlite:///{tmp_path / 'audit.db'}"), [entry(1)])

    def test_a_row_that_cannot_be_read_is_named(self, store: AuditStore, tmp_path: Path) -> None:
        stored(store, [entry(1)])
        with sqlite3.connect(tmp_path / "audit.db") as plain:
            plain.execute("DROP TRIGGER audit_no_update")
            plain.execute("UPDATE audit SET body = '{'")
        plain.close()
        with pytest.raises(StoreError, match="audit row 1 cannot be read .*`ideal audit verify`"):
            store.recent("recommendation", 1)
        assert store.rows(0, 1)[0].body == "{"  # whoever verifies or exports must see it

    def test_a_database_without_a_head_is_refused(self, store: AuditStore, tmp_path: Path) -> None:
        stored(store, [entry(1)])
        with sqlite3.connect(tmp_path / "audit.db") as plain:
            plain.execute("DELETE FROM audit_marks WHERE name = 'head'")
        plain.close()
        with pytest.raises(AuditError, match="the chain's head is missing; restore a backup"):
            stored(store, [entry(2)])


class TestPostgresql(AuditStoreContract):
    @pytest.fixture
    def url(self, postgres: Postgres) -> str:
        return postgres.new_database()

    def test_no_statement_waits_for_ever(self, store: AuditStore, url: str) -> None:
        with store._database.reading() as connection:
            limits = [
                connection.exec_driver_sql(f"SHOW {name}").scalar()
                for name in ("statement_timeout", "lock_timeout", "synchronous_commit")
            ]
        assert limits == ["2s", "2s", "on"]
        store.read_units()  # makes the tables
        other = AuditStore(url, timeout_s=0.2)
        with store._database.writing() as connection:
            connection.exec_driver_sql("SELECT * FROM audit_marks FOR UPDATE")
            with pytest.raises(StoreError, match="canceling statement due to"):
                stored(other, [entry(1)])
        assert stored(other, [entry(1)])[0].number == 1
        other.close()

    def test_other_encodings_are_refused(self, postgres: Postgres) -> None:
        store = AuditStore(postgres.new_database(encoding="LATIN1"))
        with pytest.raises(AuditError, match="encoding is LATIN1; create it with ENCODING 'UTF8'"):
            stored(store, [entry(1)])
        store.close()

    def test_the_password_is_never_told(self) -> None:
        store = AuditStore("postgresql://ideal:hunter2@127.0.0.1:9/audit")
        with pytest.raises(StoreError, match=r"ideal:\*\*\*@127.0.0.1:9/audit: ") as told:
            stored(store, [entry(1)])
        assert "hunter2" not in str(told.value)
        assert "\n" not in str(told.value)

    def test_the_address_may_bring_options(self, url: str) -> None:
        store = AuditStore(f"{url}?options=-c%20work_mem%3D5MB")
        assert isinstance(store, AuditStore)
        with store._database.reading() as connection:
            assert connection.exec_driver_sql("SHOW work_mem").scalar() == "5MB"
            assert connection.exec_driver_sql("SHOW lock_timeout").scalar() == "2s"
        store.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(StoreError, match="audit.db: Permission denied"):
        AuditStore(f"sqlite:///{tmp_path / 'closed' / 'audit.db'}").read_units()

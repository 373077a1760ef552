"""Whatever is changed behind the service's back is found, and named."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ideal_dispatch.service.record.audit import verify
from ideal_dispatch.service.record.database import Database
from ideal_dispatch.service.record.rows import Mark
from tests.service_town import Local, Town, application, bearer, local
from tests.service_town import town as town


@pytest.fixture(scope="module")
def written(town: Town) -> Path:
    """A record with some rows of every table."""
    settings = town.settings("verified.toml", server={"deadline_s": 60.0})
    with local(application(settings)) as client:
        fill(client, town)
    return town.folder / "verified.toml.db"


def fill(client: Local, town: Town) -> None:
    client.report({"id": "A1", "depot": "D0", "status": "at_station"})
    client.report({"id": "B1", "depot": "D1", "status": "available", **town.place(30)})
    made = client.advice(town.call("c-1", primary={"unit": "A1"}, threshold_s=-1000.0))
    assert client.reply(made).status_code == 200
    client.report({"id": "A2", "depot": "D0", "status": "at_station"})
    other = client.advice(town.call("c-2", primary={"unit": "A2"}))
    assert client.reply(other, "override").status_code == 200
    closed = client.post("/v1/closures", json={"edges": [3], "reason": "works"}, headers=bearer())
    assert closed.status_code == 201, closed.text
    client.report({"id": "C1", "depot": "D2", "status": "at_station"})
    client.delete("/v1/units/C1", headers=bearer("cad"))


@pytest.fixture
def record(written: Path, tmp_path: Path) -> Path:
    """A copy to tamper with; nothing guards its rows any more."""
    copy = tmp_path / "record.db"
    with sqlite3.connect(written) as source, sqlite3.connect(copy) as target:
        source.backup(target)
        for guard in ("log_no_update", "log_no_delete"):
            target.execute(f"DROP TRIGGER {guard}")
    source.close()
    target.close()
    return copy


@pytest.fixture
def fault(record: Path) -> Iterator[Callable[..., str | None]]:
    """Do something to the record; the fault that is found then."""
    database = Database(f"sqlite:///{record}")

    def look(*statements: str, noted: Mark | None = None) -> str | None:
        connection = sqlite3.connect(record)
        with connection:
            for statement in statements:
                assert connection.execute(statement).rowcount, statement
        connection.close()
        return verify(database, noted).fault

    yield look
    database.close()


def test_a_whole_record(fault: Callable[..., str | None]) -> None:
    assert fault() is None


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("UPDATE log SET body = body || ' ' WHERE number = 4", "row 4 "),
        ("UPDATE log SET body = x'fffe7b' WHERE number = 4", "row 4 "),
        ("UPDATE log SET body = '{}' WHERE number = 4", "row 4 "),
        ("UPDATE log SET at = at + 1 WHERE number = 3", "row 3 "),
        ("DELETE FROM log WHERE number = 5", "row 5 is missing"),
        ("DELETE FROM log WHERE number >= 5", "the end of the log was cut"),
        ("DELETE FROM log WHERE number <= 2", "rows 1 to 2 are missing"),
        ("UPDATE head SET number = number - 1", "behind the head"),
        ("UPDATE head SET anchor = 2", "row 1 stands before the anchor"),
        ("UPDATE unit SET promised_to = 'another' WHERE id = 'A1'", "unit 'A1'"),
        ("UPDATE unit SET status = 'available' WHERE id = 'A1'", "unit 'A1'"),
        ("DELETE FROM unit WHERE id = 'A1'", "unit 'A1'"),
        ("UPDATE advice SET state = 'open' WHERE state = 'running'", "advice "),
        ("UPDATE advice SET answer = replace(answer, '\"send_second\"', '\"primary_only\"')",
         "advice "),
        ("UPDATE advice SET view = NULL WHERE state = 'running'", "advice "),
        ("UPDATE advice SET reply = NULL WHERE call_id = 'c-2'", "advice "),
        ("DELETE FROM advice WHERE call_id = 'c-2'", "advice "),
        ("UPDATE closure SET ended_at = 1", "closure "),
    ],
)  # fmt: skip
def test_tampering_is_named(fault: Callable[..., str | None], change: str, named: str) -> None:
    found = fault(change)
    assert found is not None
    assert named in found


def test_where_a_unit_was_seen_is_no_part_of_the_record(fault: Callable[..., str | None]) -> None:
    assert fault("UPDATE unit SET lon = 1.0, seen_at = 5, told_at = 6 WHERE id = 'A1'") is None


def test_rows_that_changed_places(fault: Callable[..., str | None]) -> None:
    found = fault(
        "UPDATE log SET number = -1 WHERE number = 3",
        "UPDATE log SET number = 3 WHERE number = 4",
        "UPDATE log SET number = 4 WHERE number = -1",
    )
    assert found is not None
    assert "row 3 " in found


def test_a_log_written_anew_is_found_by_a_noted_head(
    record: Path, fault: Callable[..., str | None]
) -> None:
    database = Database(f"sqlite:///{record}")
    head = verify(database).head
    database.close()
    assert fault(noted=head) is None
    assert fault(noted=Mark(head.number, "0" * 64)) is not None
    assert fault(noted=Mark(head.number + 5, head.hash)) is not None


def test_rows_cannot_be_changed_or_removed_by_mistake(written: Path) -> None:
    connection = sqlite3.connect(written)
    for statement in ("UPDATE log SET at = 0", "DELETE FROM log"):
        with pytest.raises(sqlite3.DatabaseError, match="append-only"):
            connection.execute(statement)
    connection.close()


def test_moments_of_rows_do_not_run_backwards(written: Path) -> None:
    connection = sqlite3.connect(written)
    moments = [at for (at,) in connection.execute("SELECT at FROM log ORDER BY number")]
    connection.close()
    assert moments == sorted(moments)
    assert abs(moments[-1] / 1e6 - time.time()) < 3600

"""Counts of free units: the newest counts, and of one moment the last on record."""

from datetime import UTC, datetime, timedelta

from ideal_dispatch.service.audit.record import Entry, moment_text
from ideal_dispatch.service.unit_counts import UnitCounts

AT = datetime(2026, 1, 1, 8, tzinfo=UTC)


def told(units: int, at: datetime = AT) -> Entry:
    body = {"units": {"D0": units}, "updated_at": moment_text(at)}
    return Entry("units", "", body, at=AT)


def known(counts: UnitCounts) -> int:
    (row,) = counts.rows(["D0"], default=9)
    units: int = row["units"]
    return units


def test_the_newest_counts() -> None:
    counts = UnitCounts()
    assert known(counts) == 9
    counts.take(told(3))
    counts.take(told(5, AT - timedelta(seconds=1)))
    assert known(counts) == 3
    counts.follow(told(6, AT - timedelta(seconds=1)))
    assert known(counts) == 3
    counts.take(told(4))
    assert known(counts) == 4


def test_of_one_moment_the_last_row_counts() -> None:
    """An entry told here was taken before its row, and rows of others, were followed."""
    counts, first, own = UnitCounts(), told(2), told(0)
    counts.take(own)
    counts.follow(first)
    counts.follow(own)
    assert known(counts) == 0


def test_an_entry_told_here_but_followed_already_changes_nothing() -> None:
    """Its row and a later one may be read before its writer hears that it is durable."""
    counts, own, last = UnitCounts(), told(2), told(0)
    counts.follow(own)
    counts.follow(last)
    counts.take(own)
    assert known(counts) == 0

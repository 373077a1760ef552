"""Counts of free units: the newest counts, and of one moment the last on record."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from ideal_dispatch.service import clock
from ideal_dispatch.service.audit.promises import Promise, Promises
from ideal_dispatch.service.audit.record import Entry
from ideal_dispatch.service.clock import moment_text
from ideal_dispatch.service.unit_counts import UnitCounts, known_unit
from ideal_dispatch.service.units.unit import Seen, Unit

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


def test_the_promise_that_holds_is_shown() -> None:
    """Of two calls, the one that was heard of last need not be the one that has the unit."""
    now = datetime.now(UTC)
    counts, later = UnitCounts(), now + timedelta(hours=1)
    counts.merge_fleet([Unit("A1", "D0", "available", now, now, "cad")])
    hour, second = timedelta(hours=1), timedelta(seconds=1)
    counts.promises = Promises([
        Promise("new", "A1", "accepted", "new", now, now + second, later),
        Promise("old", "A1", "sent", "old", now, now - hour, later),
    ])  # fmt: skip
    (row,) = counts.fleet_rows(120.0)
    assert row["promised"]["call_id"] == "new"


def test_an_entry_told_here_but_followed_already_changes_nothing() -> None:
    """Its row and a later one may be read before its writer hears that it is durable."""
    counts, own, last = UnitCounts(), told(2), told(0)
    counts.follow(own)
    counts.follow(last)
    counts.take(own)
    assert known(counts) == 0


def test_what_was_told_before_the_clock_went_back_replaces_nothing_on_record() -> None:
    now, hour = clock.now(), timedelta(hours=1)
    mine = Unit("A1", "D0", "at_station", now, now, "cad")
    recorded = replace(mine, status="en_route", since=now - hour, status_at=now - hour)
    (later,) = UnitCounts().later([recorded], {"A1": mine})
    assert (later.status, later.since) == ("at_station", mine.status_at)
    ahead = replace(mine, status_at=now + hour)
    assert UnitCounts().later([recorded], {"A1": ahead}) == []


def test_the_course_of_a_unit_that_stands_is_no_direction() -> None:
    """Receivers tell 0, the last one or any while they do not move."""
    unit = Unit("A1", "D0", "available", AT, AT, "cad")
    places = [
        known_unit(replace(unit, seen=Seen(117.2, 21.5, AT, 90.0, speed_kmh)), AT).place
        for speed_kmh in (0.0, 3.0, 40.0, None)
    ]
    assert [place and place[2] for place in places] == [None, None, 90.0, 90.0]

"""News of a unit: newer ones change it, older ones do not, and a clock that jumps loses nothing."""

from datetime import UTC, datetime, timedelta

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.units.unit import News, Seen, Unit

NOW = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def unit(**changes: object) -> Unit:
    values = {
        "station": "D0",
        "status": "at_station",
        "since": NOW,
        "told_at": NOW,
        "source": "cad",
    }
    return Unit(**{"id": "A1", **values, **changes})  # type: ignore[arg-type]


def test_a_new_unit_needs_station_and_status() -> None:
    with pytest.raises(InputError, match="unit A1 is new: give its station and its status"):
        Unit.new(News("A1", NOW, "cad", status="available"))
    made = Unit.new(News("A1", NOW, "cad", station="D0", status="available"))
    assert (made.since, made.told_at, made.free) == (NOW, NOW, True)


def test_what_is_left_out_stays() -> None:
    before = unit(kind="als", seen=Seen(1.0, 2.0, NOW))
    after = before.after(News("A1", at(5), "cad", status="en_route", call_id="c"), at(5))
    assert (after.status, after.since, after.call_id) == ("en_route", at(5), "c")
    assert (after.kind, after.station, after.seen) == ("als", "D0", before.seen)


def test_the_same_status_again_keeps_its_beginning() -> None:
    after = unit().after(News("A1", at(60), "avl", status="at_station"), at(60))
    assert (after.since, after.told_at, after.source) == (NOW, at(60), "avl")
    assert after.same_work(unit())


def test_a_call_ends_with_being_free() -> None:
    busy = unit(status="on_scene", call_id="c")
    assert busy.after(News("A1", at(5), "cad", status="transporting"), at(5)).call_id == "c"
    assert busy.after(News("A1", at(5), "cad", status="available"), at(5)).call_id is None


def test_older_news_change_nothing() -> None:
    before = unit(seen=Seen(1.0, 2.0, NOW))
    old = News("A1", at(-5), "avl", status="available", seen=Seen(9.0, 9.0, at(-5)))
    assert before.after(old, NOW) is before


def test_a_status_that_was_confirmed_since_is_newer() -> None:
    before = unit(status="en_route", since=at(-300), told_at=at(-300), call_id="c")
    again = before.after(News("A1", NOW, "avl", status="en_route"), NOW)
    old = News("A1", at(-120), "cad", status="at_station")
    assert again.after(old, NOW) is again


def test_only_becoming_free_or_busy_is_a_turn() -> None:
    one = unit(status="available")
    home = one.after(News("A1", at(10), "cad", status="at_station"), at(10))
    assert (home.since, home.turned_at) == (at(10), NOW)
    gone = home.after(News("A1", at(24), "cad", status="en_route"), at(20))
    assert gone.turned_at == at(20)  # a clock that is ahead does not count


def test_a_late_position_does_not_undo_a_status() -> None:
    before = unit(since=at(10), told_at=at(10), status="en_route", seen=Seen(1.0, 2.0, NOW))
    late = News("A1", at(5), "avl", seen=Seen(3.0, 4.0, at(5)))
    after = before.after(late, at(11))
    assert (after.status, after.since, after.seen) == ("en_route", at(10), late.seen)
    assert after.told_at == at(10)


def test_after_the_clock_went_back_news_count_again() -> None:
    ahead = unit(since=at(3600), told_at=at(3600), seen=Seen(1.0, 2.0, at(3600)))
    news = News("A1", NOW, "cad", status="en_route", seen=Seen(3.0, 4.0, NOW))
    after = ahead.after(news, NOW)
    assert (after.status, after.since, after.seen) == ("en_route", NOW, news.seen)


def test_two_workers_end_with_the_same() -> None:
    """Work and place are merged apart, whoever is asked."""
    one = unit(since=at(5), status="en_route", told_at=at(5), seen=Seen(1.0, 1.0, at(1)))
    two = unit(since=at(2), status="available", told_at=at(9), seen=Seen(2.0, 2.0, at(9)))
    merged = one.merged(two, at(10))
    assert merged == two.merged(one, at(10))
    assert (merged.status, merged.seen, merged.told_at) == ("en_route", two.seen, at(9))


def test_the_record_holds_the_work_and_no_place() -> None:
    before = unit(seen=Seen(1.0, 2.0, NOW), kind="als", call_id="c", status="on_scene")
    assert "lon" not in str(before.record)
    again = Unit.recorded(before.record, NOW, "cad")
    assert again.record == before.record
    assert again.seen is None
    with pytest.raises(InputError, match="status 'gone' is none"):
        Unit.recorded({**before.record, "status": "gone"}, NOW, "cad")

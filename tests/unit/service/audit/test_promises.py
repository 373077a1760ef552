"""Promises of units, as entries make and settle them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ideal_dispatch.service.audit.promises import DIFFER, LONGEST, SETTLES, Promises
from ideal_dispatch.service.audit.record import Entry
from ideal_dispatch.service.audit.units import DepotUnits
from tests.audit_entries import takes

NOW = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
LIFE = timedelta(minutes=2)


def advice(
    call_id: str,
    *depots: str,
    sent: str | None = None,
    count: int = 1,
    listed: bool = True,
    after: timedelta = timedelta(),
) -> Entry:
    """An answer that takes units: one of each depot, and one that the CAD sent."""
    at = NOW + after
    answer = {
        "asked_at": at.isoformat(), "received_at": at.isoformat(),
        "expires_at": (at + LIFE).isoformat(),
    }  # fmt: skip
    taken = takes(*depots, sent=sent, count=count, listed=listed)
    return Entry("recommendation", call_id, {"answer": answer, "takes": taken}, at=at)


def response(to: Entry, action: str, after: timedelta = timedelta(seconds=10)) -> Entry:
    body = {"recommendation_id": to.id, "response": {"action": action}}
    return Entry("response", to.call_id, body, at=NOW + after)


def known(*entries: Entry) -> Promises:
    promises = Promises()
    for entry in entries:
        promises.take(entry)
    return promises


def held(
    promises: Promises,
    after: timedelta = timedelta(minutes=1),
    told: timedelta | None = None,
    listed: bool = False,
) -> dict[str, list[str]]:
    """What another call must leave alone so long after; all counts were told at one moment."""
    told_at = {} if told is None else {f"D{n}": NOW + told for n in range(3)}
    return promises.held("another", told_at, listed, NOW + after)


@pytest.mark.parametrize("listed", [False, True])
def test_an_advised_unit_is_promised_until_the_advice_expires(listed: bool) -> None:
    promises = known(advice("a", "D1"))
    assert held(promises, listed=listed) == {"D1": ["a"]}
    assert held(promises, told=timedelta(seconds=30), listed=listed) == {"D1": ["a"]}  # no news
    assert held(promises, LIFE, listed=listed) == {}
    assert promises.held("a", {}, listed, NOW) == {}  # one's own


def test_a_refused_unit_is_free_and_the_last_response_counts() -> None:
    first = advice("a", "D1")
    promises = known(first, response(first, "override"))
    assert held(promises) == {}
    promises.take(response(first, "accept"))
    assert held(promises, LIFE) == {"D1": ["a"]}


def test_an_accepted_unit_is_promised_until_there_is_news_of_its_depot() -> None:
    first = advice("a", "D1")
    promises = known(first, response(first, "accept"))
    hour = timedelta(hours=1)
    assert held(promises, hour) == held(promises, hour, told=-hour) == {"D1": ["a"]}
    assert held(promises, hour, told=timedelta(seconds=9)) == {"D1": ["a"]}
    assert held(promises, hour, told=timedelta(seconds=10)) == {}
    assert held(promises, LONGEST + timedelta(seconds=10)) == {}
    # the CAD lists it as free for a while
    assert held(promises, SETTLES, listed=True) == {"D1": ["a"]}
    assert held(promises, SETTLES + timedelta(seconds=10), listed=True) == {}
    assert held(promises, told=timedelta(seconds=10), listed=True) == {}


def test_a_unit_that_the_cad_sent_is_in_counts_told_before_alone() -> None:
    promises = known(advice("a", sent="D0"))
    hour = timedelta(hours=1)
    assert held(promises, hour, told=-timedelta(seconds=1)) == {"D0": ["a"]}
    assert held(promises, hour, told=timedelta()) == {}
    assert held(promises, listed=True) == {}
    assert held(promises) == {"D0": ["a"]}  # nobody told a count, and nobody will
    assert held(promises, LIFE) == {}


def test_a_revision_releases_what_was_advised_before_and_keeps_what_is_under_way() -> None:
    first, later = advice("a", "D1"), timedelta(seconds=20)
    assert held(known(first, advice("a", "D2", after=later))) == {"D2": ["a"]}
    assert held(known(first, advice("a", after=later))) == {}
    accepted = known(first, response(first, "accept"))
    accepted.take(advice("a", "D2", after=later))
    assert held(accepted) == {"D1": ["a"], "D2": ["a"]}
    again = advice("a", "D1", after=2 * later)
    accepted.take(again)
    assert held(accepted, LIFE * 2) == {"D1": ["a"]}  # the same unit
    accepted.take(response(again, "override", 3 * later))
    assert held(accepted) == {}


def test_a_primary_that_was_accepted_and_then_sent_is_one_unit() -> None:
    first, later = advice("a", "D0", "D1", listed=False), timedelta(seconds=20)
    promises = known(first, response(first, "accept"))
    for revision in (1, 2):
        promises.take(advice("a", "D1", sent="D0", listed=False, after=revision * later))
        assert held(promises, told=timedelta(seconds=5)) == {"D0": ["a"], "D1": ["a"]}
    second = advice("b", "D0", sent="D0")  # two units: the one accepted here is not the primary
    promises = known(second, response(second, "accept"))
    promises.take(advice("b", sent="D0", after=later))
    assert held(promises) == {"D0": ["b", "b"]}


def test_units_that_are_under_way_to_a_call_do_not_keep_it_from_a_revision() -> None:
    first = advice("a", "D1", "D1", count=2)
    promises, later = known(first, response(first, "accept")), timedelta(seconds=20)
    assert promises.short(advice("a", "D1", after=later), {}, NOW + later) == {}


def test_what_a_clock_that_went_back_promised_does_not_hold() -> None:
    day = timedelta(days=1)
    first = advice("a", "D1", sent="D0", after=day)
    accepted = known(first, response(first, "accept", day))
    for promises in (known(first), accepted):
        assert held(promises, day - DIFFER, told=timedelta())["D1"] == ["a"]
        assert held(promises, day / 2, told=timedelta()) == {}
    revised = advice("a", "D1")  # asked later than the first, by its own account
    revised.body["answer"]["asked_at"] = (NOW + day).isoformat()
    assert held(known(first, revised)) == {"D1": ["a"]}


def test_of_two_responses_the_later_one_counts_whichever_comes_first() -> None:
    first, earlier = advice("a", "D1"), timedelta(seconds=5)
    promises = known(first, response(first, "accept"), response(first, "override", earlier))
    assert held(promises) == {"D1": ["a"]}
    promises = known(first, response(first, "override"), response(first, "accept", earlier))
    assert held(promises) == {}


def test_what_the_table_knew_before_replaces_nothing_newer() -> None:
    first = advice("a", "D1")
    revised = known(first, advice("a", "D2", after=timedelta(seconds=2)))
    revised.merge(known(first))
    assert held(revised) == {"D2": ["a"]}
    accepted = known(first, response(first, "accept"))
    accepted.merge(known(first))
    assert held(accepted, LIFE) == {"D1": ["a"]}
    promises = known(first)
    promises.merge(accepted)
    assert held(promises, LIFE) == {"D1": ["a"]}


def test_an_answer_to_an_older_question_changes_nothing() -> None:
    newer, older = advice("a", "D2", after=timedelta(seconds=5)), advice("a", "D1")
    assert held(known(newer, older)) == {"D2": ["a"]}


def test_the_last_unit_is_promised_once() -> None:
    promises = known(advice("a", "D1"))
    told = {"D1": DepotUnits("D1", 1, NOW)}
    assert promises.short(advice("b", "D1"), {}, NOW) == {"D1": ["a"]}
    assert promises.short(advice("b", "D1", listed=False), told, NOW) == {"D1": ["a"]}
    assert promises.short(advice("b", "D1", count=2), told, NOW) == {}
    assert promises.short(advice("b", "D1"), {}, NOW + LIFE) == {}
    assert promises.short(advice("a", "D1"), told, NOW) == {}  # its own
    assert promises.short(advice("b", "D2", "D2"), {}, NOW) == {"D2": []}  # has one, needs two
    both = advice("b", "D1", sent="D1", listed=False, after=timedelta(seconds=1))
    assert Promises().short(both, told, NOW) == {"D1": []}  # the last one is its primary


def test_entries_that_make_no_sense_change_nothing(caplog: pytest.LogCaptureFixture) -> None:
    taken: dict[str, Any] = {"advised": ["D1"]}
    promises = known(advice("a", "D1"))
    for body in ({"takes": taken}, {"takes": taken, "answer": {"asked_at": "never"}}):
        promises.take(Entry("recommendation", "a", body, at=NOW))
    promises.take(Entry("response", "a", {}, at=NOW))
    assert caplog.text.count("changes no promises") == 3
    assert held(promises) == {"D1": ["a"]}


def test_an_entry_that_was_read_and_answered_while_it_was_tried_is_not_taken_again() -> None:
    first, promises = advice("a", "D1"), Promises()
    with promises.trying(first):
        assert held(promises) == {"D1": ["a"]}
        promises.take(first)
        promises.take(response(first, "override"))
    assert held(promises) == {}


def test_what_ended_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    promises = known(advice("a", "D1"), advice("b", sent="D0"), advice("c", "D2"))
    promises.forget(NOW + LIFE)
    assert [one.call_id for one in promises] == ["b"]
    monkeypatch.setattr("ideal_dispatch.service.audit.promises._MOST", 1)
    promises.take(advice("d", "D2"))
    promises.forget(NOW)
    assert [one.call_id for one in promises] == ["d"]

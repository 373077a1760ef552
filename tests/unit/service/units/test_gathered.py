"""News between two lists: every change in its order, the last place of each unit."""

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.units.gathered import Gathered, Item


def news(unit: str, second: int, lon: float | None = None, **more: Any) -> dict[str, Any]:
    place = {} if lon is None else {"lon": lon, "lat": 21.5}
    return {"id": unit, "at": f"2026-03-01T08:00:{second:02d}.000Z", **place, **more}


def sent(gathered: Gathered) -> list[dict[str, Any]]:
    items = gathered.hand_out()
    gathered.back()
    return [item.news for item in items]


def gather(*told: dict[str, Any], **limits: int) -> Gathered:
    gathered = Gathered(**limits)
    for one in told:
        gathered.take(one)
    return gathered


def test_the_last_place_counts() -> None:
    gathered = gather(news("A", 1, 117.1), news("B", 1, 117.5), news("A", 2, 117.2))
    assert sent(gathered) == [news("A", 2, 117.2), news("B", 1, 117.5)]
    assert sent(gathered) == []


def test_a_place_that_comes_late_replaces_no_newer_one() -> None:
    assert sent(gather(news("A", 2, 117.2), news("A", 1, 117.1))) == [news("A", 2, 117.2)]


def test_two_statuses_within_a_second_are_two_items_in_their_order() -> None:
    first, second = news("A", 1, 117.1, status="3"), news("A", 1, 117.2, status="4")
    assert sent(gather(first, second)) == [first, second]


def test_a_repeated_status_is_no_change() -> None:
    """Some feeds say the status with every place."""
    told = [news("A", n, 117 + n / 10, status="3") for n in range(5)]
    assert sent(gather(*told)) == [told[0], told[-1]]


def test_a_change_comes_before_a_later_place_and_replaces_an_older_one() -> None:
    gathered = gather(
        news("A", 1, 117.1), news("A", 2, 117.2, status="3"), news("A", 3, 117.3)
    )  # fmt: skip
    assert sent(gathered) == [news("A", 2, 117.2, status="3"), news("A", 3, 117.3)]


def test_a_status_without_a_place_takes_no_place_away() -> None:
    gathered = gather(news("A", 1, 117.1), news("A", 2, status="3"))
    assert sent(gathered) == [news("A", 2, status="3"), news("A", 1, 117.1)]


@pytest.mark.parametrize("field", ["status", "station", "kind", "call_id"])
def test_what_counts_as_a_change(field: str) -> None:
    told = [{**news("A", second), field: value} for second, value in enumerate("xyyy")]
    gathered = gather(*told)
    assert [item.change for item in gathered.hand_out()] == [True, True, False]


def test_what_could_not_be_sent_comes_before_what_came_meanwhile() -> None:
    gathered = gather(news("A", 1, status="3"), news("A", 1, 117.1), news("B", 1, 117.5))
    items = gathered.hand_out()
    gathered.take(news("A", 2, status="4"))
    gathered.take(news("A", 2, 117.2))
    gathered.back(items)
    assert sent(gathered) == [
        news("A", 1, status="3"), news("A", 2, status="4"), news("A", 2, 117.2),
        news("B", 1, 117.5),
    ]  # fmt: skip


def test_the_oldest_changes_are_lost_and_counted() -> None:
    told = [news("A", n, status=str(n)) for n in range(6)]
    gathered = gather(*told[:4], changes=3)
    assert gathered.lost == 1
    items = gathered.hand_out()
    gathered.take(told[4])
    gathered.take(told[5])
    gathered.back(items)
    assert gathered.lost == 3
    assert sent(gathered) == told[3:]


def test_who_can_wait_loses_nothing() -> None:
    """Also while a list is on its way that may come back."""
    gathered = Gathered(changes=2)
    told = [news("A", n, status=str(n)) for n in range(20)]

    def read() -> None:
        for one in told:
            gathered.take(one, wait=True)

    reading = threading.Thread(target=read)
    reading.start()
    found: list[dict[str, Any]] = []
    fails = True
    while reading.is_alive() or len(found) < len(told):
        items = gathered.hand_out()
        assert len(items) <= 2
        gathered.back(items if fails else ())
        found += [] if fails else [item.news for item in items]
        fails = not fails
    reading.join()
    assert found == told
    assert gathered.lost == 0


def test_units_have_a_limit() -> None:
    gathered = gather(news("A", 1, 117.1), news("B", 1, 117.1), units=2)
    with pytest.raises(InputError, match="unit 'C' is one more than 2 units"):
        gathered.take(news("C", 1, 117.1))
    gathered.take(news("A", 2, 117.2))
    assert gathered.units == 2


STEPS = st.lists(
    st.tuples(st.sampled_from("AB"), st.sampled_from([None, "3", "4"]), st.booleans())
    | st.sampled_from(["sent", "away"]),
    max_size=40,
)


@given(STEPS)
def test_every_change_arrives_once_in_order_and_the_last_place_too(steps: list[Any]) -> None:
    gathered, arrived = Gathered(), list[dict[str, Any]]()
    changes: dict[str, list[str]] = {"A": [], "B": []}
    last: dict[str, dict[str, Any]] = {}
    for second, step in enumerate([*steps, "sent"]):
        if step == "sent":
            arrived += sent(gathered)
        elif step == "away":
            gathered.back(gathered.hand_out())
        else:
            unit, status, placed = step
            one = news(unit, second, 117 + second / 100 if placed else None)
            if status is not None:
                one["status"] = status
                if changes[unit][-1:] != [status]:
                    changes[unit].append(status)
            last = {**last, unit: one} if placed else last
            gathered.take(one)
    for unit, expected in changes.items():
        statuses = [(one["at"], one["status"]) for one in arrived
                    if one["id"] == unit and "status" in one]  # fmt: skip
        found: list[str] = []
        for _, status in sorted(statuses):
            found += [status] if found[-1:] != [status] else []
        assert found == expected
        places = [one for one in arrived if one["id"] == unit and "lon" in one]
        assert max(places, key=lambda one: str(one["at"]), default=None) == last.get(unit)


def test_an_item_says_whether_it_is_a_change() -> None:
    gathered = gather(news("A", 1, status="3"), news("A", 2, 117.1))
    assert gathered.hand_out() == [
        Item(news("A", 1, status="3"), True), Item(news("A", 2, 117.1), False),
    ]  # fmt: skip

"""Where the ambulances of a call start, by what is known of units."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.dispatch import Readiness
from ideal_dispatch.service.clock import SECOND
from ideal_dispatch.service.deciding.assets import load_assets
from ideal_dispatch.service.deciding.starts import NoAdviceError, UnitStarts
from ideal_dispatch.service.units import Unit
from tests.unit.dispatch.worlds import depots
from tests.unit.service.deciding.conftest import NOW, SmallCity


class Reader:
    """Reads starts, and keeps the codes of the reasons."""

    def __init__(self, city: SmallCity) -> None:
        self.city, self.codes, self.assumed = city, list[str](), False
        settings = city.settings(units={"candidates": 3, "position_stale_s": 120.0})
        self.assets = replace(load_assets(settings), depots={one.name: one for one in depots(2)})

    def __call__(self, *units: Unit, closed: tuple[int, ...] = (), **call: Any) -> Readiness:
        asked = self.city.call(**call)
        starts = UnitStarts(self.assets, NOW, asked.location, frozenset(closed))
        found, self.assumed = starts.read(asked, units)
        self.codes = [code for code, _ in starts.reasons]
        return found


@pytest.fixture
def read(city: SmallCity) -> Reader:
    return Reader(city)


def ids(starts: Readiness) -> list[list[str]]:
    assert starts.ids is not None
    return [list(each) for each in starts.ids]


def test_free_units_start_at_their_depots_or_where_they_were_seen(
    read: Reader, city: SmallCity
) -> None:
    found = read(
        city.unit("A1"),
        city.unit("A2", node=40, ago_s=10.0),
        city.unit("A3", node=40, ago_s=10.0, status="on_scene"),
        city.unit("A4", "D1", status="available"),  # it never reports its position
        city.unit("#1", "D1", anonymous=True),
        city.unit("A5", node=40, status="at_station"),  # its receiver drifts
    )
    assert ids(found) == [["A1", "A5"], ["#1", "A4"], ["A2"]]
    assert (found.depots[2].on_road, found.depots[2].home) == (True, "D0")
    assert read.codes == []


def test_a_unit_that_was_seen_too_long_ago_counts_as_at_its_depot(
    read: Reader, city: SmallCity
) -> None:
    found = read(city.unit("A0", node=40, ago_s=121.0), city.unit("A1"))
    assert ids(found) == [["A1", "A0"], []]
    assert read.codes == ["position_stale"]
    read(city.unit("A0", node=40, ago_s=121.0, status="at_station"))
    assert read.codes == []


def test_units_that_other_calls_hold_are_not_free(read: Reader, city: SmallCity) -> None:
    def promised(call_id: str, until_s: float) -> Unit:
        until = NOW + round(until_s * SECOND)
        return city.unit(promised_to=call_id, promise="advised", promised_until=until)

    found = read(promised("other", 10.0))
    assert (ids(found), read.codes) == ([[], []], ["last_unit_promised"])
    for held in (promised("c", 10.0), promised("other", -10.0)):
        found = read(held)
        assert (ids(found), read.codes) == ([["A1"], []], [])


def test_of_units_on_the_road_the_nearest_are_considered(read: Reader, city: SmallCity) -> None:
    found = read(*(city.unit(f"A{node}", "D1", node=node) for node in range(20, 27)), node=20)
    assert ids(found)[2:] == [["A20"], ["A21"], ["A22"]]
    assert found.elsewhere == {"D1": 4}


def test_units_that_cannot_be_placed_are_said(read: Reader, city: SmallCity) -> None:
    found = read(city.unit("A1", "D7"), city.unit("A2", node=3, lon=100.0))
    assert ids(found) == [["A2"], []]
    assert sorted(read.codes) == ["position_off_map", "unknown_depot"]


def test_a_depot_has_the_kind_of_the_unit_that_would_go(read: Reader, city: SmallCity) -> None:
    found = read(city.unit("A2", "D1", kind="basic"), city.unit("A1", "D1", kind="advanced"))
    assert [one.kind for one in found.depots] == ["", "advanced"]


def test_a_unit_that_stands_leaves_towards_the_scene(read: Reader, city: SmallCity) -> None:
    edge, grid = 40, city.network
    lon, lat = grid.polyline(edge).mean(axis=0).tolist()
    standing = city.unit(node=0, lon=lon, lat=lat, heading=90.0, speed_kmh=2.0)
    for end in (int(grid.tail[edge]), int(grid.head[edge])):
        found = read(standing, node=end).depots[-1]
        assert (found.node, round(found.ahead, 2)) == (end, 0.5)


def test_a_unit_on_a_closed_road_leaves_it_by_the_nearer_end(read: Reader, city: SmallCity) -> None:
    grid = city.network
    line, ends = grid.polyline(40), (grid.tail[40], grid.head[40])
    lon, lat = (line[0] + 0.25 * (line[-1] - line[0])).tolist()
    unit, scene = city.unit(node=0, lon=lon, lat=lat), int(grid.head[40])
    assert read(unit, node=scene).depots[-1].node == grid.head[40]
    both = np.flatnonzero(np.isin(grid.tail, ends) & np.isin(grid.head, ends)).tolist()
    assert read(unit, node=scene, closed=tuple(both)).depots[-1].node == grid.tail[40]
    assert read.codes == ["closed_road"]


# --- the primary that the CAD named -------------------------------------------------


def test_a_named_unit_that_waits_goes_from_its_depot(read: Reader, city: SmallCity) -> None:
    found = read(
        city.unit("A1", status="dispatched", since_s=30.0), city.unit("A2"), ago_s=90.0,
        primary={"unit": "a1"},
    )  # fmt: skip
    assert (found.sent, found.sent_unit, ids(found)) == (0, "A1", [["A2"], []])
    assert (found.sent_ago_s, found.driven_s) == (30.0, 0.0)
    found = read(city.unit("A1"), ago_s=90.0, primary={"unit": "A1"})
    assert (found.sent_ago_s, found.driven_s) == (90.0, 0.0)
    seen = city.unit("A1", node=1, ago_s=5.0, status="dispatched")  # a block from its depot
    assert read(seen, primary={"unit": "A1"}).sent == 0


@pytest.mark.parametrize(
    ("position", "since_s", "driven_s", "on_road"),
    [
        ({"node": 40, "ago_s": 10.0}, 60.0, 10.0, True),
        ({"node": 40, "ago_s": 100.0}, 60.0, 60.0, True),  # it was seen before it left
        ({"node": 40, "ago_s": 300.0}, 60.0, 60.0, False),
        ({"node": 40, "ago_s": 300.0}, 400.0, 300.0, True),  # it was seen since it left
        ({}, 60.0, 60.0, False),
    ],
)
def test_a_rolling_primary_has_driven_since_it_left_or_was_seen(
    read: Reader, city: SmallCity, position: Any, since_s: float, driven_s: float, on_road: bool
) -> None:
    unit = city.unit(**position, status="en_route", since_s=since_s)
    found = read(unit, city.unit("A2"), ago_s=500.0, primary={"unit": "A1"})
    assert found.sent == 2
    start = found.depots[2]
    assert (start.rolling, start.on_road, start.home) == (True, on_road, "D0")
    assert (found.driven_s, found.sent_ago_s) == (driven_s, 500.0)
    assert not found.depots[0].rolling


def test_the_primary_of_another_call_is_not_on_its_way(read: Reader, city: SmallCity) -> None:
    for status in ("at_station", "available", "en_route", "on_scene"):
        unit = city.unit(node=40, status=status, since_s=60.0, call_id="other")
        found = read(unit, ago_s=20.0, primary={"unit": "A1"})
        assert isinstance(found.sent, int)
        assert not found.depots[found.sent].rolling
        assert (found.driven_s, found.sent_ago_s) == (0.0, 20.0)
        assert read.codes == ["other_call"]


def test_doubts_about_the_primary_are_said(read: Reader, city: SmallCity) -> None:
    held: dict[str, Any] = {
        "promised_to": "other",
        "promise": "accepted",
        "promised_until": NOW + SECOND,
    }
    read(city.unit(**held), primary={"unit": "A1"})
    assert read.codes == ["unit_promised"]
    read(city.unit(status="out_of_service"), primary={"unit": "A1"})
    assert read.codes == ["primary_busy"]
    with pytest.raises(NoAdviceError) as refused:
        read(city.unit(status="on_scene", call_id="c"), primary={"unit": "A1"})
    assert refused.value.code == "primary_arrived"


def test_the_first_free_unit_of_a_named_depot_is_taken(read: Reader, city: SmallCity) -> None:
    for named in ({"depot": "d1"}, {"depot": "D1", "unit": "B7"}):
        found = read(city.unit("A1", "D1"), city.unit("A2", "D1"), primary=named)
        assert (found.sent, found.sent_unit, ids(found)[1]) == (1, "A1", ["A2"])
        assert (read.assumed, read.codes) == (True, ["units_assumed"])
    found = read(city.unit("A1"), primary={"depot": "D1"})
    assert (found.sent, found.sent_unit, read.codes) == (1, "", ["units_assumed"])
    assert not read.assumed


def test_the_unit_that_an_earlier_advice_took_is_taken_again(read: Reader, city: SmallCity) -> None:
    held: dict[str, Any] = {"promised_to": "c", "promised_until": NOW + SECOND}
    second = city.unit("A2", promise="accepted", **held)
    first = city.unit("A3", promise="sent", **held)
    assert read(city.unit("A1"), second, first, primary={"depot": "D0"}).sent_unit == "A3"
    assert ids(read(city.unit("A1"), first))[0] == ["A3", "A1"]


def test_a_unit_of_the_named_depot_that_is_on_the_call_is_the_primary(
    read: Reader, city: SmallCity
) -> None:
    going = city.unit("A2", node=40, status="en_route", call_id="c", since_s=30.0)
    found = read(city.unit("A1"), going, primary={"depot": "D0"})
    assert (found.sent_unit, ids(found)[0], read.codes) == ("A2", ["A1"], [])
    assert not read.assumed


def test_the_primary_is_taken_off_a_count_older_than_the_call(
    read: Reader, city: SmallCity
) -> None:
    count = city.unit("D0 #1", told_at=NOW - 30 * SECOND, anonymous=True)
    found = read(count, ago_s=10.0, primary={"depot": "D0"})
    assert (found.sent_unit, ids(found)[0], read.codes) == ("D0 #1", [], ["units_assumed"])
    found = read(count, ago_s=60.0, primary={"depot": "D0"})
    assert (found.sent, found.sent_unit, ids(found)[0], read.codes) == (0, "", ["D0 #1"], [])


@pytest.mark.parametrize(
    ("primary", "code"),
    [({"unit": "B7"}, "unknown_unit"), ({"depot": "D7"}, "unknown_depot"),
     ({"unit": "A9"}, "unknown_depot")],
)  # fmt: skip
def test_a_primary_that_is_not_known_is_refused(
    read: Reader, city: SmallCity, primary: Any, code: str
) -> None:
    with pytest.raises(NoAdviceError) as refused:
        read(city.unit("A1"), city.unit("A9", "D7"), primary=primary)
    assert refused.value.code == code

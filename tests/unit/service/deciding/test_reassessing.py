"""What is said of a running dispatch, without a service around it."""

import itertools
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.context import Weather
from ideal_dispatch.service.deciding.assets import Assets, Closed, load_assets
from ideal_dispatch.service.deciding.engine import Picture
from ideal_dispatch.service.deciding.live_traffic import RouterLive
from ideal_dispatch.service.deciding.reassessing import Followed, FollowedUnit, looked_at
from ideal_dispatch.service.deciding.weather import KnownWeather
from ideal_dispatch.service.units import Unit
from tests.unit.service.deciding.conftest import NOW, SCENE, SmallCity


class Unasked:
    """A live router that nobody may ask."""

    def quote(self, *_: Any) -> Any:
        raise AssertionError("asked")


@pytest.fixture(scope="module")
def assets(city: SmallCity) -> Assets:
    return load_assets(city.settings(traffic={"kind": "forecast"}))


@pytest.fixture(scope="module")
def closed(city: SmallCity) -> tuple[Closed, ...]:
    """All roads to the scene."""
    return (Closed("x", "", tuple(np.flatnonzero(city.network.head == SCENE).tolist())),)


def going(
    city: SmallCity, name: str, node: int | None = None, ago_s: float = 0.0, state: Any = "en_route"
) -> FollowedUnit:
    """A unit that was sent a minute ago, and left then if it is en route."""
    status = "en_route" if state == "en_route" else "dispatched"
    seen: dict[str, Any] = {} if node is None else {"node": node, "ago_s": ago_s}
    return FollowedUnit(city.unit(name, **seen, status=status, since_s=60.0), state, 60.0)


def said(
    assets: Assets,
    city: SmallCity,
    first: FollowedUnit,
    second: FollowedUnit | None,
    closures: tuple[Closed, ...] = (),
    **more: Any,
) -> dict[str, Any]:
    followed = Followed("c", city.place(SCENE), first, second, **more)
    found = looked_at(assets, followed, closures, Weather(), NOW)
    assert found is not None
    return found


def codes(found: dict[str, Any]) -> list[str]:
    return [one["code"] for one in found["said"]["reasons"]]


def test_only_closed_roads_lead_there(
    assets: Assets, city: SmallCity, closed: tuple[Closed, ...]
) -> None:
    """They are driven then; but a unit that need not do so, at the scene by chance, is proposed."""
    both = going(city, "A1", 0), going(city, "A2", 11)
    before = said(assets, city, *both)
    outside, inside = city.unit("A3", node=108), city.unit("A4", node=SCENE)
    found = said(assets, city, *both, closed, free=(outside,))
    assert found["said"]["advice"] == before["said"]["advice"] == "keep"
    assert codes(found) == [*codes(before), "behind_closed_roads"]
    assert found["said"]["first_s"] == pytest.approx(before["said"]["first_s"], rel=0.01)
    assert found["said"]["second"]["unit"] == "A2"
    found = said(assets, city, *both, closed, free=(outside, inside))
    assert (found["said"]["advice"], found["said"]["second"]["unit"]) == ("send_one", "A4")


def test_a_second_that_does_not_get_there_is_as_one_that_broke_down(
    assets: Assets, city: SmallCity, closed: tuple[Closed, ...]
) -> None:
    both = going(city, "A1", SCENE), going(city, "A2", 11)
    found = said(assets, city, *both, closed)
    assert (found["said"]["advice"], codes(found)) == ("keep", ["second_lost"])
    assert found["said"]["first_s"] > 0.0


def test_a_first_that_arrived_is_there_although_no_road_leads_there_any_more(
    assets: Assets, city: SmallCity, closed: tuple[Closed, ...]
) -> None:
    both = going(city, "A1", state="arrived"), going(city, "A2", 11)
    found = said(assets, city, *both, closed, free=(city.unit("A4", node=SCENE),))
    assert (found["said"]["advice"], codes(found)) == ("stand_down", ["first_arrived"])


def test_the_unit_that_arrives_first_is_proposed(assets: Assets, city: SmallCity) -> None:
    lost = going(city, "A1", state="lost")
    node = int(city.network.tail[np.flatnonzero(city.network.head == SCENE)[0]])
    near, home = city.unit("A3", node=node), city.unit("A2", "D2")
    found = said(assets, city, lost, None, free=(home, near))
    assert (found["said"]["advice"], found["said"]["second"]["unit"]) == ("send_one", "A3")
    found = said(assets, city, lost, None)
    assert found["said"]["second"] is None


def test_units_that_were_seen_too_long_ago_are_said(assets: Assets, city: SmallCity) -> None:
    def unseen(first: FollowedUnit, second: FollowedUnit | None, *free: Unit) -> list[str]:
        found = said(assets, city, first, second, free=free)
        late = [one for one in found["said"]["reasons"] if one["code"].endswith("_not_seen")]
        assert all(one["values"] == {"minutes": 10} for one in late)
        return [one["code"] for one in late]

    new, old = going(city, "A1", 11), going(city, "A2", 11, 600.0)
    assert unseen(new, going(city, "A3", 11)) == []
    assert unseen(new, old) == ["second_not_seen"]
    assert unseen(old, old) == ["first_not_seen", "second_not_seen"]
    assert unseen(new, going(city, "A2", 11, 600.0, "waiting")) == []  # it is at its depot
    assert unseen(new, None, city.unit("A3", node=11, ago_s=600.0)) == ["other_not_seen"]
    assert unseen(new, None, city.unit("A3", node=11)) == []


def test_arrivals_are_those_of_the_advice(city: SmallCity) -> None:
    """Looked at in the second of the call, the primary arrives when the advice says."""
    adviser = city.adviser(traffic={"kind": "forecast"})
    states: dict[str, Any] = {"dispatched": "waiting", "en_route": "en_route"}
    for seen, status in itertools.product(({}, {"node": 40, "ago_s": 50.0}), states):
        unit = city.unit("A1", **{**seen, "status": status, "since_s": 20.0})
        call, picture = city.call(primary={"unit": "A1"}), Picture(NOW, (unit, *city.fleet))
        made = adviser.advise(call, picture, KnownWeather(), time.monotonic() + 60.0)
        first = FollowedUnit(unit, states[status], 20.0)
        found = said(adviser.assets, city, first, None)["said"]["first_s"]
        assert made.fields["primary"]["arrival"]["expected_s"] == pytest.approx(found, abs=0.06)


def test_following_takes_the_router_s_times_at_the_call(assets: Assets, city: SmallCity) -> None:
    """Each unit has its own ratio, one that the router was not asked about that of both."""
    routed = RouterLive(assets.model, Unasked())
    own = replace(assets, traffic=routed)
    traffic = {
        "A1": {"router_s": 300.0, "forecast_s": 100.0},
        "A2": {"router_s": 50.0, "forecast_s": 100.0},
    }
    for node in range(0, SCENE, 5):
        both = going(city, "A1", node), going(city, "A2", 119 - node)
        alone = said(own, city, *both)["said"]
        found = said(own, city, *both, traffic=traffic)["said"]
        assert alone["first_s"] == said(assets, city, *both)["said"]["first_s"]
        assert found["first_s"] == pytest.approx(max(3.0 * alone["first_s"], 1.0))
        assert found["second_s"] <= alone["second_s"]
    first, other = going(city, "A1", 0), city.unit("A3", node=108)
    slower = said(own, city, first, None, free=(other,), traffic=traffic)["said"]
    alone = said(own, city, first, None, free=(other,))["said"]
    assert slower["second"]["unit"] == "A3"
    assert slower["second_s"] > alone["second_s"]


def test_where_units_were_taken_to_be_goes_with_it(assets: Assets, city: SmallCity) -> None:
    def place(node: int) -> dict[str, float]:
        at = city.place(node)
        return {"lon": at.lon, "lat": at.lat}

    home = {**place(0), "on_road": False, "age_s": None}
    both = going(city, "A1", SCENE, 7.0), going(city, "A2", 11, 600.0)
    found = said(assets, city, *both)
    assert found["starts"] == [
        {"unit": "A1", "depot": "D0", "state": "en_route",
         "start": {**place(SCENE), "on_road": True, "age_s": 7.0}},
        {"unit": "A2", "depot": "D0", "state": "en_route", "start": home},  # before it left
    ]  # fmt: skip
    alone = said(assets, city, going(city, "A1", state="waiting"), None)
    assert [one["start"] for one in alone["starts"]] == [home]


def test_a_dispatch_that_cannot_be_placed_is_left_alone(assets: Assets, city: SmallCity) -> None:
    lost = replace(going(city, "A1").unit, depot="D7")
    followed = Followed("c", city.place(SCENE), FollowedUnit(lost, "waiting", 60.0), None)
    assert looked_at(assets, followed, (), Weather(), NOW) is None


def test_with_a_fleet_the_absence_that_is_left_is_priced(city: SmallCity) -> None:
    fleet = {"units": dict.fromkeys(("D0", "D1", "D2"), 3), "calls_per_day": 60,
             "recall": "worth"}  # fmt: skip
    settings = city.settings(traffic={"kind": "forecast"}, fleet=fleet)
    own = load_assets(settings)
    both = going(city, "A1", 0), going(city, "A2", 11)
    dear = said(own, city, *both)["said"]["cost"]
    cheap = said(own, city, *both, free=city.fleet)["said"]["cost"]
    assert dear > cheap > 0.0
    plain = load_assets(city.settings(traffic={"kind": "forecast"}))
    found = said(plain, city, *both, cost_lives=0.002, hold_s=600.0)["said"]
    assert 0.0 < found["cost"] < 0.002
    assert said(plain, city, *both)["said"]["cost"] == 0.0


def test_what_was_said_before_counts(assets: Assets, city: SmallCity) -> None:
    last = {"advice": "stand_down", "at_s": 50.0, "changes": 3, "changed_s": 50.0}
    found = said(assets, city, going(city, "A1", 0), None, last=last)["said"]
    assert (found["advice"], found["changes"], found["at_s"]) == ("stand_down", 3, 60.0)

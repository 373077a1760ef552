"""What a solver says of a running dispatch, without a service around it."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.context import Weather
from ideal_dispatch.dispatch.forecast_router import ForecastRouter
from ideal_dispatch.service.solver.assets import Assets, load_assets
from ideal_dispatch.service.solver.live_traffic import LiveTraffic, RouterLive
from ideal_dispatch.service.solver.messages import (
    Closed,
    Followed,
    FollowedUnit,
    KnownUnit,
    Scene,
)
from ideal_dispatch.service.solver.reassessing import Reassesser
from ideal_dispatch.service.solver.solver import Solver
from ideal_dispatch.traffic.source import RouteQuote
from tests.service_town import Town

SCENE = 65


class CountingRouter:
    """A live router that says ``times`` what the model forecasts now, and counts its questions."""

    def __init__(self, live: LiveTraffic, times: float = 2.0) -> None:
        self._live, self.times, self.asked = live, times, 0

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        self.asked += 1
        context = self._live.calendar.context(at, Weather())
        said = ForecastRouter(self._live.model, self._live.network, context)
        quote = said.quote(origin, destination, at)
        return replace(quote, duration_s=self.times * quote.duration_s, fell_back="")


def with_router(assets: Assets) -> tuple[Assets, CountingRouter]:
    """The same city with a live router."""
    live = assets.traffic
    router = CountingRouter(live)
    return replace(
        assets, traffic=RouterLive(live.network, live.calendar, live.model, router)
    ), router


@pytest.fixture(scope="module")
def reassesser(town: Town) -> Reassesser:
    settings = town.settings("reassessing.toml", traffic={"kind": "forecast"})
    return Solver(settings, load_assets(settings)).reassesser


@pytest.fixture(scope="module")
def closed(town: Town) -> tuple[Closed, ...]:
    """All roads to the scene."""
    return (Closed("x", "", tuple(np.flatnonzero(town.network.head == SCENE).tolist())),)


def unit(town: Town, id: str, node: int | None = None, age_s: float = 0.0) -> KnownUnit:  # noqa: A002
    """A unit of D0, at its station or seen at a node so long ago."""
    if node is None:
        return KnownUnit(id, "D0")
    at = town.place(node)
    return KnownUnit(id, "D0", place=(at["lon"], at["lat"], None), age_s=age_s)


def going(one: KnownUnit, state: Any = "en_route") -> FollowedUnit:
    return FollowedUnit(one, state, 60.0, 60.0)


def followed(town: Town, first: FollowedUnit, second: FollowedUnit | None, **more: Any) -> Followed:
    return Followed("c", Scene(**town.place(SCENE)), 60.0, first, second, {}, **more)


def said(reassesser: Reassesser, dispatch: Followed) -> dict[str, Any]:
    found = reassesser.reassess(dispatch, Weather())
    assert found is not None
    told: dict[str, Any] = found["said"]
    return told


def codes(found: dict[str, Any]) -> list[str]:
    return [one["code"] for one in found["reasons"]]


def test_only_closed_roads_lead_there(
    reassesser: Reassesser, town: Town, closed: tuple[Closed, ...]
) -> None:
    """They are driven then; but a unit that need not do so, at the scene by chance, is proposed."""
    both = going(unit(town, "A1", 0)), going(unit(town, "A2", 11))
    before = said(reassesser, followed(town, *both))
    outside = unit(town, "A3", 108)
    found = said(reassesser, followed(town, *both, fleet=(outside,), closures=closed))
    assert found["advice"] == before["advice"] == "keep"
    assert codes(found) == [*codes(before), "behind_closed_roads"]
    assert found["first_s"] == pytest.approx(before["first_s"], rel=0.01)
    assert found["second"]["unit"] == "A2"
    inside = unit(town, "A4", SCENE)
    found = said(reassesser, followed(town, *both, fleet=(outside, inside), closures=closed))
    assert (found["advice"], found["second"]["unit"]) == ("send_one", "A4")


def test_a_second_that_does_not_get_there_is_as_one_that_broke_down(
    reassesser: Reassesser, town: Town, closed: tuple[Closed, ...]
) -> None:
    both = going(unit(town, "A1", SCENE)), going(unit(town, "A2", 11))
    found = said(reassesser, followed(town, *both, closures=closed))
    assert (found["advice"], codes(found)) == ("keep", ["second_lost"])
    assert found["first_s"] > 0.0
    inside = unit(town, "A4", SCENE)
    found = said(reassesser, followed(town, *both, fleet=(inside,), closures=closed))
    assert found["second"]["unit"] == "A4"


def test_a_first_that_arrived_is_there_although_no_road_leads_there_any_more(
    reassesser: Reassesser, town: Town, closed: tuple[Closed, ...]
) -> None:
    both = going(unit(town, "A1"), "arrived"), going(unit(town, "A2", 11))
    found = said(
        reassesser, followed(town, *both, fleet=(unit(town, "A4", SCENE),), closures=closed)
    )
    assert (found["advice"], codes(found)) == ("stand_down", ["first_arrived"])


def test_who_was_seen_too_long_ago_is_said(reassesser: Reassesser, town: Town) -> None:
    new, old = (unit(town, f"A{age_s:.0f}", 11, age_s) for age_s in (1.0, 600.0))
    unseen = ["first_not_seen", "second_not_seen", "other_not_seen"]

    def names(first: FollowedUnit, second: FollowedUnit | None, *fleet: KnownUnit) -> list[str]:
        found = said(reassesser, followed(town, first, second, fleet=fleet))
        assert all(
            one["values"] == {"minutes": 10} for one in found["reasons"] if one["code"] in unseen
        )
        return [code for code in codes(found) if code in unseen]

    assert names(going(new), going(new)) == []
    assert names(going(new), going(old)) == ["second_not_seen"]
    assert names(going(old), going(old)) == ["first_not_seen", "second_not_seen"]
    assert names(going(new), going(old, "waiting")) == []  # it counts as at its station
    assert names(going(new), None, old) == ["other_not_seen"]
    assert names(going(new), None, new) == []


def test_following_asks_no_live_router_and_takes_its_times_at_the_call(
    reassesser: Reassesser, town: Town
) -> None:
    """Each unit has its own ratio, and one that the router was not asked about that of both."""
    settings = town.settings("reassessing.toml", traffic={"kind": "forecast"})
    assets, router = with_router(load_assets(settings))
    live = Solver(settings, assets).reassesser
    traffic = {
        "A1": {"router_s": 300.0, "forecast_s": 100.0},
        "A2": {"router_s": 50.0, "forecast_s": 100.0},
    }
    for node in range(SCENE):  # both drive on, and are seen at each look
        both = going(unit(town, "A1", node)), going(unit(town, "A2", 119 - node))
        alone = said(reassesser, followed(town, *both))
        found = said(live, followed(town, *both, traffic=traffic))
        assert found["first_s"] == pytest.approx(max(3.0 * alone["first_s"], 1.0))
        assert found["second_s"] == pytest.approx(max(0.5 * alone["second_s"], 1.0))
        assert said(live, followed(town, *both))["first_s"] == alone["first_s"]
    first, other = going(unit(town, "A1", 0)), unit(town, "A3", 108)
    drive_s = said(reassesser, followed(town, going(other), None))["first_s"]
    alone = said(reassesser, followed(town, first, None, fleet=(other,)))
    found = said(live, followed(town, first, None, fleet=(other,), traffic=traffic))
    assert found["second"]["unit"] == "A3"
    assert found["second_s"] - alone["second_s"] == pytest.approx(0.75 * drive_s)
    assert router.asked == 0


def test_from_what_it_is_said_goes_with_it(
    reassesser: Reassesser, town: Town, closed: tuple[Closed, ...]
) -> None:
    """Where each unit was taken to be, and of which age that was."""
    old, home = unit(town, "A2", 11, 600.0), unit(town, "A3")
    at_home = {**town.place(0), "on_road": False, "age_s": None}
    both = going(unit(town, "A1", SCENE, 7.0)), going(old)
    found = reassesser.reassess(followed(town, *both), Weather())
    assert found is not None
    assert found["starts"] == [
        {"unit": "A1", "depot": "D0", "state": "en_route",
         "start": {**town.place(SCENE), "on_road": True, "age_s": 7.0}},
        {"unit": "A2", "depot": "D0", "state": "en_route",
         "start": {**town.place(11), "on_road": True, "age_s": 600.0}},
    ]  # fmt: skip
    assert (found["closures"], set(found["versions"])) == (
        [],
        {"model", "network", "depots", "gain"},
    )
    other = reassesser.reassess(
        followed(town, going(home, "waiting"), None, fleet=(old,)), Weather()
    )
    assert other is not None
    assert [one["start"] for one in other["starts"]] == [at_home, at_home]  # it was not seen lately
    nobody = reassesser.reassess(followed(town, *both[1:], None, closures=closed), Weather())
    assert nobody is not None
    assert (len(nobody["starts"]), nobody["closures"]) == (1, ["x"])

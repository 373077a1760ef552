"""Closed roads in a solver: from a drawing to edges, and what calls are told."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.context import Weather
from ideal_dispatch.dispatch import Incident, Readiness
from ideal_dispatch.errors import UnreachableError
from ideal_dispatch.service.http.schemas import RecommendationRequest
from ideal_dispatch.service.solver.adviser import Adviser
from ideal_dispatch.service.solver.assets import load_assets
from ideal_dispatch.service.solver.case import Case
from ideal_dispatch.service.solver.closures import Roads
from ideal_dispatch.service.solver.live_traffic import LiveTraffic, RouterLive
from ideal_dispatch.service.solver.messages import Closed, KnownUnits, KnownWeather
from ideal_dispatch.traffic.source import RouteQuote
from tests.service_town import Town, codes
from tests.unit.dispatch.worlds import CALENDAR, depots, random_model, world

Advise = Callable[..., dict[str, Any]]


def test_the_open_network_is_made_once_for_the_same_closures(grid: RoadNetwork) -> None:
    roads = Roads(grid)
    assert roads.open(()) is grid
    made = roads.open((Closed("a", "", (3,)), Closed("b", "", (3, 5))))
    assert made.closed == (3, 5)
    assert roads.open((Closed("a", "", (3,)), Closed("b", "", (3, 5)))) is made
    assert roads.open(()).closed == ()


# --- advice -----------------------------------------------------------------------


@pytest.fixture(scope="module", params=["recorded", "forecast"])
def adviser(request: pytest.FixtureRequest, town: Town) -> Adviser:
    settings = town.settings("closed.toml", traffic={"kind": request.param})
    assets = load_assets(settings)
    assets.traffic.prepare()
    return Adviser(assets, settings)


@pytest.fixture
def advise(adviser: Adviser, town: Town) -> Advise:
    def asked(*closures: Closed, node: int = 65, **changes: Any) -> dict[str, Any]:
        request = RecommendationRequest.model_validate(town.call("x", node, **changes)).call()
        call = replace(request, closures=closures)
        due = time.monotonic() + 60.0
        return adviser.advise(call, KnownUnits({}, None), KnownWeather(), due)

    return asked


def driven(advice: dict[str, Any]) -> set[int]:
    routes = [advice[who]["route"]["edges"] for who in ("primary", "second") if advice[who]]
    return {edge for edges in routes for edge in edges}


def test_advice_keeps_off_closed_roads_and_names_the_closures(advise: Advise, town: Town) -> None:
    ends = {0, 11, 108, 65}
    network = town.network
    before = advise(threshold_s=0.0)
    assert before["closures"] == []
    closures: list[Closed] = []
    for number in range(4):  # each time, what was advised is closed
        some = [
            edge for edge in driven(advise(*closures, threshold_s=0.0))
            if not {int(network.tail[edge]), int(network.head[edge])} & ends
        ]  # fmt: skip
        closures.append(Closed(f"c{number}", "parade", tuple(sorted(some)[number::2])))
        made = advise(*closures, threshold_s=0.0)
        assert made["decision"] in ("send_second", "primary_only"), made["degraded"]
        assert not driven(made) & {edge for one in closures for edge in one.edges}
        assert made["closures"] == [one.id for one in closures]
        assert "closed_road" not in codes(made)
        assert made["gap"] is not None
    again = advise(threshold_s=0.0)  # opened again
    assert again["primary"]["route"]["edges"] == before["primary"]["route"]["edges"]


def test_an_incident_behind_closed_roads_gets_words_that_name_the_closure(
    advise: Advise, town: Town
) -> None:
    around = tuple(np.flatnonzero(town.network.head == 65).tolist())
    made = advise(Closed("c1", "burst main", around), Closed("c2", "fair", (1,)))
    assert made["decision"] == "no_advice"
    assert made["degraded"][0]["code"] == "unreachable"
    words = "no unit gets to the incident but over closed road (burst main)"
    assert made["degraded"][0]["words"] == words
    assert made["closures"] == ["c1", "c2"]
    made = advise(Closed("c1", "", around), primary={"depot": "D1"})
    words = "the unit of D1 does not get to the incident but over closed road (closure c1)"
    assert made["degraded"][0]["words"] == words


def test_the_depot_that_is_cut_off_is_left_out(advise: Advise, town: Town) -> None:
    around = tuple(np.flatnonzero(town.network.tail == 0).tolist())  # D0 stands there
    made = advise(Closed("c1", "flood", around), threshold_s=0.0)
    assert made["primary"]["depot"] != "D0"
    assert made["second"]["depot"] != "D0"


def test_a_told_path_over_a_closed_road_gets_a_remark(advise: Advise, town: Town) -> None:
    network = town.network
    path = network.shortest_path(network.length_m, 0, 65)
    primary = {"depot": "D0", "edges": path.edges.tolist()}
    closure = Closed("c1", "parade", (int(path.edges[2]),))
    made = advise(closure, primary=primary, threshold_s=0.0)
    assert made["decision"] in ("send_second", "primary_only")
    assert made["primary"]["route"]["edges"] == path.edges.tolist()
    assert made["second"] is None or not set(made["second"]["route"]["edges"]) & {path.edges[2]}
    remark = next(one for one in made["degraded"] if one["code"] == "closed_road")
    words = "the primary's path leads over closed road (parade); it is taken as it was told"
    assert remark["words"] == words
    # also where there is no other way at all
    around = Closed("c2", "flood", tuple(np.flatnonzero(network.head == 65).tolist()))
    made = advise(around, primary=primary, threshold_s=0.0)
    assert "closed_road" in codes(made)
    assert made["decision"] == "primary_only"


# --- routers ----------------------------------------------------------------------


class Stubborn:
    """A router that knows nothing of closures; it answers by a recording."""

    def __init__(self, network: RoadNetwork) -> None:
        self._world = world(network)
        self._at = self._world.recording.stretches[0].start + timedelta(minutes=70)

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        return self._world.quote(origin, destination, self._at)


class Obedient(Stubborn):
    """One that can be told, and finds no way then from some places."""

    def __init__(self, network: RoadNetwork, lost: tuple[int, ...] = ()) -> None:
        super().__init__(network)
        self.told: list[tuple[int, ...]] = []
        self._lost, self._network = lost, network

    def avoiding(self, edges: Any) -> "Obedient":
        self.told.append(tuple(edges))
        made = Obedient(self._network, self._lost)
        made._network = self._network.closing(edges)
        return made

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        if origin in self._lost and self._network.closed:
            raise UnreachableError("no way")
        quote = super().quote(origin, destination, at)
        times = self._network.free_flow_times_s
        return replace(quote, path=self._network.shortest_path(times, origin, destination))


def case(network: RoadNetwork | None) -> Case:
    incident = Incident("x", 65, datetime.now(UTC))
    return Case(incident, Readiness(depots(2), (1, 1)), Weather(), network=network)


def test_a_router_that_drives_over_a_closed_road_is_not_believed(grid: RoadNetwork) -> None:
    router = RouterLive(grid, CALENDAR, random_model(grid), Stubborn(grid))
    seen = router.look(case(None), 20.0)
    assert seen.reasons == ()
    closed = grid.closing([int(seen.quote(1).path.edges[1])])
    found = router.look(case(closed), 20.0)
    words = "the router's way from D1 is over a closed road; the forecast is used"
    assert found.reasons == (("closed_road", words),)
    expected = LiveTraffic(grid, CALENDAR, random_model(grid)).look(case(closed), 0.0)
    for number in (0, 1):
        assert found.quote(number).path == expected.quote(number).path
        assert not set(found.quote(number).path.edges) & set(closed.closed)
    assert router.status == "ready"
    elsewhere = next(
        edge for edge in range(grid.num_edges)
        if all(edge not in seen.quote(number).path.edges for number in (0, 1))
    )  # fmt: skip
    assert router.look(case(grid.closing([elsewhere])), 20.0).reasons == ()
    router.close()


def test_a_router_that_can_be_told_is_told(grid: RoadNetwork) -> None:
    source = Obedient(grid)
    router = RouterLive(grid, CALENDAR, random_model(grid), source)
    seen = router.look(case(None), 20.0)
    assert source.told == []
    closed = grid.closing([int(seen.quote(0).path.edges[1])])
    found = router.look(case(closed), 20.0)
    assert source.told == [closed.closed]
    assert found.reasons == ()
    assert not set(found.quote(0).path.edges) & set(closed.closed)
    lost = RouterLive(grid, CALENDAR, random_model(grid), Obedient(grid, (0,)))
    words = "the router finds no way around closed roads from D0; the forecast is used"
    assert lost.look(case(closed), 20.0).reasons == (("closed_road", words),)
    for one in (router, lost):
        one.close()

"""A city at work, without any service: its calls, its units, and what a dispatcher may do."""

from itertools import islice
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.calls import DAY_S
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.living.city import City, Unit
from ideal_dispatch.living.incidents import Incident, incoming, lasting
from ideal_dispatch.living.plan import Plan
from ideal_dispatch.living.roads import network_of
from tests.unit.living.checks import check_statuses
from tests.unit.living.stand_in import geojson

DEPOTS: list[dict[str, Any]] = [
    {"name": "D0", "lon": 114.0, "lat": 22.0},
    {"name": "D1", "lon": 114.011, "lat": 22.009},
]
EIGHT = 8 * 3600.0


@pytest.fixture(scope="module")
def plan(grid: RoadNetwork) -> Plan:
    facts = {"name": "Gridtown", "depots": DEPOTS}
    return Plan.of(facts, network_of(geojson(grid)), units=4, calls_per_day=400)


class Living:
    """A city and all that it told."""

    def __init__(self, plan: Plan, seed: int = 1) -> None:
        self.news: list[dict[str, Any]] = []
        self.sent: list[Incident] = []
        self.city = City(plan, seed, EIGHT, self._tell, lambda one, at_s: self.sent.append(one))

    def _tell(self, unit: Unit, at_s: float) -> None:
        call_id = None if unit.incident is None else unit.incident.id
        told = {"id": unit.id, "status": unit.status, "call_id": call_id, "at": at_s}
        self.news.append(told | {"place": self.city.seen(unit)[1]})

    def until_sent(self) -> Incident:
        while not self.sent:
            self.city.advance(self.city.next_s)
        return self.sent[0]


def test_same_seed_same_calls(plan: Plan) -> None:
    def calls(seed: int, begins_s: float = EIGHT) -> list[tuple[Any, ...]]:
        some = islice(incoming(plan, seed, begins_s), 50)
        return [(one.id, one.at_s, one.lon, one.lat, one.hospital, one.scene_s) for one in some]

    assert calls(3) == calls(3)
    assert calls(3) != calls(4)
    later = calls(3, EIGHT + 600.0)
    assert later[0] in calls(3)  # whoever begins later misses calls, and no more
    assert all(at_s >= EIGHT + 600.0 for _, at_s, *_ in later)


def test_same_seed_same_day_however_often_one_looks(plan: Plan) -> None:
    one, other = Living(plan), Living(plan)
    one.city.advance(EIGHT + 7200.0)
    for step in range(721):
        other.city.advance(EIGHT + 10.0 * step)
    assert one.news == other.news
    assert len(one.sent) > 20


def test_calls_go_on_in_the_next_year(plan: Plan) -> None:
    begins_s = 365 * DAY_S - 3600.0
    some = list(islice(incoming(plan, 1, begins_s), 100))
    assert len({one.id for one in some}) == 100
    assert np.all(np.diff([one.at_s for one in some]) >= 0.0)
    assert some[-1].at_s > 365 * DAY_S


def test_statuses_come_in_a_possible_order_and_units_work_on_one_call(plan: Plan) -> None:
    living = Living(plan)
    living.city.advance(EIGHT + DAY_S)
    found = check_statuses(living.news)
    assert set(found) == set(living.city.units)
    said = {status for statuses in found.values() for status in statuses}
    assert said == {
        "at_station", "available", "dispatched", "en_route", "on_scene", "transporting",
        "at_hospital",
    }  # fmt: skip
    assert living.city.calls == len(living.sent) + len(living.city.waiting)


def test_the_primary_is_the_free_unit_expected_first(plan: Plan) -> None:
    living = Living(plan)
    incident = living.until_sent()
    assert incident.primary is not None
    away = {
        one["name"]: abs(one["lon"] - incident.lon) + abs(one["lat"] - incident.lat)
        for one in DEPOTS
    }
    assert incident.primary.station.name == min(away, key=lambda name: away[name])


def test_a_second_assists_or_turns_round(plan: Plan) -> None:
    living = Living(plan)
    city, incident = living.city, living.until_sent()
    second = city.nearest(incident)
    assert second is not None
    assert second is not incident.primary
    city.send(second, incident)
    assert (second.status, incident.second) == ("dispatched", second)
    while second.status == "dispatched":
        city.advance(city.next_s)
    assert second.status == "en_route"
    place = city.seen(second)[1]
    city.stand_down(second)
    assert (second.status, second.incident) == ("available", None)
    assert city.seen(second)[1][:2] == pytest.approx(place[:2])  # it turns where it is
    assert second not in incident.units
    city.advance(city.now_s + DAY_S)
    check_statuses(living.news)


def test_a_second_that_is_stood_down_before_it_left_stays_at_its_station(plan: Plan) -> None:
    living = Living(plan)
    incident = living.until_sent()
    second = living.city.nearest(incident)
    assert second is not None
    living.city.send(second, incident)
    living.city.stand_down(second)
    assert second.status == "at_station"
    turn = second.turn
    living.city.advance(living.city.now_s + 600.0)
    moved = [one for one in living.news if one["id"] == second.id][2:]
    assert second.turn == turn or moved[0]["status"] == "dispatched"  # by another call


def edges_driven(living: Living, unit: Unit, status: str) -> set[int]:
    """The edges that a unit is seen on while it has a status; it is looked at every second."""
    found = set[int]()
    while unit.status == status:
        found.add(living.city.seen(unit)[0].edge)
        living.city.advance(living.city.now_s + 1.0)
    return found - {-1}


def test_units_drive_around_closed_roads_from_the_start_or_on_their_way(plan: Plan) -> None:
    def first(closed: list[int], *, late: bool = False) -> set[int]:
        """The edges on which the first unit of the day drives to its call."""
        living = Living(plan)
        living.city.keep_off([] if late else closed)
        unit = living.until_sent().primary
        assert unit is not None
        while unit.status == "dispatched":
            living.city.advance(living.city.next_s)
        living.city.keep_off(closed)
        driven = edges_driven(living, unit, "en_route")
        assert unit.status == "on_scene"
        check_statuses(living.news)
        return driven

    usual = first([])
    assert len(usual) > 3
    closed = [edge for edge in usual if plan.network.tail[edge] not in _depots(plan)][1:2]
    for late in (False, True):
        assert not first(closed, late=late) & set(closed)
    everything = list(range(plan.network.num_edges))
    assert first(everything) == usual  # nobody is left alone
    assert first(everything, late=True) == usual


def _depots(plan: Plan) -> set[int]:
    return {one.node for one in plan.stations}


def test_a_unit_that_closed_roads_cut_off_is_not_the_nearest(plan: Plan) -> None:
    living = Living(plan)
    incident = living.until_sent()
    near = living.city.nearest(incident)
    assert near is not None
    leaving = np.flatnonzero(plan.network.tail == near.station.node).tolist()
    living.city.keep_off(leaving)
    other = living.city.nearest(incident)
    assert other is not None
    assert other.station != near.station
    living.city.keep_off(range(plan.network.num_edges))
    assert living.city.nearest(incident) is near
    living.city.keep_off([])
    assert living.city.nearest(incident) is near


def test_a_day_without_closed_roads_is_that_of_the_seed(plan: Plan) -> None:
    one, other = Living(plan), Living(plan)
    for step in range(10):
        one.city.advance(EIGHT + 360.0 * step)
        one.city.keep_off([])
        other.city.advance(EIGHT + 360.0 * step)
    assert one.news == other.news


def test_calls_wait_where_no_unit_is_free(grid: RoadNetwork) -> None:
    facts = {"name": "Gridtown", "depots": DEPOTS[:1]}
    plan = Plan.of(facts, network_of(geojson(grid)), units=1, calls_per_day=200)
    living = Living(plan)
    living.city.advance(EIGHT + 8 * 3600.0)
    assert living.city.waiting
    taken = [one.at_s for one in living.sent]
    assert len(taken) > 3
    check_statuses(living.news)
    living.city.close()
    asked = len(living.sent)
    living.city.advance(EIGHT + DAY_S)
    assert len(living.sent) == asked


def test_luck_is_that_of_the_compiled_fleet() -> None:
    responses = ResponseModel.published()
    rng = np.random.default_rng(1)
    drawn = np.array([
        lasting(responses, rng.standard_normal(9), role, 80.0, 300.0)
        for role in (0, 1) for _ in range(4000)
    ])  # fmt: skip
    assert drawn.mean(axis=0) == pytest.approx([80.0, 300.0], rel=0.02)
    spread = np.log(drawn).std(axis=0)
    square = np.log1p(responses.drive_spread**2 + (responses.slack_s / 300.0) ** 2)
    assert spread == pytest.approx(
        [responses.turnout.spread, np.sqrt(square + responses.shared**2)], rel=0.05
    )


def test_a_city_without_depots_has_no_units(grid: RoadNetwork) -> None:
    with pytest.raises(InputError, match="a city without them has no units"):
        Plan.of({"name": "Gridtown", "depots": []}, network_of(geojson(grid)))


def test_the_embedded_city_has_its_own_fleet() -> None:
    from ideal_dispatch.cities import harbour_city

    city = harbour_city()
    roads = city.network
    depots = [
        {"name": one.name, "lon": float(roads.lon[one.node]), "lat": float(roads.lat[one.node])}
        for one in city.depots
    ]
    facts = {"name": city.name, "depots": depots}
    plan = Plan.of(facts, network_of(geojson(roads)))
    assert (plan.fleet.num_units, plan.fleet.calls_per_day) == (11, 125.0)
    posts = {one.name: one.depot for one in plan.stations if one.post}
    assert posts["Kelp Point Hospital post"] == "Kelp Point"
    living = Living(plan)
    status = {unit.station.name: unit.status for unit in living.city.units.values()}
    assert status["Kelp Point"] == "at_station"
    assert status["Almery General post"] == "available"  # it waits on the road
    living.city.advance(EIGHT + DAY_S)
    assert "out_of_service" in {one["status"] for one in living.news}  # shifts end
    check_statuses(living.news)

"""A city at work, without any service: its calls, its units, and what a dispatcher may do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.cities import harbour_city
from ideal_dispatch.fleet.calls import DAY_S
from ideal_dispatch.fleet.city import FleetCity
from ideal_dispatch.fleet.inputs.city_files import fleet_for
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.player.city import COMING, FREE, Ambulance, Job, PlayedCall, PlayedCity
from ideal_dispatch.player.roads import Ride, Roads, Spot
from tests.unit.player.checks import DEPOTS, check_statuses, geojson

EIGHT = 8 * 3600.0


class Played:
    """A city of the grid with all that it reported and the calls that got a unit."""

    def __init__(
        self, grid: RoadNetwork, seed: int = 1, begins_s: float = EIGHT, *,
        units: int = 20, calls_per_day: float = 400.0,
    ) -> None:  # fmt: skip
        self.called: list[PlayedCall] = []
        self.roads = Roads(geojson(grid))
        fleet = fleet_for("Gridtown", self.roads.network, DEPOTS, units, calls_per_day)
        self.city = PlayedCity(DEPOTS, self.roads, fleet, seed, begins_s, called=self._noted)

    def _noted(self, call: PlayedCall) -> Job:
        self.called.append(call)
        return iter(())

    @property
    def news(self) -> list[dict[str, Any]]:
        return list(self.city.news)

    def until(self, so: Callable[[], object]) -> None:
        """Let the city live, second by second, until something is so."""
        for _ in range(7200):
            if so():
                return
            self.city.advance(self.city.now_s + 1.0)
        raise AssertionError("it never came to that")

    def pair(self) -> tuple[PlayedCall, Ambulance]:
        """A call with its primary and with a second unit that drives to it."""
        self.until(lambda: self.called)
        call = self.called[0]
        second = self.city.nearest(call)
        assert second is not None
        self.city.send(second, call)
        self.until(lambda: second.status == "en_route")
        return call, second


def test_same_seed_same_calls(grid: RoadNetwork) -> None:
    def calls(seed: int, begins_s: float = EIGHT) -> list[tuple[Any, ...]]:
        played = Played(grid, seed, begins_s)
        played.city.advance(EIGHT + 7200.0)
        return [(one.id, one.at_s, one.node, one.row) for one in played.called]

    assert calls(3) == calls(3)
    assert calls(3) != calls(4)
    later = calls(3, EIGHT + 1800.0)
    assert later
    assert set(later) <= set(calls(3))  # what came before is missed, and no more


def test_same_seed_same_day_however_often_one_looks(grid: RoadNetwork) -> None:
    one, other = Played(grid), Played(grid)
    one.city.advance(EIGHT + 7200.0)
    for step in range(721):
        other.city.advance(EIGHT + 10.0 * step)
        other.city.close_roads([])
    told = [[(row["id"], row["status"], row["at"]) for row in each.news] for each in (one, other)]
    assert [row[:2] for row in told[0]] == [row[:2] for row in told[1]]
    assert [row[2] for row in told[0]] == pytest.approx([row[2] for row in told[1]])


def test_statuses_come_in_a_possible_order_and_units_work_on_one_call(grid: RoadNetwork) -> None:
    played = Played(grid)
    played.city.advance(EIGHT + DAY_S)
    found = check_statuses(played.news)
    assert set(found) == set(played.city.units)
    assert {status for statuses in found.values() for status in statuses} == {
        "at_station", "available", "dispatched", "en_route", "on_scene", "transporting",
        "at_hospital",
    }  # fmt: skip
    assert len(played.called) > 100


def test_calls_go_on_in_the_next_year(grid: RoadNetwork) -> None:
    played = Played(grid, begins_s=365 * DAY_S - 3600.0)
    played.city.advance(365 * DAY_S + 7200.0)
    assert len({call.id for call in played.called}) == len(played.called)
    assert played.called[0].at_s < 365 * DAY_S < played.called[-1].at_s


def test_units_never_jump_and_keep_to_the_roads(grid: RoadNetwork) -> None:
    played = Played(grid)
    last: dict[str, tuple[float, float]] = {}
    driven_m = 0.0
    for _ in range(3600):
        played.city.advance(played.city.now_s + 1.0)
        for unit in played.city.units.values():
            row = played.city.report(unit)
            here = row["lon"], row["lat"]
            before = last.get(unit.id, here)
            step_m = float(great_circle_m(*(np.array(x) for x in (*before, *here))))
            assert step_m < 40.0
            off = min(abs(1000.0 * part - round(1000.0 * part)) for part in here)
            assert off < 0.01  # one of the coordinates is that of a street
            driven_m += step_m
            last[unit.id] = here
    assert driven_m > 10_000.0


def test_the_primary_is_the_free_unit_expected_first(grid: RoadNetwork) -> None:
    played = Played(grid)
    played.until(lambda: played.called)
    call, network = played.called[0], played.roads.network
    assert call.primary is not None
    here = network.lon[call.node], network.lat[call.node]
    away_m = {
        name: float(great_circle_m(*here, np.array(lon), np.array(lat)))
        for name, (lon, lat) in DEPOTS.items()
    }
    assert call.primary.depot == min(away_m, key=lambda name: away_m[name])


def test_the_unit_that_comes_second_assists_and_goes_home(grid: RoadNetwork) -> None:
    played = Played(grid)
    call, second = played.pair()
    played.until(lambda: second.status not in COMING)
    if call.first is not second:
        assert second.status == "on_scene"
        played.until(lambda: second.status in FREE)
        assert "transporting" not in check_statuses(played.news)[second.id]
    assert call.first in (call.primary, second)


def test_a_unit_that_is_stood_down_turns_round_where_it_is(grid: RoadNetwork) -> None:
    played = Played(grid)
    _, second = played.pair()
    place = played.city.report(second)
    played.city.stand_down(second)
    after = played.city.report(second)
    assert (after["status"], after["call_id"]) == ("available", None)
    assert (after["lon"], after["lat"]) == (place["lon"], place["lat"])
    played.until(lambda: second.status != "available")
    assert second.status in ("at_station", "dispatched")  # home, or sent by another call
    check_statuses(played.news)


def test_a_unit_that_is_stood_down_before_it_left_is_at_its_station(grid: RoadNetwork) -> None:
    played = Played(grid)
    played.until(lambda: played.called)
    second = played.city.nearest(played.called[0])
    assert second is not None
    played.city.send(second, played.called[0])
    played.city.stand_down(second)
    assert second.status == "at_station"
    assert second.spot == Spot(second.spot.edge)


def test_nobody_comes_once_the_patient_has_left(grid: RoadNetwork) -> None:
    played = Played(grid)
    call, second = played.pair()
    played.until(lambda: call.over)
    assert not [one for one in (call.primary, second) if one and one.status in COMING]


def test_units_drive_around_closed_roads_from_the_start_or_on_their_way(grid: RoadNetwork) -> None:
    def driven(closed: list[int], *, late: bool = False) -> list[int]:
        """The edges on which the first unit of the day drives to its call."""
        played = Played(grid)
        played.city.close_roads([] if late else closed)
        played.until(lambda: played.called)
        unit = played.called[0].primary
        assert unit is not None
        played.until(lambda: unit.status == "en_route")
        played.city.close_roads(closed)
        edges = list[int]()
        while unit.status == "en_route":
            edges.append(played.city.spot(unit)[0].edge)
            played.city.advance(played.city.now_s + 1.0)
        assert unit.status == "on_scene"
        return list(dict.fromkeys(edges))

    usual = driven([])
    assert len(usual) > 3
    for late in (False, True):
        assert usual[2] not in driven([usual[2]], late=late)
        assert driven(list(range(grid.num_edges)), late=late) == usual  # or the patient waits


def test_calls_wait_where_no_unit_is_free(grid: RoadNetwork) -> None:
    played = Played(grid, units=1, calls_per_day=200.0)
    played.city.advance(EIGHT + 8 * 3600.0)
    assert len(played.called) > 3
    check_statuses(played.news)


def test_a_ride_takes_its_time_from_where_the_unit_is(grid: RoadNetwork) -> None:
    roads = Roads(geojson(grid))
    ride = Ride(roads, Spot(0, 0.5), 119, 100.0, 2.0)
    edges, seconds = roads.way(Spot(0, 0.5), 119)
    assert seconds[0] == pytest.approx(0.5 * roads.times_s[0])
    assert ride.ends_s == pytest.approx(100.0 + 2.0 * seconds.sum())
    assert ride.at(100.0)[0] == pytest.approx(Spot(0, 0.5))
    assert ride.at(ride.ends_s) == (Spot(int(edges[-1])), 0.0)
    _, speed_kmh = ride.at(101.0)
    assert speed_kmh == pytest.approx(0.5 * roads.network.speed_kmh[0])


def test_the_embedded_city_has_its_own_fleet() -> None:
    city = harbour_city()
    roads = Roads(geojson(city.network))
    at = {one.name: (float(city.network.lon[one.node]), float(city.network.lat[one.node]))
          for one in city.depots}  # fmt: skip
    fleet: FleetCity = fleet_for(city.name, roads.network, at)
    assert (fleet.num_units, fleet.calls_per_day) == (11, 125.0)
    played = PlayedCity(at, roads, fleet, 1, EIGHT)
    assert {unit.depot for unit in played.units.values()} == set(at)
    assert {row["status"] for row in played.news} == {"at_station", "available"}  # posts wait
    played.advance(EIGHT + DAY_S)
    assert "out_of_service" in {row["status"] for row in played.news}  # shifts end
    check_statuses(played.news)

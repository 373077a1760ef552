import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import InputError
from ideal_dispatch.traffic.sumo.demand import Demand, level
from ideal_dispatch.traffic.sumo.plan import Closure
from tests.unit.traffic.sumo.days import plan

HOUR_S = 3600


@pytest.fixture(scope="module")
def demand(grid: RoadNetwork) -> Demand:
    return Demand.of(grid)


def test_trips_are_in_order_within_the_time_and_repeatable(demand: Demand) -> None:
    trips = demand.departures(plan(), 7 * HOUR_S, 9 * HOUR_S)
    again = demand.departures(plan(), 7 * HOUR_S, 9 * HOUR_S)
    assert (np.diff(trips.depart_s) >= 0).all()
    assert trips.depart_s[0] >= 7 * HOUR_S
    assert trips.depart_s[-1] <= 9 * HOUR_S
    for column in ("depart_s", "origin", "destination"):
        np.testing.assert_array_equal(getattr(trips, column), getattr(again, column))
    other = demand.departures(plan(seed=12), 7 * HOUR_S, 9 * HOUR_S)
    assert other.depart_s.size != trips.depart_s.size


def test_a_warm_up_may_begin_before_midnight(demand: Demand) -> None:
    trips = demand.departures(plan(), -1200, HOUR_S)
    assert trips.depart_s[0] < 0


def test_the_number_of_trips_follows_factor_and_level(demand: Demand) -> None:
    wanted = demand.peak_trips * 3 * np.mean([level(plan(), s) for s in range(28800, 32400, 60)])
    found = demand.departures(plan(demand_factor=3.0), 8 * HOUR_S, 9 * HOUR_S).depart_s.size
    assert found == pytest.approx(wanted, abs=5 * np.sqrt(wanted))


def test_levels_have_peaks_on_weekdays_and_late_weekends() -> None:
    weekday, sunday = plan(), plan(kind="sunday")
    assert level(weekday, 8.5 * HOUR_S) == 1.0
    assert level(weekday, 3.5 * HOUR_S) < 0.1
    assert level(sunday, 8.5 * HOUR_S) < 0.5 < level(sunday, 15.5 * HOUR_S)
    assert level(weekday, -600) == level(weekday, 24 * HOUR_S - 600)  # around midnight


def test_mornings_lead_to_jobs_and_evenings_home(demand: Demand) -> None:
    def pull(hour: int) -> float:
        trips = demand.departures(plan(demand_factor=20.0), hour * HOUR_S, (hour + 1) * HOUR_S)
        share = demand.jobs / demand.jobs.sum() - demand.homes / demand.homes.sum()
        return float(share[trips.destination].mean() - share[trips.origin].mean())

    assert pull(7) > 0 > pull(18)


def test_nobody_starts_or_ends_on_a_closed_road(demand: Demand) -> None:
    free = demand.departures(plan(demand_factor=20.0), 7 * HOUR_S, 8 * HOUR_S)
    edge = int(np.bincount(free.destination).argmax())
    shut = plan(demand_factor=20.0, closures=(Closure((edge,), 0, 80_000),))
    trips = demand.departures(shut, 7 * HOUR_S, 8 * HOUR_S)
    assert edge not in trips.origin
    assert edge not in trips.destination


def test_ends_are_edges_that_can_be_left() -> None:
    # 0 ⇄ 1 ⇄ 2 and a one-way street 2 → 3 out of town
    town = RoadNetwork.from_arrays(
        [0, 1, 1, 2, 2], [1, 0, 2, 1, 3], np.full(5, 900.0),
        [0, 0.008, 0.016, 0.024], [0, 0, 0, 0], road_class=["residential"] * 5,
    )  # fmt: skip
    trips = Demand.of(town).departures(plan(demand_factor=50.0), 7 * HOUR_S, 8 * HOUR_S)
    assert 4 not in {*trips.origin.tolist(), *trips.destination.tolist()}
    assert {*trips.origin.tolist()} == {0, 1, 2, 3}


def test_a_network_of_motorways_has_no_demand() -> None:
    road = RoadNetwork.from_arrays(
        [0, 1], [1, 0], [900.0, 900.0], [0, 0.008], [0, 0], road_class=["motorway"] * 2
    )
    with pytest.raises(InputError, match="homes and jobs"):
        Demand.of(road)

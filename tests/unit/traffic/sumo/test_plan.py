"""The days of a simulated year, before anything is simulated."""

from datetime import date

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.context import Calendar
from ideal_dispatch.errors import InputError
from ideal_dispatch.network.features import through_traffic
from ideal_dispatch.traffic.sumo.network import lanes_per_direction
from ideal_dispatch.traffic.sumo.plan import RAIN, REGIMES, Closure, Regime, plan_days
from tests.unit.traffic.sumo.days import plan

HONG_KONG = Calendar("Asia/Hong_Kong", "HK")


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"kind": "monday"}, "kind"),
        ({"hours": ()}, "hours"),
        ({"hours": ((8, 7),)}, "hours"),
        ({"hours": ((20, 25),)}, "hours"),
        ({"hours": ((6, 8), (8, 9))}, "hours"),
        ({"demand_factor": float("nan")}, "demand_factor"),
        ({"seed": -1}, "seed"),
        ({"time_zone": "Moon/Base"}, "Moon/Base"),
    ],
)
def test_bad_plans_are_refused(change: dict[str, object], key: str) -> None:
    with pytest.raises(InputError, match=key):
        plan(**change)


@pytest.mark.parametrize("closure", [((), 0, 1), ((-1,), 0, 1), ((1,), 5, 5), ((1.5,), 0, 1)])
def test_bad_closures_are_refused(closure: tuple[object, ...]) -> None:
    with pytest.raises(InputError, match="edges"):
        Closure(*closure)  # type: ignore[arg-type]


def test_planned_days_are_varied_in_order_and_repeatable(grid: RoadNetwork) -> None:
    plans = plan_days(grid, HONG_KONG, 5)
    assert plans == plan_days(grid, HONG_KONG, 5)
    assert plans != plan_days(grid, HONG_KONG, 6)
    dates = [one.date for one in plans]
    assert len(plans) == 18
    assert dates == sorted(set(dates))
    assert sum(one.hours == ((0, 24),) for one in plans) == 3
    kinds = [one.kind for one in plans]
    assert min(kinds.count(kind) for kind in ("saturday", "sunday", "holiday")) >= 2
    assert kinds.count("weekday") >= 10
    assert len({one.seed for one in plans}) == 18
    assert len({one.demand_factor for one in plans}) > 9
    assert any(one.closures for one in plans[:8])
    assert any(one.closures for one in plans[8:])
    rain = [np.array(one.weather)[1:, RAIN] for one in plans]
    wet = [mm[6:10].sum() + mm[16:20].sum() >= 1 for mm in rain]
    assert any(wet[:8])
    assert any(wet[8:])


def test_kinds_follow_the_calendar(grid: RoadNetwork) -> None:
    for one in plan_days(grid, HONG_KONG, 1, days=40):
        assert (one.kind == "holiday") == HONG_KONG.is_holiday(one.date)
        if one.kind in ("saturday", "sunday"):
            assert one.date.weekday() == {"saturday": 5, "sunday": 6}[one.kind]


def test_a_dead_end_is_never_closed() -> None:
    # 0 – 1 – 2: closing either street would cut the town in two
    line = RoadNetwork.from_arrays(
        [0, 1, 1, 2], [1, 0, 2, 1], np.full(4, 100.0), [0, 0.001, 0.002], [0, 0, 0],
        road_class=["residential"] * 4,
    )  # fmt: skip
    assert not any(one.closures for one in plan_days(line, HONG_KONG, 3))


def test_more_whole_days_than_days_are_refused(grid: RoadNetwork) -> None:
    with pytest.raises(InputError, match="whole"):
        plan_days(grid, HONG_KONG, 1, days=2)


def test_hours_and_demand_can_be_chosen(grid: RoadNetwork) -> None:
    usual = plan_days(grid, HONG_KONG, 5)
    busier = plan_days(grid, HONG_KONG, 5, hours=((17, 19),), demand=2.0)
    assert [one.date for one in busier] == [one.date for one in usual]
    assert {one.hours for one in busier} == {((17, 19),), ((0, 24),)}
    for one, other in zip(busier, usual, strict=True):
        assert one.demand_factor == pytest.approx(2 * other.demand_factor, abs=0.002)
    with pytest.raises(InputError, match="demand"):
        plan_days(grid, HONG_KONG, 5, demand=0.0)


def test_a_regime_says_how_days_differ(grid: RoadNetwork) -> None:
    calm, volatile = (
        plan_days(grid, HONG_KONG, 5, days=60, whole_days=0, regime=regime)
        for regime in REGIMES.values()
    )
    assert calm == plan_days(grid, HONG_KONG, 5, days=60, whole_days=0)
    spread = [np.std([one.demand_factor for one in plans]) for plans in (calm, volatile)]
    closures = [np.mean([len(one.closures) for one in plans]) for plans in (calm, volatile)]
    assert spread[1] > 1.5 * spread[0]
    assert closures[1] > 2 * closures[0]
    assert {one.kind for one in volatile} == {"weekday"}
    shortest_s, longest_s = REGIMES["volatile"].closed_s
    for closure in (closure for one in volatile for closure in one.closures):
        assert shortest_s <= closure.until_s - closure.from_s <= longest_s
    with pytest.raises(InputError, match="day_spread"):
        Regime(day_spread=0.5)


def test_accidents_on_main_roads_leave_one_lane(grid: RoadNetwork) -> None:
    lanes, busy = lanes_per_direction(grid), through_traffic(grid)
    assert lanes.max() > 1, "or there is no accident"
    anywhere, main = (
        [
            closure
            for one in plan_days(grid, HONG_KONG, 5, days=60, whole_days=0, regime=regime)
            for closure in one.closures
        ]
        for regime in (Regime(works=0.0), Regime(works=0.0, main_roads=True))
    )
    passed = [np.mean([busy[one.edges[0]] for one in closures]) for closures in (anywhere, main)]
    assert passed[1] > 1.2 * passed[0]
    assert {one.lanes_left for one in main} == {1}
    for one in plan_days(grid, HONG_KONG, 5, days=60, whole_days=0, regime=REGIMES["volatile"]):
        accidents = [closure.edges for closure in one.closures if closure.lanes_left]
        assert len(set(accidents)) == len(accidents), "two on one road may make SUMO fail"
    assert all(one.lanes_left == lanes[one.edges[0]] - 1 for one in anywhere)


@pytest.mark.parametrize("day", [date(2023, 3, 12), date(2023, 11, 5)])
def test_a_period_in_which_the_clocks_change_is_refused(day: date) -> None:
    where = {"date": day, "time_zone": "America/New_York"}
    with pytest.raises(InputError, match=f"{day}: .*America/New_York"):
        plan(**where, hours=((0, 24),))
    assert plan(**where, hours=((6, 10),)).moment(6 * 3600).hour == 6

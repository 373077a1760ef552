"""Dispatch policies as rules of a fleet: what they are shown, and whom they send."""

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import ideal_dispatch as ideal
from ideal_dispatch import Calendar, Model, RoadNetwork
from ideal_dispatch.cities import HARBOUR_MODEL
from ideal_dispatch.dispatch.decision import Decision
from ideal_dispatch.dispatch.policies import RouterDual, RouterPolicy
from ideal_dispatch.dispatch.situation import Assignment, Situation
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.calls import draw_calls
from ideal_dispatch.fleet.city import FleetCity, Priority, Work
from ideal_dispatch.fleet.experiment import FleetExperiment
from ideal_dispatch.fleet.inputs.city_files import city_from
from ideal_dispatch.fleet.policies import PolicyRule
from ideal_dispatch.fleet.run import read_runs, run_fleet
from ideal_dispatch.fleet.simulation import SecondRule, Simulator
from ideal_dispatch.fleet.travel import Travel
from tests.fleets import calls_at, fleet, town

_CALENDAR = Calendar("Europe/London", "GB")
_MIDNIGHT = datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/London"))


def _street(units: list[int], **settings: Any) -> FleetCity:
    """Stations at both ends of a street of eleven junctions, 100 s from each to the next."""
    along = np.arange(10)
    network = RoadNetwork.from_arrays(
        np.r_[along, along + 1], np.r_[along + 1, along], np.full(20, 1000.0),
        lon=114.0 + 0.01 * np.arange(11), lat=np.full(11, 22.3),
    )  # fmt: skip
    times_s = np.full(20, 100.0)
    nodes = [0, 10, *range(1, 10)]
    travel = Travel.on_roads(network, nodes, times_s, 2.0 * times_s)
    return fleet(travel, units, stations=2, work=Work(delay_s=0.0), calendar=_CALENDAR, **settings)


class _Watching(RouterDual):
    """The router's pair; what it was shown is kept."""

    seen: list[Situation]

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        self.seen.append(situation)
        return super().decide(situation, rng)


def test_policy_is_shown_the_free_units_of_stations_and_roads() -> None:
    city = _street([0, 0, 1])
    calls = calls_at(city, [0.0, 200.0, 1250.0], [4, 4, 3])
    watching = _Watching()
    object.__setattr__(watching, "seen", [])
    _, log = Simulator(city).run(calls, PolicyRule(city, watching), "none")
    first, second, third = watching.seen
    assert [(s.depot.name, s.depot.node, s.units) for s in first.stations] == [
        ("S0", 0, 2),
        ("S1", 10, 1),
    ]
    assert first.quote(0).duration_s == pytest.approx(300.0)
    assert first.quote(1).duration_s == pytest.approx(700.0)
    assert first.incident.at == _MIDNIGHT
    assert [s.units for s in second.stations] == [1, 0]
    assert log.unit[0].tolist() == [0, 2]
    assert log.unit[1].tolist() == [1, -1]  # nobody else is free
    road = [s for s in third.stations if s.depot.on_road]
    assert [(s.depot.name, s.depot.node, s.units) for s in road] == [
        ("unit 0", 2, 1),
        ("unit 1", 3, 1),
        ("unit 2", 3, 1),
    ]


def test_calls_without_a_right_to_a_second_are_not_put_to_the_policy() -> None:
    city = _street([0, 1])
    watching = _Watching()
    object.__setattr__(watching, "seen", [])
    calls = calls_at(city, [0.0], [4], entitled=False)
    _, log = Simulator(city).run(calls, PolicyRule(city, watching))
    assert watching.seen == []
    assert log.unit[0].tolist() == [0, -1]


def test_router_alone_sends_whom_the_fleet_sends_where_turnouts_are_alike() -> None:
    """Without units on the road the shortest quote is the least expected response."""
    city = _street([0, 0, 0, 1, 1, 1], calls_per_day=8.0, arrests=1.0)
    calls = draw_calls(city, 2, days=20)
    at_s = 20_000.0 * np.arange(
        len(calls), dtype=np.float64
    )  # all are home again before the next call
    calls = replace(calls, at_s=at_s)
    _, never = Simulator(city).run(calls, SecondRule("never").compiled("none"))
    _, log = Simulator(city).run(calls, PolicyRule(city, RouterPolicy()), "none")
    assert log.unit.tobytes() == never.unit.tobytes()
    assert log.first_s.tobytes() == never.first_s.tobytes()


class _TwoFromOneStation:
    name = "two"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        one = Assignment(0, situation.quote(0).path)
        return Decision(self.name, one, one, 1.0, 0.0, "two")


def test_two_of_one_station_are_two_units() -> None:
    city = _street([0, 0, 1])
    _, log = Simulator(city).run(calls_at(city, [0.0], [4]), PolicyRule(city, _TwoFromOneStation()))
    assert log.unit[0].tolist() == [0, 1]


def test_same_policy_has_the_same_year() -> None:
    city = _street([0, 1], calls_per_day=20.0)
    calls = draw_calls(city, 2, days=5)
    logs = [Simulator(city).run(calls, PolicyRule(city, RouterDual()), "first arrival")[1]
            for _ in range(2)]  # fmt: skip
    assert [a.tobytes() for a in logs[0]] == [a.tobytes() for a in logs[1]]
    assert np.isfinite(logs[0].stood_s[:, 1]).any()


class _OtherWayRound(_Watching):
    """The router's pair, the second named as the first."""

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        made = super().decide(situation, rng)
        assert made.second is not None
        return replace(made, primary=made.second, second=made.primary)


@pytest.mark.parametrize("policy", [_Watching, _OtherWayRound])
def test_unit_that_may_be_redirected_can_go_and_goes_as_the_first(policy: type[_Watching]) -> None:
    """It is on its way to a routine call, and expected soonest."""
    classes = (Priority("urgent", 0.5), Priority("routine", 0.5))
    redispatch = np.array([[False, False], [True, False]])
    city = _street([0, 1], priorities=classes, arrests=0.5, redispatch=redispatch)
    watching = policy()
    object.__setattr__(watching, "seen", [])
    calls = calls_at(city, [0.0, 260.0], [6, 4], [1, 0])
    _, log = Simulator(city).run(calls, PolicyRule(city, watching), "none")
    (urgent,) = watching.seen
    assert [s.depot.name for s in urgent.stations if s.units] == ["S1", "unit 0"]
    assert log.unit[1].tolist() == [0, 1]
    assert log.sent_s[0, 0] > 260.0  # the routine call is served again


# --- as tables of an experiment ----------------------------------------------------------

_TABLES: dict[str, Any] = {
    "dual": {"kind": "router-dual"},
    "ours": {"kind": "ideal", "threshold": "priced", "method": "multistart"},
    "never worth it": {"kind": "ideal", "threshold": 1e9, "report_gap": False,
                       "seconds": ["other-depot"]},
}  # fmt: skip


def test_policies_of_an_experiment_decide_in_the_embedded_fleet(tmp_path: Path) -> None:
    recalls = ["none", "first arrival"]
    told = FleetExperiment.of(
        {"years": 1, "days": 1, "entitled": [0.1], "recall": recalls, "policies": _TABLES}
    )
    run_fleet(told, tmp_path)
    rows = {(row["policy"], row["recall"]): row for row in read_runs(tmp_path)[0]}
    assert rows["dual", "none"]["second_share"] == 1.0
    ours = [rows["ours", recall]["second_share"] for recall in recalls]
    assert 0.0 < ours[0] < ours[1] < 1.0  # a unit that is stood down costs less
    assert rows["never worth it", "none"]["second_share"] == 0.0
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    model = Model.load(HARBOUR_MODEL)
    assert manifest["cities"][""]["settings"]["model"]["checksum"] == model.checksum
    assert manifest["policies"]["ours"]["table"] == _TABLES["ours"]


def test_policy_of_others_is_named_by_its_class(tmp_path: Path) -> None:
    table = {"kind": f"{__name__}:Plain"}
    told = FleetExperiment.of({"years": 1, "days": 1, "policies": {"mine": table},
                               "recall": ["none"]})  # fmt: skip
    rows, _ = read_runs(run_fleet(told, tmp_path))
    assert (rows[1]["policy"], rows[1]["second_share"]) == ("mine", 1.0)


class Plain(RouterDual):
    """A policy as a package of others has it."""


def test_a_policy_is_simulated_as_it_is() -> None:
    result = ideal.simulate_fleet(_street([0, 1], calls_per_day=20.0), Plain(), years=1, days=2)
    assert [row["policy"] for row in result.rows] == ["never", "router-dual"]
    assert result.rows[1]["second_share"] > 0.5


def test_a_city_without_a_clock_or_roads_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a dispatch policy needs"):
        PolicyRule(_street([0, 1]).changed(calendar=None), RouterDual())
    with pytest.raises(InputError, match="a dispatch policy needs"):
        PolicyRule(town().changed(calendar=_CALENDAR), RouterDual())
    embedded = city_from({}, "city", tmp_path)
    assert embedded.calendar is not None
    assert embedded.calendar.country == "HK"

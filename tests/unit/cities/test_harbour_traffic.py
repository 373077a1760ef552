"""The embedded city's simulated days, as they come with the package."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from ideal_dispatch.cities import (
    HARBOUR_STEM,
    TRAINING_DAYS,
    City,
    harbour_city,
    harbour_traffic,
)
from ideal_dispatch.traffic.recording import RecordedTraffic
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.sumo.campaign import broken_rules


@pytest.fixture(scope="module")
def city() -> City:
    return harbour_city()


@pytest.fixture(scope="module")
def traffic(city: City) -> RecordedTraffic:
    return harbour_traffic(city)


def test_eighteen_days_in_twelve_megabytes(traffic: RecordedTraffic) -> None:
    assert len(traffic.days) == 18
    assert HARBOUR_STEM.with_suffix(".traffic").stat().st_size <= 12e6
    hours = [sum(traffic.stretches[i].bins for i in day) / 60 for day in traffic.days]
    assert sorted(hours) == [8.0] * 15 + [24.0] * 3
    assert len(traffic.days) - TRAINING_DAYS == 10


def test_days_differ(traffic: RecordedTraffic) -> None:
    first = [traffic.stretches[day[0]] for day in traffic.days]
    assert {note["kind"] for note in (s.notes for s in first)} == {
        "weekday", "saturday", "sunday", "holiday",
    }  # fmt: skip
    assert len({s.notes["demand_factor"] for s in first}) > 12
    assert len({s.notes["seed"] for s in first}) == 18
    assert any(s.notes["closures"] for s in first)
    wet = [float(s.weather[1:, 1].sum()) > 0 for s in traffic.stretches]
    assert 0 < sum(wet) < len(wet)


def test_all_are_congested_and_none_is_gridlocked(traffic: RecordedTraffic) -> None:
    assert broken_rules(traffic) == []
    stretch = traffic.stretches[0]
    hours = [{**hour, "relative_speed": 0.3} for hour in stretch.notes["hours"]]
    jammed = replace(stretch, notes={**stretch.notes, "hours": hours})
    made = RecordedTraffic(traffic.network, traffic.calendar, 60, (jammed,))
    assert len(broken_rules(made)) == len(hours)


def test_its_router_answers(city: City, traffic: RecordedTraffic) -> None:
    world = ReplayedTraffic(traffic.only([0]))
    at = traffic.stretches[0].start + timedelta(hours=1)
    quote = world.quote(city.depots[0].node, city.depots[1].node, at)
    free_flow_s = quote.path.time_s(city.network.free_flow_times_s)
    assert 1.0 < quote.duration_s / free_flow_s < 3.0
    assert quote.data_age_s < 60
    assert np.isfinite([quote.optimistic_s, quote.pessimistic_s]).all()
    assert dict(traffic.provenance)["engine"] == "sumo"

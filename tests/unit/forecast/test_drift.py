"""The drift's directory and what it says about contexts and paths."""

import pickle
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from ideal_dispatch import Calendar, Model
from ideal_dispatch.context import Context, ContextEncoding, Weather, WeatherValue
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.forecast.drift import DriftModel, drift_rows
from ideal_dispatch.network import RoadNetwork
from tests.unit.forecast.models import small_model
from tests.unit.learning.worlds import town

AT = datetime(2024, 1, 16, 8, 30, tzinfo=ZoneInfo("Asia/Hong_Kong"))  # a Tuesday
CALENDAR = Calendar("Asia/Hong_Kong", "HK")


@pytest.fixture(scope="module")
def network() -> RoadNetwork:
    return town()


@pytest.fixture(scope="module")
def model() -> Model:
    return small_model()


@pytest.fixture(scope="module")
def drift(model: Model) -> DriftModel:
    score = {"quoted_mae_s": 30.0, "corrected_mae_s": 20.0}
    log = {"train": 1000, "held_out": 200, "held_out_days": ["2024-01-09"], "left_out": 3}
    details = {"purpose": "drift", "log": log, "held_out": score, "versions": {"x": 1}}
    return DriftModel(replace(model, details=details))


def test_a_drift_is_nominal_minus_base(drift: DriftModel, network: RoadNetwork) -> None:
    context = CALENDAR.context(AT)
    nominal = drift.model.forecast(drift_rows([context], drift.model.encoding), network)
    base = drift.model.base_ratio * network.free_flow_times_s
    found = drift.edge_drift_s(context, network)
    np.testing.assert_array_equal(found, nominal.nominal_times - base)


def test_minutes_and_days_off_count_and_nothing_else(
    drift: DriftModel, network: RoadNetwork
) -> None:
    at_half = drift.edge_drift_s(CALENDAR.context(AT), network)
    for same in (
        CALENDAR.context(AT + timedelta(days=1)),
        CALENDAR.context(AT, Weather(rainfall_mm=WeatherValue(30.0))),
        CALENDAR.context(AT + timedelta(days=91)),
    ):
        np.testing.assert_array_equal(drift.edge_drift_s(same, network), at_half)
    later = drift.edge_drift_s(CALENDAR.context(AT + timedelta(minutes=20)), network)
    assert np.abs(later - at_half).max() > 1e-4
    rows = drift_rows(
        [CALENDAR.context(AT + timedelta(days=n)) for n in range(7)] + [Context(AT, holiday=True)],
        ContextEncoding(),
    )
    assert rows[:, 25].tolist() == [0, 0, 0, 0, 1, 1, 0, 1]
    assert rows[:, 5].tolist() == [8.5] * 8
    assert np.isnan(np.delete(rows, [5, 25], axis=1)).all()


def test_the_directory(drift: DriftModel, network: RoadNetwork, tmp_path: Path) -> None:
    drift.save(tmp_path / "drift")
    again = DriftModel.load(tmp_path / "drift")
    context = CALENDAR.context(AT)
    for other in (again, pickle.loads(pickle.dumps(drift))):
        np.testing.assert_array_equal(
            other.edge_drift_s(context, network), drift.edge_drift_s(context, network)
        )
    card = (tmp_path / "drift" / "card.md").read_text(encoding="utf-8")
    assert card.startswith("# Drift of a router's quotes\n")
    assert "1,000 quotes to learn from, 200 of held-out days (2024-01-09)" in card
    assert "quotes 30.0 s, corrected 20.0 s" in card
    assert "Travel times of ambulances" not in card


def test_a_model_of_travel_times_is_no_drift(model: Model, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="forecasts travel times, not the drift of quotes"):
        DriftModel(model)
    model.save(tmp_path / "model")
    with pytest.raises(FileFormatError, match=f"{tmp_path / 'model'}: this model forecasts"):
        DriftModel.load(tmp_path / "model")
    with pytest.raises(InputError, match="no such folder"):
        DriftModel.load(tmp_path / "none")

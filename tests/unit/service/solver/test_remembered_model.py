"""A model that remembers says what the model says."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from ideal_dispatch.context import Calendar, Context, Weather, WeatherValue
from ideal_dispatch.forecast import Model
from ideal_dispatch.service.solver import assets as module
from ideal_dispatch.service.solver.assets import RememberedModel
from tests.service_town import Town

CALENDAR = Calendar("Asia/Hong_Kong", "HK")
NOON = datetime(2025, 3, 5, 4, tzinfo=UTC)


def context(minutes: float = 0.0, **weather: float) -> Context:
    values = {name: WeatherValue(value, "s", "", NOON) for name, value in weather.items()}
    return CALENDAR.context(NOON + timedelta(minutes=minutes), Weather(**values))


@pytest.fixture
def models(town: Town) -> tuple[Model, RememberedModel]:
    folder = town.folder / "model"
    remembered = RememberedModel.load(folder)
    assert isinstance(remembered, RememberedModel)
    return Model.load(folder), remembered


def test_forecasts_are_those_of_the_model_and_made_once(
    town: Town, models: tuple[Model, RememberedModel]
) -> None:
    plain, remembered = models
    assert remembered.checksum == plain.checksum
    for asked in (context(), context(30), context(60), context(rainfall_mm=90.0), context(3)):
        own, kept = (model.forecast(asked, town.network) for model in models)
        assert np.array_equal(own.embeddings, kept.embeddings)
        assert (own.radius, own.unusual) == (kept.radius, kept.unusual)
    assert remembered.forecast(context(), town.network) is kept  # the same hour and weather
    with pytest.raises(ValueError, match="read-only"):
        kept.embeddings[0, 0] = 1.0


def test_what_is_kept_is_bounded(
    town: Town, models: tuple[Model, RememberedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FORECASTS", 2)
    made = []
    for temperature_c in range(5):
        made.append(models[1].forecast(context(temperature_c=temperature_c), town.network))
        assert len(models[1]._kept) <= 2
    assert list(models[1]._kept.values()) == made[-2:]


def test_what_is_kept_is_small(town: Town, models: tuple[Model, RememberedModel]) -> None:
    """Sixty-four forecasts of a large city would take most of a gigabyte."""
    for temperature_c in range(12):
        models[1].forecast(context(temperature_c=temperature_c), town.network)
    assert len(models[1]._kept) == 4

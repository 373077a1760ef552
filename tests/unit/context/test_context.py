import math
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from ideal_dispatch.context import (
    WEATHER_VARIABLES,
    Context,
    ContextEncoding,
    Weather,
    WeatherValue,
)
from ideal_dispatch.errors import InputError

AT = datetime(2024, 3, 29, 23, 5, tzinfo=timezone(timedelta(hours=8)))


def test_the_papers_27_columns_in_order() -> None:
    columns = ContextEncoding().columns
    assert len(columns) == 27
    assert columns[:6] == (*WEATHER_VARIABLES, "hour")
    assert columns[6:8] == ("monday", "tuesday")
    assert columns[12:14] == ("sunday", "january")
    assert columns[24:] == ("december", "holiday", "holiday_eve")


def test_a_row_holds_weather_clock_and_calendar() -> None:
    weather = Weather(*(WeatherValue(float(i)) for i in range(1, 6)))
    (row,) = ContextEncoding().encode([Context(AT, True, False, weather)])
    named = dict(zip(ContextEncoding().columns, row.tolist(), strict=True))
    assert row[:5].tolist() == [1, 2, 3, 4, 5]
    assert named["hour"] == 23
    ones = {name for name, value in named.items() if value == 1 and name != "temperature_c"}
    assert ones == {"friday", "march", "holiday"}


def test_every_day_and_month_has_its_own_column() -> None:
    start = datetime(2023, 1, 1, tzinfo=UTC)
    contexts = [Context(start + timedelta(days=i)) for i in range(365)]
    rows = ContextEncoding().encode(contexts)
    assert (rows[:, 6:13].sum(axis=1) == 1).all()
    assert (rows[:, 13:25].sum(axis=1) == 1).all()
    assert rows[:, 13:25].sum(axis=0).tolist() == [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    assert ContextEncoding().encode([]).shape == (0, 27)


def test_unknown_is_nan_and_never_a_number() -> None:
    encoding = ContextEncoding(extra=("events", "roadworks"))
    (row,) = encoding.encode([Context(AT, extra={"events": 3, "other": 1.0})])
    assert np.isnan(row[:5]).all()
    assert row[27] == 3
    assert math.isnan(row[28])


def test_the_checksum_is_stable_and_knows_every_column() -> None:
    checksum = ContextEncoding().checksum
    assert checksum == "08e3fc8bb29c03de19b605c7f82d74ac"
    assert ContextEncoding(("a",)).checksum != checksum
    assert ContextEncoding(("a", "b")).checksum != ContextEncoding(("b", "a")).checksum
    for twice in (("hour",), ("a", "a")):
        with pytest.raises(InputError, match=f"context column {twice[0]} is named twice"):
            ContextEncoding(twice)


def test_a_time_without_zone_is_refused() -> None:
    naive = datetime(2024, 3, 29, 8)
    with pytest.raises(InputError, match="time 2024-03-29T08:00:00 has no zone; add its offset"):
        Context(naive)
    with pytest.raises(InputError, match="has no zone"):
        WeatherValue(1.0, observed_at=naive)


def test_values_are_numbers_or_unknown() -> None:
    for bad in (math.inf, "12", None):
        with pytest.raises(InputError, match="is not a number; use NaN for unknown"):
            WeatherValue(bad)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="context column x: .* is not a finite number"):
            Context(AT, extra={"x": bad})  # type: ignore[dict-item]
    assert Context(AT, extra={"x": np.float64(2)}).extra["x"] == 2
    assert WeatherValue(float("nan")) == WeatherValue()
    assert not WeatherValue().known


def test_the_age_of_a_value() -> None:
    value = WeatherValue(21.0, "x", "y", AT - timedelta(minutes=20))
    assert value.age(AT) == timedelta(minutes=20)
    assert value.age(AT.astimezone(UTC)) == timedelta(minutes=20)
    assert WeatherValue(21.0, "usual").age(AT) is None


def test_extra_cannot_be_changed_afterwards() -> None:
    given = {"x": 1.0}
    context = Context(AT, extra=given)
    given["x"] = 2.0
    assert context.extra["x"] == 1.0
    with pytest.raises(TypeError):
        context.extra["x"] = 3.0  # type: ignore[index]

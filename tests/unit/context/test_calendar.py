import pickle
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta

import pytest

from ideal_dispatch.context import Calendar, ContextEncoding, Weather, WeatherValue
from ideal_dispatch.errors import InputError

HONG_KONG = Calendar("Asia/Hong_Kong", "HK")


def days(year: int) -> list[date]:
    start = date(year, 1, 1)
    return [day for i in range(366) if (day := start + timedelta(days=i)).year == year]


@pytest.mark.parametrize("year", range(2014, 2028))
def test_hong_kong_has_its_general_holidays(year: int) -> None:
    holidays = [day for day in days(year) if HONG_KONG.is_holiday(day)]
    assert len(holidays) == (18 if year == 2015 else 17)


def test_good_friday_is_a_holiday_in_hong_kong() -> None:
    assert HONG_KONG.is_holiday(date(2024, 3, 29))
    assert HONG_KONG.is_holiday(date(2026, 4, 3))
    statutory = Calendar("Asia/Hong_Kong", "HK", categories=("public",))
    assert not statutory.is_holiday(date(2024, 3, 29))


def test_categories_are_joined() -> None:
    def of(*categories: str) -> set[date]:
        calendar = Calendar("Asia/Hong_Kong", "HK", categories=categories)
        return {day for day in days(2023) if calendar.is_holiday(day)}

    assert of("optional", "public") >= of("optional") | of("public")
    assert of("public") - of("optional")  # Sundays that have a substitute among the general ones
    assert Calendar("Asia/Hong_Kong", "HK", categories="optional") == HONG_KONG  # type: ignore[arg-type]


def test_the_day_is_the_citys() -> None:
    late = datetime(2023, 12, 31, 16, 30, tzinfo=UTC)  # 00:30 of New Year's Day in Hong Kong
    context = HONG_KONG.context(late)
    assert context.at.isoformat() == "2024-01-01T00:30:00+08:00"
    assert context.holiday
    assert not context.holiday_eve
    eve = HONG_KONG.context(late - timedelta(hours=1))
    assert (eve.holiday, eve.holiday_eve) == (False, True)
    assert HONG_KONG.is_holiday(late)
    assert HONG_KONG.is_holiday_eve(late - timedelta(hours=1))


def test_the_context_carries_weather_and_extras() -> None:
    weather = Weather(temperature_c=WeatherValue(31.5, "cowin"))
    context = HONG_KONG.context(datetime(2024, 7, 1, 4, tzinfo=UTC), weather, {"events": 2.0})
    (row,) = ContextEncoding(("events",)).encode([context])
    assert row[0] == 31.5
    assert row[5] == 12
    assert row[-1] == 2


def test_what_was_looked_up_can_be_sent_and_needs_no_library() -> None:
    sent = HONG_KONG.looked_up(2026, 2027)
    assert sent == HONG_KONG
    program = (
        "import pickle, sys\nfrom datetime import date\n"
        "calendar = pickle.loads(sys.stdin.buffer.read())\n"
        "days = date(2026, 4, 3), date(2026, 4, 8), date(2026, 12, 31)\n"
        "print([calendar.is_holiday(day) for day in days], calendar.is_holiday_eve(days[2]))\n"
        "print('holidays' in sys.modules, calendar.is_holiday(date(2025, 12, 25)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(sent), capture_output=True, check=True,
        timeout=60,
    )  # fmt: skip
    assert done.stdout.decode() == "[True, False, False] True\nFalse True\n"


def test_years_that_nobody_knows_are_not_looked_up() -> None:
    far = HONG_KONG.looked_up(2027, 3000)
    assert 2027 in far.years
    assert 3000 not in far.years
    with pytest.raises(InputError, match="not for 3000"):
        far.is_holiday(date(3000, 1, 1))


def test_names_are_taken_as_people_write_them() -> None:
    assert Calendar("America/New_York", "usa", "new york").subdivision == "NY"
    assert Calendar("Asia/Hong_Kong", "hk").country == "HK"
    assert Calendar("Asia/Hong_Kong", "HK", "") == HONG_KONG


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Asia/HongKong", "HK"), "'Asia/HongKong' is not known; did you mean Asia/Hong_Kong"),
        (("", "HK"), "time zone '' is not known; use a name such as Asia/Hong_Kong"),
        (("../../etc/passwd", "HK"), "time zone '../../etc/passwd' is not known"),
        (("Europe", "GB"), "time zone 'Europe' is not known"),
        ((None, "GB"), "time zone None is not known"),
        (("Asia/Hong_Kong", "XX"), "country 'XX' has no known holidays; use one of AD, AE,"),
        (("Asia/Hong_Kong", "Hong Kong"), "did you mean HK?"),
        (("Asia/Hong_Kong", "HK", "N"), "'N' of HK is not known; possible: none; leave it out"),
        (("Europe/London", "GB", "XY"), "'XY' of GB is not known; possible: ENG, NIR, SCT, WLS"),
        (
            ("Asia/Hong_Kong", "HK", None, ("general",)),
            "holiday category 'general' is not known for HK; possible: optional, public",
        ),
    ],
)
def test_what_is_unknown_is_refused_with_what_is_possible(
    arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        Calendar(*arguments)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_times_without_zone_and_far_years_are_refused() -> None:
    with pytest.raises(InputError, match="time 2024-01-01T00:00:00 has no zone"):
        HONG_KONG.local(datetime(2024, 1, 1))
    with pytest.raises(InputError, match="has no zone"):
        HONG_KONG.context(datetime(2024, 1, 1))
    with pytest.raises(InputError, match="known for 1946 to 2100, not for 1907; check the date"):
        HONG_KONG.is_holiday(date(1907, 1, 1))

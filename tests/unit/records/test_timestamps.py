from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.records.schema import TimeReader

HONG_KONG = TimeReader(ZoneInfo("Asia/Hong_Kong"), "dmy")
NEW_YORK = TimeReader(ZoneInfo("America/New_York"))
MOMENT = datetime(2023, 4, 3, 1, 5, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2023-04-03 09:05:09", "2023-04-03T09:05:09", "2023-04-03T01:05:09Z",
        "2023-04-02T21:05:09-04:00", "2023/04/03 09:05:09", "20230403090509", "03/04/2023 9:05:09",
        "03/04/2023 09:05:09 AM", "3.4.2023 09:05:09", "03-04-2023 09:05:09",
        "03 Apr 2023 09:05:09", "03-Apr-2023 09:05:09", "03 April 2023 09:05:09",
    ],
)  # fmt: skip
def test_many_ways_to_write_one_moment(text: str) -> None:
    assert HONG_KONG.read(text) == MOMENT


def test_formats_of_the_settings_come_first() -> None:
    reader = TimeReader(ZoneInfo("UTC"), "dmy", ("%m/%d/%Y %H:%M",))
    assert reader.read("04/03/2023 01:05").month == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("03/04/2023 10:00", "could be two days, day or month first; set input.date_order"),
        ("31/02/2023 10:00", "is not a date and time of the calendar, day first"),
        ("12/12/2023 13:00 pm", "is not a date and time of the calendar"),
        ("Mr Chan", "is not a known form of a time (it looks like 'aa aaaa')"),
        ("20231301", "is not a known form"),
        ("2023-04-03", "is not a known form"),
        ("25:61", "is a time of day without a date"),
        ("2023-03-12 02:30:00", "does not exist: clocks were put forward over it"),
        ("0001-01-01T00:00:00+14:00", "is outside the calendar"),
    ],
)
def test_what_cannot_be_read_is_not_quoted(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        NEW_YORK.read(text)
    assert str(caught.value).startswith(message)
    assert "Chan" not in str(caught.value)


def test_days_above_twelve_need_no_order() -> None:
    assert NEW_YORK.read("25/12/2023 10:00") == NEW_YORK.read("12/25/2023 10:00")
    assert NEW_YORK.read("05/05/2023 10:00").month == 5


def test_a_time_of_day_follows_the_call_over_midnight() -> None:
    call = HONG_KONG.read("2023-01-01 23:58:00")
    assert HONG_KONG.read("00:03", call) == datetime(2023, 1, 1, 16, 3, tzinfo=UTC)
    assert HONG_KONG.read("23:59:30", call) == datetime(2023, 1, 1, 15, 59, 30, tzinfo=UTC)
    assert HONG_KONG.read("23:57", call) < call, "a little before the call is a mistake, not a day"
    with pytest.raises(InputError, match="is not a time of day"):
        HONG_KONG.read("25:00", call)


def test_the_hour_that_comes_twice() -> None:
    call = NEW_YORK.read("2023-11-05 01:55:00")
    assert call == datetime(2023, 11, 5, 5, 55, tzinfo=UTC)
    assert NEW_YORK.read("2023-11-05 01:05:00", call) == datetime(2023, 11, 5, 6, 5, tzinfo=UTC)
    assert NEW_YORK.read("2023-11-05 01:58:00", call) == datetime(2023, 11, 5, 5, 58, tzinfo=UTC)

"""Moments and days as options say them."""

from datetime import date, datetime

from ideal_dispatch.errors import InputError


def read_moment(option: str, text: str) -> datetime:
    """A moment with its zone; ``option`` is named where the text is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{option} {text}: write it as 2023-05-08T08:10+08:00") from None
    if moment.tzinfo is None:
        raise InputError(f"{option} {text}: add the zone, as in 2023-05-08T08:10+08:00")
    return moment


def read_day(option: str, text: str) -> date:
    """A day of the calendar; ``option`` is named where the text is none."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{option} {text}: write it as 2023-05-08") from None

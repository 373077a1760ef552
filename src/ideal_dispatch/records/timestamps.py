"""Times as agencies write them, row by row, on the city's clock.

Without a zone a time is the city's own. An hour that the clock passes twice
counts as the first, unless that would lie before the call; an hour that it
skips is refused. A date whose day and month could be told either way is
refused unless the settings name their order.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from ideal_dispatch.errors import InputError

_SLASHED = re.compile(
    r"(?P<a>\d{1,2})[/.\-](?P<b>\d{1,2})[/.\-](?P<year>\d{4})"
    r"[ T]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(:(?P<second>\d{2})(\.\d+)?)?\s*(?P<half>[ap]m)?",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(:(?P<second>\d{2}))?")
_BUILT_IN = (
    "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y%m%d %H:%M:%S",
    "%Y.%m.%d %H:%M:%S", "%d %b %Y %H:%M:%S", "%d %b %Y %H:%M", "%d-%b-%Y %H:%M:%S",
    "%d-%b-%Y %H:%M", "%b %d, %Y %H:%M:%S", "%d %B %Y %H:%M:%S",
)  # fmt: skip
_DIGITS = {14: ("%Y%m%d%H%M%S",), 12: ("%Y%m%d%H%M",)}
_HALF_DAY = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class TimeReader:
    """Reads one agency's times into UTC."""

    zone: ZoneInfo
    date_order: str = ""
    formats: Sequence[str] = ()

    def read(self, text: str, call: datetime | None = None) -> datetime:
        """The moment in UTC, or an :class:`InputError` that does not quote the cell.

        A time of day alone takes the date of ``call``, or the next one when it
        would otherwise lie half a day or more before it.
        """
        clock = _CLOCK.fullmatch(text)
        return self._utc(self._of_day(clock, call) if clock else self._wall(text), call)

    def _wall(self, text: str) -> datetime:
        for form in self.formats:
            with suppress(ValueError):
                return datetime.strptime(text, form)
        found = _SLASHED.fullmatch(text)
        if found:
            return self._slashed(found)
        forms: tuple[str, ...] = ()
        if text.isdigit():  # exact lengths: strptime takes fewer digits for a field than it should
            forms = _DIGITS.get(len(text), ())
        elif ":" in text:
            forms = _BUILT_IN
            with suppress(ValueError):
                return datetime.fromisoformat(text)
        for form in forms:
            with suppress(ValueError):
                return datetime.strptime(text, form)
        raise InputError(f"is not a known form of a time (it looks like {shape(text)!r})")

    def _of_day(self, clock: re.Match[str], call: datetime | None) -> datetime:
        if call is None:
            raise InputError("is a time of day without a date")
        local = call.astimezone(self.zone)
        try:
            wall = local.replace(
                tzinfo=None, fold=0, hour=int(clock["hour"]), minute=int(clock["minute"]),
                second=int(clock["second"] or 0), microsecond=0,
            )  # fmt: skip
        except ValueError:
            raise InputError("is not a time of day") from None
        if local.replace(tzinfo=None) - wall >= _HALF_DAY:
            wall += timedelta(days=1)
        return wall

    def _slashed(self, found: re.Match[str]) -> datetime:
        first, second = int(found["a"]), int(found["b"])
        order = self.date_order or ("dmy" if first > 12 else "mdy" if second > 12 else "")
        if not order and first != second:
            raise InputError(
                "could be two days, day or month first; set input.date_order to dmy or mdy"
            )
        day, month = (first, second) if order == "dmy" else (second, first)
        hour, half = int(found["hour"]), (found["half"] or "").lower()
        try:
            if half:
                if not 1 <= hour <= 12:
                    raise ValueError
                hour = hour % 12 + (12 if half == "pm" else 0)
            return datetime(
                int(found["year"]), month, day, hour, int(found["minute"]),
                int(found["second"] or 0),
            )  # fmt: skip
        except ValueError:
            named = {"dmy": ", day first", "mdy": ", month first"}.get(order, "")
            raise InputError(f"is not a date and time of the calendar{named}") from None

    def _utc(self, moment: datetime, call: datetime | None) -> datetime:
        try:
            if moment.tzinfo is not None:
                return moment.astimezone(UTC)
            first = moment.replace(tzinfo=self.zone).astimezone(UTC)
            if first.astimezone(self.zone).replace(tzinfo=None) != moment:
                raise InputError("does not exist: clocks were put forward over it")
            if call is not None and first < call:
                second = moment.replace(tzinfo=self.zone, fold=1).astimezone(UTC)
                return second if second >= call else first
            return first
        except OverflowError:
            raise InputError("is outside the calendar") from None


def shape(text: str) -> str:
    """What a cell looks like without what it says: letters become a, digits 9."""
    marks = ("9" if c.isdigit() else "a" if c.isalpha() else c for c in text[:24])
    return "".join(marks) + ("…" if len(text) > 24 else "")

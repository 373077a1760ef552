"""From cells to values: the table of any agency's file, and every reason against a row.

Without a zone a time is the city's own. An hour that the clock passes twice
counts as the first, unless that would lie before the call; an hour that it
skips is refused. A date whose day and month could be in either order is
refused unless the settings name their order.
"""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.records.raw_records import EXTRA, RawRecords
from ideal_dispatch.spreadsheets import number

EARLIEST = np.datetime64("1970-01-01", "us")
LATEST = np.datetime64("2100-01-01", "us")

_SLASHED = re.compile(
    r"(\d{1,2})[/.\-](\d{1,2})[/.\-](\d{4})[ T]+(\d{1,2}:\d{2}(?::\d{2})?)(?:\.\d+)?\s*([ap]m)?",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_WALL = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M")
_BUILT_IN = (
    "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y%m%d %H:%M:%S",
    "%Y.%m.%d %H:%M:%S", "%d %b %Y %H:%M:%S", "%d %b %Y %H:%M", "%d-%b-%Y %H:%M:%S",
    "%d-%b-%Y %H:%M", "%b %d, %Y %H:%M:%S", "%d %B %Y %H:%M:%S",
)  # fmt: skip
_DIGITS = {14: ("%Y%m%d%H%M%S",), 12: ("%Y%m%d%H%M",)}
_HALF_DAY = timedelta(hours=12)
_DETAILS = {
    r" \(it looks like .*\)$": "",
    r"road is [\d.,]+ k?m away": "road is too far away",
    r"has \d+ cells where the header has \d+": "has more or fewer cells than the header",
    r"^depot .* is not in": "its depot is not in",
    r"taken apart into cells: .*": "taken apart into cells",
    r" for [\d]+ to [\d]+, not for \d+": " for other years only",
}
"""What differs from row to row in a reason, and what stands for all of them."""

Times = npt.NDArray[np.datetime64]


class Reasons(defaultdict[int, list[str]]):
    """Why rows of a table cannot be used, by their position."""

    def __init__(self) -> None:
        super().__init__(list)

    def add(self, rows: BoolArray, reason: str, field: str = "") -> None:
        """Say it of these rows, except where the ``field`` could not even be read."""
        for row in np.flatnonzero(rows).tolist():
            if not field or not any(text.startswith(f"{field} ") for text in self.get(row, ())):
                self[row].append(reason)

    def without(self, count: int) -> BoolArray:
        """Which of ``count`` rows have none."""
        good = np.ones(count, bool)
        good[list(self)] = False
        return good


def general(reason: str) -> str:
    """A reason without what differs from row to row."""
    for pattern, words in _DETAILS.items():
        reason = re.sub(pattern, words, reason)
    return reason


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows as values: UTC times (NaT unknown), numbers (NaN), texts; and reasons against some."""

    row: npt.NDArray[np.int64]
    times: Mapping[str, Times]
    numbers: Mapping[str, FloatArray]
    texts: Mapping[str, Sequence[str]]
    reasons: Reasons

    def __len__(self) -> int:
        return int(self.row.size)

    def seconds(self, start: str, end: str) -> FloatArray:
        """Seconds between two stamps, NaN where one is unknown."""
        return (self.times[end] - self.times[start]) / np.timedelta64(1, "s")  # NaT becomes NaN

    def check_degrees(self, *names: str) -> None:
        """Add a reason to rows whose longitudes or latitudes are out of range."""
        for name in names:
            limit, ask = (
                (90, "; are latitude and longitude swapped?") if "lat" in name else (180, "")
            )
            reason = f"{name} is not within ±{limit} degrees{ask}"
            self.reasons.add(np.abs(self.numbers[name]) > limit, reason, name)

    def check_year(self, name: str, at: Times) -> None:
        """Add a reason to rows whose times are out of range."""
        self.reasons.add((at < EARLIEST) | (at > LATEST), f"{name} is not between 1970 and 2100")

    def repeated(self, call: str, needed: str, usable: BoolArray) -> BoolArray:
        """Rows whose call and unit an earlier usable row has, where the ``needed`` is not empty."""
        seen: set[tuple[str, str]] = set()
        again = np.zeros(len(self), bool)
        rows = zip(self.texts[call], self.texts["unit"], self.texts[needed], strict=True)
        for row, (*key, known) in enumerate(rows):
            if usable[row] and known:
                again[row] = tuple(key) in seen
                seen.add((key[0], key[1]))
        return again


def read_table(
    raw: RawRecords,
    reader: "TimeReader",
    *,
    dated: Sequence[str],
    times: Sequence[str],
    numbers: Sequence[str],
    texts: Sequence[str],
) -> Table:
    """The cells as values. Reasons never quote a cell: what it says might be personal.

    The date of a time of day alone is that of the ``dated`` columns, of which the last with a
    time counts; they come first, the earliest before the others.
    """
    reasons, empty = Reasons(), [""] * len(raw.row)
    found: dict[str, Times] = {}
    calls: list[datetime | None] = [None] * len(empty)
    for name in (*dated, *(name for name in times if name not in dated)):
        moments: list[datetime | None] = []
        for row, (text, call) in enumerate(zip(raw.cells.get(name, empty), calls, strict=True)):
            moments.append(None)
            alone = ":" in text and len(text) <= 8
            if not text or (alone and call is None and name != dated[0]):
                continue  # a time of day means nothing without the call's date, missed anyway
            try:
                moments[row] = reader.read(text, call)
            except InputError as error:
                reasons[row].append(f"{name} {error}")
        if name in dated:
            calls = [moment or call for call, moment in zip(calls, moments, strict=True)]
        plain = [None if moment is None else moment.replace(tzinfo=None) for moment in moments]
        found[name] = np.array(plain, "M8[us]")
    what = "finite number" if raw.decimal == "." else "finite number with a decimal comma"
    values = {name: np.full(len(empty), np.nan) for name in numbers}
    for name, column in values.items():
        for row, text in enumerate(raw.cells.get(name, empty)):
            if text:
                with suppress(ValueError):
                    column[row] = number(text, raw.decimal)
                if not math.isfinite(column[row]):
                    column[row] = np.nan
                    field = name.removeprefix(EXTRA)
                    reasons[row].append(f"{field} is not a {what} (it looks like {shape(text)!r})")
    words = {name: [text.strip() for text in raw.cells.get(name, empty)] for name in texts}
    return Table(np.array(raw.row, np.int64), found, values, words, reasons)


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
        if clock and call is None:
            raise InputError("is a time of day without a date")
        if clock and call is not None:
            local = call.astimezone(self.zone).replace(tzinfo=None)
            try:
                hour, minute, second = (int(part or 0) for part in clock.groups())
                moment = datetime.combine(local, time(hour, minute, second))
            except ValueError:
                raise InputError("is not a time of day") from None
            if local - moment >= _HALF_DAY:
                moment += timedelta(days=1)
        else:
            moment = self._dated(text)
        try:
            if moment.tzinfo is not None:
                return moment.astimezone(UTC)
            first = moment.replace(tzinfo=self.zone).astimezone(UTC)
            if first.astimezone(self.zone).replace(tzinfo=None) != moment:
                raise InputError("does not exist: clocks were put forward over it")
            if call is not None and first < call:
                again = moment.replace(tzinfo=self.zone, fold=1).astimezone(UTC)
                return again if again >= call else first
            return first
        except OverflowError:
            raise InputError("is outside the calendar") from None

    def _dated(self, text: str) -> datetime:
        """A time with its date, with or without a zone."""
        problem = f"is not a known form of a time (it looks like {shape(text)!r})"
        forms, slashed = tuple(self.formats), _SLASHED.fullmatch(text)
        if slashed and not _parsed(text, forms):
            a, b, year, clock, half = slashed.groups()
            order = self.date_order or ("dmy" if int(a) > 12 else "mdy" if int(b) > 12 else "")
            if not order and int(a) != int(b):
                advice = "set input.date_order to dmy or mdy"
                raise InputError(f"could be two days, day or month first; {advice}")
            day, month = (a, b) if order == "dmy" else (b, a)
            text = f"{year}-{month}-{day} {clock} {half or ''}".rstrip()
            forms = ("%Y-%m-%d %I:%M:%S %p", "%Y-%m-%d %I:%M %p") if half else _WALL
            named = {"dmy": ", day first", "mdy": ", month first"}.get(order, "")
            problem = f"is not a date and time of the calendar{named}"
        elif text.isdigit():  # exact lengths: strptime takes fewer digits than it should
            forms += _DIGITS.get(len(text), ())
        elif ":" in text:
            with suppress(ValueError):
                return _parsed(text, forms) or datetime.fromisoformat(text)
            forms += _BUILT_IN
        moment = _parsed(text, forms)
        if moment is None:
            raise InputError(problem)
        return moment


def _parsed(text: str, forms: Sequence[str]) -> datetime | None:
    for form in forms:
        with suppress(ValueError):
            return datetime.strptime(text, form)
    return None


def shape(text: str) -> str:
    """What a cell looks like without what it says: letters become a, digits 9."""
    marks = ("9" if c.isdigit() else "a" if c.isalpha() else c for c in text[:24])
    return "".join(marks) + ("…" if len(text) > 24 else "")

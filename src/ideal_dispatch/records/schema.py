"""The typed table of records: every bad row with every reason.

Without a zone a time is the city's own. An hour that the clock passes twice
counts as the first, unless that would lie before the call; an hour that it
skips is refused. A date whose day and month could be told either way is
refused unless the settings name their order.
"""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import BoolArray, FloatArray
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.errors import InputError
from ideal_dispatch.records.agency import Agency, AgencySettings, Input
from ideal_dispatch.records.raw_records import EXTRA, RawRecords
from ideal_dispatch.records.reasons import Reasons
from ideal_dispatch.spreadsheets import number

TIMES = ("call_at", "notified_at", "en_route_at", "on_scene_at", "cpr_at", "cancelled_at")
NUMBERS = ("lon", "lat", "depot_lon", "depot_lat")
TEXTS = ("call_id", "unit", "depot", "floor", "district")
EARLIEST = np.datetime64("1970-01-01", "us")
LATEST = np.datetime64("2100-01-01", "us")

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

Times = npt.NDArray[np.datetime64]


@dataclass(frozen=True, slots=True, eq=False)
class RecordTable:
    """Records in columns: UTC times (NaT where unknown), numbers (NaN), texts.

    ``at`` is the time of the context: the call's, or that of the unit's
    notification where the call's is not known. ``call_to_cpr_s`` is what the
    agency gives as such. ``extra`` holds further context numbers by name.
    """

    row: npt.NDArray[np.int64]
    times: Mapping[str, Times]
    numbers: Mapping[str, FloatArray]
    texts: Mapping[str, Sequence[str]]
    call_to_cpr_s: FloatArray
    extra: Mapping[str, FloatArray]

    def __len__(self) -> int:
        return int(self.row.size)

    @property
    def at(self) -> Times:
        call = self.times["call_at"]
        return np.where(np.isnat(call), self.times["notified_at"], call)

    def seconds(self, start: str, end: str) -> FloatArray:
        """Seconds between two stamps, NaN where one is unknown."""
        return (self.times[end] - self.times[start]) / np.timedelta64(1, "s")  # NaT becomes NaN


def typed(raw: RawRecords, settings: AgencySettings) -> tuple[RecordTable, Reasons]:
    """The cells as values, and every reason why a row cannot be used.

    Reasons never quote a cell: what it says might be personal, where a column
    is not what its name says.
    """
    reasons: Reasons = defaultdict(list)
    empty = [""] * len(raw.row)

    def numbers(field: str) -> FloatArray:
        return read_numbers(raw.cells.get(field, empty), field, raw.decimal, reasons)

    unit_s = {"seconds": 1.0, "minutes": 60.0}[settings.input.interval_unit]
    table = RecordTable(
        row=np.array(raw.row, np.int64),
        times=read_times(
            {name: raw.cells.get(name, empty) for name in TIMES},
            time_reader(settings.input, settings.agency),
            ("call_at", "notified_at"),
            reasons,
        ),
        numbers={name: numbers(name) for name in NUMBERS},
        texts={name: raw.cells.get(name, empty) for name in TEXTS},
        call_to_cpr_s=unit_s * numbers("call_to_cpr"),
        extra={name: numbers(EXTRA + name) for name in settings.extra},
    )
    return table, _checked(table, reasons)


def read_times(
    columns: Mapping[str, Sequence[str]],
    reader: "TimeReader",
    dated: Sequence[str],
    reasons: Reasons,
) -> dict[str, Times]:
    """UTC times of the columns; the date of times of day alone is that of the ``dated`` columns.

    Of those the last with a time counts, so they come first, the earliest before the others.
    """
    times: dict[str, Times] = {}
    calls: list[datetime | None] = [None] * len(columns[dated[0]])
    for name, texts in columns.items():
        moments: list[datetime | None] = []
        for row, (text, call) in enumerate(zip(texts, calls, strict=True)):
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
        times[name] = np.array(plain, "M8[us]")
    return times


def read_numbers(cells: Sequence[str], field: str, decimal: str, reasons: Reasons) -> FloatArray:
    """The numbers of a column, NaN where it has none; what is no number has a reason."""
    values = np.full(len(cells), np.nan)
    for row, text in enumerate(cells):
        if not text:
            continue
        with suppress(ValueError):
            values[row] = number(text, decimal)
        if not math.isfinite(values[row]):
            values[row] = np.nan
            what = "finite number" if decimal == "." else "finite number with a decimal comma"
            name = field.removeprefix(EXTRA)
            reasons[row].append(f"{name} is not a {what} (it looks like {shape(text)!r})")
    return values


def _checked(table: RecordTable, reasons: Reasons) -> Reasons:
    """``reasons`` and those of values that cannot be right, by position; every one of a row."""
    unread = {(row, text.partition(" ")[0]) for row, texts in reasons.items() for text in texts}

    def add(name: str, bad: BoolArray, text: str) -> None:
        for row in np.flatnonzero(bad).tolist():
            if (row, name) not in unread:
                reasons[row].append(text)

    for name, limit in (("lon", 180), ("lat", 90), ("depot_lon", 180), ("depot_lat", 90)):
        values = table.numbers[name]
        if not name.startswith("depot"):
            add(name, np.isnan(values), f"{name} is missing")
        swapped = "; are latitude and longitude swapped?" if limit == 90 else ""
        add(name, np.abs(values) > limit, f"{name} is not within ±{limit} degrees{swapped}")
    add("call_at", np.isnat(table.at), "call_at is missing")
    far = (table.at < EARLIEST) | (table.at > LATEST)
    add("call_at", far, "call_at is not between 1970 and 2100")
    placed = ~np.isnan(table.numbers["depot_lon"] + table.numbers["depot_lat"])
    named = np.array([bool(text) for text in table.texts["depot"]], bool)
    add("depot", ~(placed | named), "names no depot, neither by name nor by place")
    return defaultdict(list, sorted(reasons.items()))


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
            advice = "set input.date_order to dmy or mdy"
            raise InputError(f"could be two days, day or month first; {advice}")
        day, month = (first, second) if order == "dmy" else (second, first)
        hour, half = int(found["hour"]), (found["half"] or "").lower()
        try:
            if half:
                if not 1 <= hour <= 12:
                    raise ValueError
                hour = hour % 12 + (12 if half == "pm" else 0)
            date = int(found["year"]), month, day
            return datetime(*date, hour, int(found["minute"]), int(found["second"] or 0))
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


def time_reader(asked: Input, agency: Agency) -> TimeReader:
    """The reader of an agency's times."""
    return TimeReader(zone(agency.time_zone), asked.date_order, asked.time_formats)


def shape(text: str) -> str:
    """What a cell looks like without what it says: letters become a, digits 9."""
    marks = ("9" if c.isdigit() else "a" if c.isalpha() else c for c in text[:24])
    return "".join(marks) + ("…" if len(text) > 24 else "")

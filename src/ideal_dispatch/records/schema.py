"""The typed table of records, checked by pandera: every bad row with every reason."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.errors import InputError, MissingExtraError
from ideal_dispatch.records.agency import AgencySettings
from ideal_dispatch.records.raw_records import EXTRA, RawRecords
from ideal_dispatch.records.timestamps import TimeReader, shape
from ideal_dispatch.spreadsheets import number

TIMES = ("call_at", "notified_at", "en_route_at", "on_scene_at", "cpr_at", "cancelled_at")
NUMBERS = ("lon", "lat", "depot_lon", "depot_lat")
TEXTS = ("call_id", "unit", "depot", "floor", "district")
_EARLIEST = np.datetime64("1970-01-01", "us")
_LATEST = np.datetime64("2100-01-01", "us")

Times = npt.NDArray[np.datetime64]
Reasons = dict[int, list[str]]
"""Position in the table and why that row cannot be used."""


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
        passed = self.times[end] - self.times[start]
        whole = passed / np.timedelta64(1, "s")
        return np.where(np.isnat(passed), np.nan, whole)


def typed(raw: RawRecords, settings: AgencySettings) -> tuple[RecordTable, Reasons]:
    """The cells as values, and the rows that hold something that is none.

    Reasons never quote a cell: what it says might be personal, where a column
    is not what its name says.
    """
    reasons: Reasons = defaultdict(list)
    count = len(raw)
    empty = [""] * count

    def column(name: str) -> list[str]:
        return raw.cells.get(name, empty)

    reader = TimeReader(
        zone(settings.agency.time_zone), settings.input.date_order, settings.input.time_formats
    )
    times: dict[str, Times] = {}
    calls: list[datetime | None] = [None] * count
    for name in TIMES:
        moments = [
            _moment(reader, text, calls[i], name, i, reasons) for i, text in enumerate(column(name))
        ]
        if name == "call_at":
            calls = moments
        elif name == "notified_at":
            calls = [call or moment for call, moment in zip(calls, moments, strict=True)]
        plain = [None if m is None else m.replace(tzinfo=None) for m in moments]
        times[name] = np.array(plain, "M8[us]")

    def numbers(cells: str, name: str) -> FloatArray:
        return _numbers(column(cells), name, raw.decimal, reasons)

    unit_s = {"seconds": 1.0, "minutes": 60.0}[settings.input.interval_unit]
    table = RecordTable(
        row=np.array(raw.row, np.int64),
        times=times,
        numbers={name: numbers(name, name) for name in NUMBERS},
        texts={name: column(name) for name in TEXTS},
        call_to_cpr_s=unit_s * numbers("call_to_cpr", "call_to_cpr"),
        extra={name: numbers(EXTRA + name, name) for name in settings.extra},
    )
    return table, reasons


def _moment(
    reader: TimeReader,
    text: str,
    call: datetime | None,
    name: str,
    index: int,
    reasons: Reasons,
) -> datetime | None:
    if not text or (":" in text and len(text) <= 8 and call is None and name != "call_at"):
        return None  # a time of day means nothing without the call's date, which is missed anyway
    try:
        return reader.read(text, call)
    except InputError as error:
        reasons[index].append(f"{name} {error}")
        return None


def _numbers(cells: Sequence[str], name: str, decimal: str, reasons: Reasons) -> FloatArray:
    values = np.full(len(cells), np.nan)
    for index, text in enumerate(cells):
        if not text:
            continue
        with suppress(ValueError):
            values[index] = number(text, decimal)
        if not math.isfinite(values[index]):
            values[index] = np.nan
            what = "finite number" if decimal == "." else "finite number with a decimal comma"
            reasons[index].append(f"{name} is no {what} (it looks like {shape(text)!r})")
    return values


def check(table: RecordTable, reasons: Reasons) -> Reasons:
    """``reasons`` and those of the schema, by position; all of a row's, not the first."""
    try:
        import pandas as pd  # type: ignore[import-untyped]
        from pandera.errors import SchemaErrors
    except ImportError:
        raise MissingExtraError("preparing records", "records") from None
    if not len(table):  # a header alone; pandera would complain about types
        return {}
    frame = pd.DataFrame(
        {name: table.numbers[name] for name in NUMBERS}
        | {"call_at": table.at, "call_to_cpr": table.call_to_cpr_s}
        | {"has_depot": [bool(text) for text in table.texts["depot"]]}
    )
    collected: Reasons = defaultdict(list, {i: list(texts) for i, texts in reasons.items()})
    try:
        _schema().validate(frame, lazy=True)
    except SchemaErrors as errors:
        cases = errors.failure_cases
        for index, name, rule in zip(cases["index"], cases["column"], cases["check"], strict=True):
            position = int(index)
            text = f"{name} is missing" if rule == "not_nullable" else str(rule)
            unread = any(r.startswith(f"{name} ") for r in reasons.get(position, ()))
            if not unread and text not in collected[position]:
                collected[position].append(text)
    return {position: texts for position, texts in sorted(collected.items()) if texts}


def _schema() -> Any:
    import pandera.pandas as pa

    swapped = "; are latitude and longitude swapped?"

    def within(low: Any, high: Any, error: str) -> pa.Check:
        return pa.Check.in_range(low, high, error=error)

    no_depot = "names no depot, neither by name nor by place"
    return pa.DataFrameSchema(
        {
            "lon": pa.Column(float, within(-180, 180, "lon is not within ±180 degrees")),
            "lat": pa.Column(float, within(-90, 90, f"lat is not within ±90 degrees{swapped}")),
            "depot_lon": pa.Column(
                float, within(-180, 180, "depot_lon is not within ±180 degrees"), nullable=True
            ),
            "depot_lat": pa.Column(
                float, within(-90, 90, f"depot_lat is not within ±90 degrees{swapped}"),
                nullable=True,
            ),
            "call_at": pa.Column(
                "datetime64[us]",
                within(_EARLIEST, _LATEST, "call_at is not between 1970 and 2100"),
            ),
            "call_to_cpr": pa.Column(float, nullable=True),
            "has_depot": pa.Column(bool),
        },
        checks=pa.Check(
            lambda frame: frame["has_depot"]
            | (frame["depot_lon"].notna() & frame["depot_lat"].notna()),
            error=no_depot,
            name="depot",
        ),
    )  # fmt: skip

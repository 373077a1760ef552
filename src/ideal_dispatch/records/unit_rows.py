"""Logs with several units in a row: a row for each of them."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from ideal_dispatch.errors import InputError
from ideal_dispatch.records.raw_records import RawRecords
from ideal_dispatch.records.response_log import FIELDS, LogSettings
from ideal_dispatch.records.schema import TimeReader

CELLS = tuple(name for name in FIELDS if not name.endswith("place"))
"""The fields of a row; places have been taken apart."""


def one_a_unit(
    raw: RawRecords, settings: LogSettings, reader: TimeReader
) -> tuple[RawRecords, list[int]]:
    """The same cells with a row for each unit, and the rows that name none."""
    if not settings.unit_columns and not settings.lists:
        return raw, []
    table, without = replace(raw, row=[], cells={name: [] for name in CELLS}), []
    for at, row in enumerate(raw.row):
        cells = {name: column[at] for name, column in raw.cells.items()}
        units = list(_listed(cells, reader) if settings.lists else _beside(cells, settings))
        for unit in units:
            table.add(row, cells | unit)
        if not units:
            without.append(row)
    return table, without


def _beside(cells: Mapping[str, str], settings: LogSettings) -> Iterator[dict[str, str]]:
    """The units of columns side by side, those without any cell left out."""
    for number, table in enumerate(settings.unit_columns):
        own = {name: cells[f"{number}.{name}"] for name in table}
        if any(own.values()):
            yield own


def _listed(cells: Mapping[str, str], reader: TimeReader) -> Iterator[dict[str, str]]:
    """The units of lists such as ``M5=07:05:17``; of a unit that is listed again the first counts.

    The date is that of the call at the first dispatch, after which all other times are.
    """
    units: dict[str, dict[str, str]] = {}
    for name, text in cells.items():
        if name.startswith("list."):
            for unit, clock in _entries(text):
                units.setdefault(unit, {"unit": unit}).setdefault(name[5:], clock)
    first = next((clock for _, clock in _entries(cells["list.dispatched"])), "00:00:00")
    date = cells["date"]
    with suppress(InputError):  # told as the reason of the row
        date = f"{reader.read(date).astimezone(reader.zone):%Y-%m-%d} {first}"
    return ({**unit, "date": date} for unit in units.values())


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Units and times of a list."""
    for entry in filter(None, map(str.strip, text.split(","))):
        unit, _, clock = entry.partition("=")
        yield unit.strip(), clock.strip()

"""Tables of places and roads: rows by our own field names, whatever the columns are called."""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ideal_dispatch import spreadsheets
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.spreadsheets import plain_column

DEGREES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"lon": ("lon", "longitude", "lng", "x"), "lat": ("lat", "latitude", "y")}
)
"""Column names of a place in degrees."""

THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}([.,]\d{3})+")  # or three decimals
_HEADER_ROWS = 5  # a title may stand above the header

Rows = list[tuple[int, dict[str, str]]]
"""Line number and our fields of every row, blank values left out."""


def read(
    source: Any, names: Mapping[str, Sequence[str]], needed: Sequence[str], advice: str
) -> tuple[str, Rows]:
    """What to call the source, a file or a DataFrame, and its rows.

    ``names`` says under which column names each field is looked for, first match with a
    value first. ``advice`` says what to do where a ``needed`` field has no column.
    """
    where, _, found_rows = spreadsheets.open_table(source)
    rows = _whole(where, found_rows)
    first: dict[str, list[int]] = {}
    for _ in range(_HEADER_ROWS):
        places = spreadsheets.column_places(next(rows, (0, []))[1])
        cells = {
            field: [places[name] for name in map(plain_column, options) if name in places]
            for field, options in names.items()
        }
        first = first or cells
        if all(cells[field] for field in needed):
            break
    else:
        lost = next(field for field in needed if not first[field])
        raise InputError(
            f"{where}: no column for {lost!r} (looked for {', '.join(names[lost])}); "
            f"{advice.format(lost)}"
        )
    table: Rows = []
    for line, row in rows:
        found = {}
        for field, columns in cells.items():
            value = next((row[i].strip() for i in columns if i < len(row) and row[i].strip()), "")
            if value:
                found[field] = value
        if found:
            table.append((line, found))
    return where, table


def degrees_mark(rows: Rows) -> str:
    """The decimal mark of a table with places; degrees have no thousands."""
    return spreadsheets.decimal_mark(row.get(field, "") for _, row in rows for field in DEGREES)


def number(where: str, line: int, field: str, row: Mapping[str, str], mark: str) -> float:
    """The number of a field, or one line on why it is not one."""
    text = row.get(field, "")
    try:
        value = spreadsheets.number(text, mark)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        if THOUSANDS.fullmatch(text):
            raise InputError(
                f"{where} line {line}: {field} is {text!r}, which may be thousands or decimals; "
                "write thousands without a mark, and decimals with one mark in both files"
            )
        raise InputError(f"{where} line {line}: {field} is {text!r}; a finite number is needed")
    return value


def _whole(where: str, rows: Iterator[spreadsheets.Row]) -> Iterator[tuple[int, list[str]]]:
    for line, cells in rows:
        if isinstance(cells, str):
            raise FileFormatError(f"{where} line {line}: {cells}")
        yield line, cells

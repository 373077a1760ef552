"""Records as they were written: text cells of the mapped fields, and nothing else.

What is not mapped never gets past the reader: names, addresses and ages are
not in memory after it, and in no output.
"""

import hashlib
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ideal_dispatch import spreadsheets
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.frames import DataFrame
from ideal_dispatch.records.agency import FIELDS, AgencySettings
from ideal_dispatch.spreadsheets import plain_column

FileOrFrame: TypeAlias = str | os.PathLike[str] | DataFrame
"""A table of the caller's: a file, or a pandas DataFrame with the same columns."""

EXTRA = "extra."
"""Prefix of the columns that hold further context numbers."""

_NEEDED = (("lon",), ("lat",), ("call_at", "notified_at"), ("depot", "depot_lon"))
"""Fields of which a table must have one each."""


@dataclass(slots=True)
class RawRecords:
    """Text cells by field, a row each, and the rows that could not be taken apart.

    ``name`` is the file's, without its folder. ``row`` is the row as a
    spreadsheet shows it, the header being row 1; of XML it is the number of the
    report in the file. ``broken`` are rows without cells, with the reason.
    ``dropped`` counts columns that were not read. ``form`` says how the file is
    written and ``decimal`` is its decimal mark.
    """

    name: str
    form: str = ""
    decimal: str = "."
    checksum: str = ""
    row: list[int] = field(default_factory=list)
    cells: dict[str, list[str]] = field(default_factory=dict)
    broken: list[tuple[int, str]] = field(default_factory=list)
    dropped: int = 0

    def add(self, row: int, values: Mapping[str, str]) -> None:
        """One row; fields it does not have are empty."""
        self.row.append(row)
        for name, column in self.cells.items():
            column.append(values.get(name, ""))


def read_records(records: FileOrFrame, settings: AgencySettings) -> RawRecords:
    """The records of a file (by its ending unless the settings say which) or a DataFrame."""
    from ideal_dispatch.records.nemsis import read_nemsis

    asked, path = settings.input, records if isinstance(records, (str, os.PathLike)) else None
    is_xml = asked.format == "auto" and str(path).lower().endswith(".xml")
    if path is not None and (is_xml or asked.format == "nemsis"):
        check_source(path)
        raw = read_nemsis(path)
    else:
        table = spreadsheets.open_table(
            records, delimiter=asked.delimiter, encoding=asked.encoding, sheet=asked.sheet
        )
        raw = _mapped(*table, settings)
    with io.BytesIO(repr(raw.cells).encode()) if path is None else open(path, "rb") as content:
        hashed = hashlib.file_digest(content, lambda: hashlib.blake2b(digest_size=16))
    raw.checksum = hashed.hexdigest()
    return raw


def _mapped(
    where: str, form: str, rows: Iterable[spreadsheets.Row], settings: AgencySettings
) -> RawRecords:
    """The mapped columns of a table whose first row names them."""
    rows = iter(rows)
    header = next((cells for _, cells in rows if isinstance(cells, list)), None)
    if header is None:
        raise InputError(f"{where}: the file is empty")
    width, places = len(header), _places(where, header, settings)
    raw = RawRecords(os.path.basename(where), cells={name: [] for name in places})
    raw.dropped = width - len({i for found in places.values() for i in found})
    for number, cells in rows:
        if isinstance(cells, str):
            raw.broken.append((number, cells))
        elif len(cells) < width or any(cell.strip() for cell in cells[width:]):
            # shifted cells would bring a name into a column that is kept
            raw.broken.append((number, f"has {len(cells)} cells where the header has {width}"))
        else:
            raw.add(number, {name: _joined(cells, found) for name, found in places.items()})
    raw.decimal = settings.input.decimal or spreadsheets.decimal_mark(
        [*raw.cells["lon"], *raw.cells["lat"]]
    )
    raw.form = f"{form}, decimal {'commas' if raw.decimal == ',' else 'points'}"
    return raw


def _joined(cells: Sequence[str], places: Sequence[int]) -> str:
    """The cells of a field; a date beside a time of day loses its midnight."""
    if len(places) == 1:
        return cells[places[0]].strip()
    parts = [cells[i].strip().removesuffix(" 00:00:00") for i in places]
    return " ".join(part for part in parts if part)


def _places(where: str, header: list[str], settings: AgencySettings) -> dict[str, list[int]]:
    """Which cells make up each field: the columns that the settings name, or its own name."""
    position = spreadsheets.column_places(header)
    wanted = {name: settings.columns.get(name, ()) for name in FIELDS}
    wanted |= {EXTRA + name: (column,) for name, column in settings.extra.items()}
    places: dict[str, list[int]] = {}
    for name, columns in wanted.items():
        lost = next((column for column in columns if plain_column(column) not in position), None)
        if lost is not None:
            raise InputError(f"{where}: no column {lost!r} for {name}")
        if columns:
            places[name] = [position[plain_column(column)] for column in columns]
        elif name in position:
            places[name] = [position[name]]
    for one_of in _NEEDED:
        if not any(name in places for name in one_of):
            raise InputError(
                f"{where}: no column for {' or '.join(one_of)}; name yours under [columns]; "
                f"the file has {', '.join(map(repr, header[:20]))}"
            )
    return places

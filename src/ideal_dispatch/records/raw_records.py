"""Records as they were written: text cells of the mapped fields, and nothing else.

What is not mapped never gets past the reader: names, addresses and ages are
not in memory after it, and in no output.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from ideal_dispatch import spreadsheets
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.records.agency import FIELDS, AgencySettings

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

Source: TypeAlias = "str | os.PathLike[str] | pd.DataFrame"
"""Where records come from: a file, or a pandas DataFrame with the same columns."""

EXTRA = "extra."
"""Prefix of the columns that hold further context numbers."""


@dataclass(slots=True)
class RawRecords:
    """Text cells by field, a row each, and the rows that could not be taken apart.

    ``row`` is the row as a spreadsheet shows it, the header being row 1; of
    XML it is the number of the report in the file. ``broken`` are rows without
    cells, with the reason. ``dropped`` counts columns that were not read.
    ``form`` says how the file is written and ``decimal`` is its decimal mark.
    """

    source: str
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

    def __len__(self) -> int:
        return len(self.row)


def read_records(source: Source, settings: AgencySettings) -> RawRecords:
    """The records of a file (by its ending unless the settings say which) or a DataFrame."""
    from ideal_dispatch.records.nemsis import read_nemsis

    if not isinstance(source, (str, os.PathLike)):
        return _from_frame(source, settings)
    check_source(source)
    kind = settings.input.format
    if kind == "auto":
        kind = "nemsis" if os.fspath(source).lower().endswith(".xml") else "csv"
    records = read_nemsis(source) if kind == "nemsis" else _read_table(source, settings)
    records.checksum = file_checksum(source)
    return records


def file_checksum(path: str | os.PathLike[str]) -> str:
    """Hash of a file's bytes, for the record of what was read."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _read_table(path: str | os.PathLike[str], settings: AgencySettings) -> RawRecords:
    asked = settings.input
    form = spreadsheets.detect(
        path, delimiter=asked.delimiter, encoding=asked.encoding, sheet=asked.sheet
    )
    where = os.fspath(path)
    records = _mapped(where, form.says, spreadsheets.read(path, form), settings)
    records.source = os.path.basename(where)
    return records


def _from_frame(frame: "pd.DataFrame", settings: AgencySettings) -> RawRecords:
    if not hasattr(frame, "itertuples"):
        kind = type(frame).__name__
        raise InputError(f"records: a file or a pandas DataFrame is needed, not {kind}")
    records = _mapped("DataFrame", "pandas", spreadsheets.frame_rows(frame), settings)
    digest = hashlib.blake2b(repr(records.cells).encode(), digest_size=16)
    records.checksum = digest.hexdigest()
    return records


def _mapped(
    where: str, form: str, rows: Iterable[spreadsheets.Row], settings: AgencySettings
) -> RawRecords:
    """The mapped columns of a table whose first row names them."""
    records = RawRecords(where)
    rows = iter(rows)
    header = next((cells for _, cells in rows if isinstance(cells, list)), None)
    if header is None:
        raise InputError(f"{where}: the file is empty")
    places = _places(where, header, settings)
    records.cells = {name: [] for name in places}
    records.dropped = len(header) - len({i for found in places.values() for i in found})
    for number, cells in rows:
        _take(records, number, cells, places, len(header))
    records.decimal = settings.input.decimal or spreadsheets.decimal_mark(
        [*records.cells["lon"], *records.cells["lat"]]
    )
    records.form = f"{form}, decimal {'commas' if records.decimal == ',' else 'points'}"
    return records


def _take(
    records: RawRecords,
    number: int,
    cells: list[str] | str,
    places: Mapping[str, Sequence[int]],
    width: int,
) -> None:
    if isinstance(cells, str):
        records.broken.append((number, cells))
    elif len(cells) < width or any(cell.strip() for cell in cells[width:]):
        # shifted cells would bring a name into a column that is kept
        records.broken.append((number, f"has {len(cells)} cells where the header has {width}"))
    else:
        records.add(number, {name: _joined(cells, found) for name, found in places.items()})


def _joined(cells: Sequence[str], places: Sequence[int]) -> str:
    """The cells of a field; a date beside a time of day loses its midnight."""
    if len(places) == 1:
        return cells[places[0]].strip()
    parts = [cells[i].strip().removesuffix(" 00:00:00") for i in places]
    return " ".join(part for part in parts if part)


def _places(where: str, header: list[str], settings: AgencySettings) -> dict[str, list[int]]:
    """Which cells make up each field."""
    position = {_plain(cell): i for i, cell in reversed(list(enumerate(header)))}
    places: dict[str, list[int]] = {}
    wanted = {name: settings.columns.get(name, ()) for name in FIELDS}
    wanted |= {EXTRA + name: (column,) for name, column in settings.extra.items()}
    for name, columns in wanted.items():
        lost = next((column for column in columns if _plain(column) not in position), None)
        if lost is not None:
            raise InputError(f"{where}: no column {lost!r} for {name}")
        if columns:
            places[name] = [position[_plain(column)] for column in columns]
        elif name in position:
            places[name] = [position[name]]
    for one_of in (("lon",), ("lat",), ("call_at", "notified_at"), ("depot", "depot_lon")):
        if not any(name in places for name in one_of):
            raise InputError(
                f"{where}: no column for {' or '.join(one_of)}; name yours under [columns]; "
                f"the file has {', '.join(map(repr, header[:20]))}"
            )
    return places


def _plain(name: str) -> str:
    return "_".join(name.split()).lower()

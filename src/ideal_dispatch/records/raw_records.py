"""Records as they were written: text cells of the mapped fields, and nothing else.

What is not mapped never gets past the reader: names, addresses and ages are
not in memory after it, let alone in an output.
"""

import codecs
import csv
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.records.settings import FIELDS, AgencySettings

EXTRA = "extra."
"""Prefix of the columns that hold further context numbers."""

_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_DELIMITERS = {";": "';'", "\t": "'\\t'", "|": "'|'"}


@dataclass(slots=True)
class RawRecords:
    """Text cells by field, a row each, and the rows that could not be taken apart.

    ``row`` is the row as a spreadsheet shows it, the header being row 1; of
    XML it is the number of the report in the file. ``broken`` are rows without
    cells, with the reason. ``dropped`` counts columns that were not read.
    """

    source: str
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


def read_records(path: str | os.PathLike[str], settings: AgencySettings) -> RawRecords:
    """The records of a CSV or NEMSIS file, by its ending unless the settings say which."""
    from ideal_dispatch.records.nemsis import read_nemsis

    check_source(path)
    kind = settings.input.format
    if kind == "auto":
        kind = "nemsis" if os.fspath(path).lower().endswith(".xml") else "csv"
    records = read_nemsis(path) if kind == "nemsis" else read_csv(path, settings)
    records.checksum = file_checksum(path)
    return records


def file_checksum(path: str | os.PathLike[str]) -> str:
    """Hash of a file's bytes, for the record of what was read."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def read_csv(path: str | os.PathLike[str], settings: AgencySettings) -> RawRecords:
    """The mapped columns of a CSV file."""
    where, form = os.fspath(path), settings.input
    with open(where, "rb") as raw:
        if raw.read(2) in _MARKS and not form.encoding.lower().startswith("utf-16"):
            raise FileFormatError(f'{where}: the file is UTF-16; set input.encoding = "utf-16"')
    encoding = "utf-8-sig" if codecs.lookup(form.encoding).name == "utf-8" else form.encoding
    records = RawRecords(os.path.basename(where))
    try:
        with open(where, encoding=encoding, newline="") as file:
            reader = csv.reader(file, delimiter=form.delimiter, strict=True)
            rows = _rows(where, reader)
            header = next((r for r in rows if isinstance(r[1], list) and any(r[1])), None)
            if header is None or not isinstance(header[1], list):
                raise InputError(f"{where}: the file is empty")
            places = _places(where, header[1], settings)
            records.cells = {name: [] for name in places}
            records.dropped = len(header[1]) - len({i for found in places.values() for i in found})
            for number, cells in rows:
                _take(records, number, cells, places, len(header[1]))
    except UnicodeDecodeError as error:
        line, byte = _undecodable(where, encoding), error.object[error.start]
        raise FileFormatError(
            f"{where}{line}: byte 0x{byte:02x} is not "
            f'{form.encoding}; name the encoding, such as input.encoding = "cp1252" or "big5hkscs"'
        ) from None
    except UnicodeError as error:
        raise FileFormatError(f"{where}: not {form.encoding} text ({error})") from None
    return records


def _undecodable(where: str, encoding: str) -> str:
    """The first line that cannot be decoded, where lines can be told before decoding."""
    with open(where, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError:
                return f" line {number}"
    return ""


def _rows(where: str, reader: Any) -> Iterator[tuple[int, list[str] | str]]:
    """Number and cells of every row, or why it has none; blank rows are skipped."""
    number, last = 0, 0
    while True:
        number += 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "end of data" in str(error) and reader.line_num - last > 1:
                raise FileFormatError(
                    f"{where}: a quotation mark opened in row {number} (line {last + 1}) is never "
                    "closed; close it, or the rows after it are lost"
                ) from None
            yield number, f"cannot be taken apart into cells: {error}"
        else:
            if any(cell.strip() for cell in cells):
                yield number, cells
        last = reader.line_num


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
        texts = {
            name: " ".join(cells[i].strip() for i in found).strip()
            for name, found in places.items()
        }
        records.add(number, texts)


def _places(where: str, header: list[str], settings: AgencySettings) -> dict[str, list[int]]:
    """Which cells make up each field."""
    position = {_plain(cell): i for i, cell in reversed(list(enumerate(header)))}
    places: dict[str, list[int]] = {}
    wanted = {name: settings.columns.get(name, ()) for name in FIELDS}
    wanted |= {EXTRA + name: (column,) for name, column in settings.extra.items()}
    for name, columns in wanted.items():
        lost = next((column for column in columns if _plain(column) not in position), None)
        if lost is not None:
            raise InputError(f"{where}: no column {lost!r} for {name}{_hint(header, settings)}")
        if columns:
            places[name] = [position[_plain(column)] for column in columns]
        elif name in position:
            places[name] = [position[name]]
    for one_of in (("lon",), ("lat",), ("call_at", "notified_at"), ("depot", "depot_lon")):
        if not any(name in places for name in one_of):
            raise InputError(
                f"{where}: no column for {' or '.join(one_of)}; "
                f"name yours under [columns]{_hint(header, settings)}"
            )
    return places


def _plain(name: str) -> str:
    return "_".join(name.split()).lower()


def _hint(header: list[str], settings: AgencySettings) -> str:
    if len(header) == 1:
        for mark, text in _DELIMITERS.items():
            if mark in header[0] and mark != settings.input.delimiter:
                return f"; are cells divided by {text}? set input.delimiter"
    return ""

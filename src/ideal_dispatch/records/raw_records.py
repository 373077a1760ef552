"""Records as they were written: text cells of the mapped fields, and nothing else.

What is not mapped never gets past the reader: names, addresses and ages are
not in memory after it, and in no output.

NEMSIS v3.5 XML is read as a stream. Its elements are recognised by their local name,
whatever the namespace. A document type declaration is refused: it can hold
entities that grow without bound or that read other files.
"""

import hashlib
import io
import os
import re
import xml.parsers.expat as expat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ideal_dispatch import spreadsheets
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.frames import DataFrame
from ideal_dispatch.records.agency import Input
from ideal_dispatch.spreadsheets import plain_column

FileOrFrame: TypeAlias = str | os.PathLike[str] | DataFrame
"""A table of the caller's: a file, or a pandas DataFrame with the same columns."""

EXTRA = "extra."
"""Prefix of the columns that hold further context numbers."""

_REPORT = "PatientCareReport"
_PLACES = {
    "place": ("lon", "lat"),
    "depot_place": ("depot_lon", "depot_lat"),
    "start_place": ("start_lon", "start_lat"),
}
"""Fields that hold a longitude and a latitude in one text."""
_POINT = re.compile(r"POINT\s*\(\s*([^\s,()]+)\s+([^\s,()]+)\s*\)", re.IGNORECASE)
_LONGEST = 200  # characters of one value; more is no time, place or number
_MISSING = ("n/a", "na", "#n/a", "null", "none", "-", "--", "---", "–", "—")
"""What stands in a cell that has no value."""


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


def read_cells(
    records: FileOrFrame,
    asked: Input,
    columns: Mapping[str, tuple[str, ...]],
    *,
    needed: Sequence[tuple[str, ...]],
    elements: Mapping[str, str],
    optional: Sequence[str] = (),
) -> RawRecords:
    """The wanted cells of a file (by its ending unless ``asked`` says which) or a DataFrame.

    ``columns`` are those of each field, looked for under its own name where there are none;
    several are joined by a space, a date and a time for example, and "lon|Longitude" is the first
    of these that the table has. Of each entry of ``needed`` one field must be there, and the
    columns of an ``optional`` field may be missing. ``elements`` are what a NEMSIS file has.
    """
    path = records if isinstance(records, (str, os.PathLike)) else None
    is_xml = asked.format == "auto" and str(path).lower().endswith(".xml")
    if path is not None and (is_xml or asked.format == "nemsis"):
        check_source(path)
        raw = read_nemsis(path, elements)
    else:
        where, form, rows = spreadsheets.open_table(
            records, delimiter=asked.delimiter, encoding=asked.encoding, sheet=asked.sheet
        )
        header = next((cells for _, cells in rows if isinstance(cells, list)), None)
        if header is None:
            raise InputError(f"{where}: the file is empty")
        places = _places(where, header, columns, optional)
        for one_of in needed:
            if not any(name in places for name in one_of):
                raise InputError(
                    f"{where}: no column for {' or '.join(one_of)}; name yours under [columns]; "
                    f"the file has {', '.join(map(repr, header[:20]))}"
                )
        raw = RawRecords(os.path.basename(where), cells=_empty(places))
        raw.dropped = len(header) - len({i for found in places.values() for i in found})
        for number, cells in rows:
            if isinstance(cells, str):
                raw.broken.append((number, cells))
            elif len(cells) < len(header) or any(cell.strip() for cell in cells[len(header) :]):
                # shifted cells would bring a name into a column that is kept
                reason = f"has {len(cells)} cells where the header has {len(header)}"
                raw.broken.append((number, reason))
            else:
                raw.add(number, _split({name: _joined(cells, at) for name, at in places.items()}))
        degrees = [*raw.cells.get("lon", ()), *raw.cells.get("lat", ())]
        raw.decimal = asked.decimal or spreadsheets.decimal_mark(degrees)
        raw.form = f"{form}, decimal {'commas' if raw.decimal == ',' else 'points'}"
    with io.BytesIO(repr(raw.cells).encode()) if path is None else open(path, "rb") as content:
        hashed = hashlib.file_digest(content, lambda: hashlib.blake2b(digest_size=16))
    raw.checksum = hashed.hexdigest()
    return raw


def _places(
    where: str, header: list[str], columns: Mapping[str, tuple[str, ...]], optional: Sequence[str]
) -> dict[str, list[int]]:
    """Which cells make up each field: the columns that are named for it, or its own name."""
    position = spreadsheets.column_places(header)
    places: dict[str, list[int]] = {}
    for name, named in columns.items():
        found = []
        for column in named or (name,):
            names = map(plain_column, (column, *column.split("|")))
            at = next((position[one] for one in names if one in position), None)
            if at is not None:
                found.append(at)
            elif named and name not in optional:
                raise InputError(f"{where}: no column {column!r} for {name}")
        if len(found) == max(len(named), 1):
            places[name] = found
    return places


def _joined(cells: Sequence[str], places: Sequence[int]) -> str:
    """The cells of a field; a date beside a time of day loses its midnight."""
    midnight = " 00:00:00" if len(places) > 1 else ""
    texts = (cells[i].strip().removesuffix(midnight) for i in places)
    return " ".join(text for text in texts if text and text.casefold() not in _MISSING)


def _empty(fields: Iterable[str]) -> dict[str, list[str]]:
    """A column for each field, two for a place."""
    return {name: [] for entry in fields for name in _PLACES.get(entry, (entry,))}


def _split(values: Mapping[str, str]) -> dict[str, str]:
    """The same with longitude and latitude apart, unless they have their columns."""
    apart: dict[str, str] = {}
    for name, text in values.items():
        pair = zip(_PLACES[name], lon_lat(text), strict=True) if name in _PLACES else [(name, text)]
        apart |= {key: value for key, value in pair if value or not apart.get(key)}
    return apart


def lon_lat(text: str) -> tuple[str, str]:
    """Longitude and latitude of a text such as "(lat, lon)", "lat,lon" or "POINT (lon lat)"."""
    point = _POINT.fullmatch(text.strip())
    if point:
        return point[1], point[2]
    lat, _, lon = text.strip().removeprefix("(").removesuffix(")").partition(",")
    return lon.strip(), lat.strip()


def read_nemsis(path: str | os.PathLike[str], elements: Mapping[str, str]) -> RawRecords:
    """The patient care reports of a file; a null value of any kind is an empty cell.

    ``elements`` are the fields and the element of each; places come as longitude and latitude.
    """
    names = {element: name for name, element in elements.items()}
    records = RawRecords(os.path.basename(path), "NEMSIS XML", cells=_empty(elements))
    count, inside, field, text = 0, False, "", ""
    values: dict[str, str] = {}

    def refuse(*_: object) -> None:
        raise FileFormatError(
            f"{path}: holds a document type declaration (DOCTYPE), which NEMSIS files never "
            "need; remove it"
        )

    def start(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal count, inside, field, text
        local = name.rpartition(" ")[2]
        if local == _REPORT:
            count, inside = count + 1, True
            values.clear()
        plain = {key.rpartition(" ")[2]: value for key, value in attributes.items()}
        null = plain.get("nil") in {"true", "1"} or "NV" in plain or "PN" in plain
        field, text = names.get(local, "") if inside and not null else "", ""

    def data(more: str) -> None:
        nonlocal text
        if field and len(text) < _LONGEST:
            text += more

    def end(name: str) -> None:
        nonlocal inside, field, text
        if field and text.strip():
            values.setdefault(field, text.strip()[:_LONGEST])
        field, text = "", ""
        if inside and name.rpartition(" ")[2] == _REPORT:
            records.add(count, _split(values))
            inside = False

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = data
    try:
        with open(path, "rb") as file:
            parser.ParseFile(file)
    except expat.ExpatError as error:
        raise FileFormatError(f"{path}: not a whole XML file ({error})") from None
    if not count:
        raise FileFormatError(f"{path}: holds no {_REPORT}; is it NEMSIS v3.5 EMS data?")
    return records

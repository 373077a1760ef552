"""Records as they were written: text cells of the mapped fields, and nothing else.

What is not mapped never gets past the reader: names, addresses and ages are
not in memory after it, and in no output.

NEMSIS v3.5 XML is read as a stream. Its elements are told by their local name,
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
from ideal_dispatch.records.agency import FIELDS, AgencySettings, Input
from ideal_dispatch.spreadsheets import plain_column

FileOrFrame: TypeAlias = str | os.PathLike[str] | DataFrame
"""A table of the caller's: a file, or a pandas DataFrame with the same columns."""

EXTRA = "extra."
"""Prefix of the columns that hold further context numbers."""

_NEEDED = (("lon",), ("lat",), ("call_at", "notified_at"), ("depot", "depot_lon"))
"""Fields of which a table of calls must have one each."""

_ELEMENTS = {
    "call_id": "eResponse.03",
    "unit": "eResponse.13",
    "depot": "eResponse.14",
    "depot_place": "eResponse.17",
    "place": "eScene.11",
    "call_at": "eTimes.01",
    "notified_at": "eTimes.03",
    "en_route_at": "eTimes.05",
    "on_scene_at": "eTimes.06",
    "cancelled_at": "eTimes.14",
    "cpr_at": "eArrest.19",
}
"""Our field and its NEMSIS element: call sign .14 names the depot by ``[depots.aliases]``, GPS .17
places it; a place is one text "latitude,longitude"."""

_REPORT = "PatientCareReport"
_PLACES = {
    "place": ("lon", "lat"),
    "depot_place": ("depot_lon", "depot_lat"),
    "start_place": ("start_lon", "start_lat"),
}
"""Fields that hold a longitude and a latitude in one text."""
_POINT = re.compile(r"POINT\s*\(\s*([^\s,()]+)\s+([^\s,()]+)\s*\)", re.IGNORECASE)
_LONGEST = 200  # characters of one value; more is no time, place or number


@dataclass(frozen=True, slots=True)
class Wanted:
    """The fields to take from a table, and the columns of each.

    Several columns are joined by a space, a date and a time for example. A field without columns
    is looked for under its own name. A column "lon|Longitude" is the first of these that the
    table has. Of each entry of ``needed`` one field must be there, and the columns of an
    ``optional`` field may be missing. ``elements`` are what a NEMSIS file has for the fields.
    """

    columns: Mapping[str, tuple[str, ...]]
    needed: tuple[tuple[str, ...], ...] = ()
    elements: Mapping[str, str] = field(default_factory=dict)
    optional: tuple[str, ...] = ()


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
    """The records of a file of calls, or of a DataFrame."""
    columns = {name: settings.columns.get(name, ()) for name in FIELDS}
    columns |= {EXTRA + name: (column,) for name, column in settings.extra.items()}
    return read_cells(records, settings.input, Wanted(columns, _NEEDED, _ELEMENTS))


def read_cells(records: FileOrFrame, asked: Input, wanted: Wanted) -> RawRecords:
    """The wanted cells of a file (by its ending unless ``asked`` says which) or a DataFrame."""
    path = records if isinstance(records, (str, os.PathLike)) else None
    is_xml = asked.format == "auto" and str(path).lower().endswith(".xml")
    if path is not None and (is_xml or asked.format == "nemsis"):
        check_source(path)
        raw = read_nemsis(path, wanted.elements)
    else:
        table = spreadsheets.open_table(
            records, delimiter=asked.delimiter, encoding=asked.encoding, sheet=asked.sheet
        )
        raw = _mapped(*table, asked, wanted)
    with io.BytesIO(repr(raw.cells).encode()) if path is None else open(path, "rb") as content:
        hashed = hashlib.file_digest(content, lambda: hashlib.blake2b(digest_size=16))
    raw.checksum = hashed.hexdigest()
    return raw


def _mapped(
    where: str, form: str, rows: Iterable[spreadsheets.Row], asked: Input, wanted: Wanted
) -> RawRecords:
    """The mapped columns of a table whose first row names them."""
    rows = iter(rows)
    header = next((cells for _, cells in rows if isinstance(cells, list)), None)
    if header is None:
        raise InputError(f"{where}: the file is empty")
    width, places = len(header), _places(where, header, wanted)
    raw = RawRecords(os.path.basename(where), cells=_empty(places))
    raw.dropped = width - len({i for found in places.values() for i in found})
    for number, cells in rows:
        if isinstance(cells, str):
            raw.broken.append((number, cells))
        elif len(cells) < width or any(cell.strip() for cell in cells[width:]):
            # shifted cells would bring a name into a column that is kept
            raw.broken.append((number, f"has {len(cells)} cells where the header has {width}"))
        else:
            raw.add(number, _split({name: _joined(cells, at) for name, at in places.items()}))
    raw.decimal = asked.decimal or spreadsheets.decimal_mark(
        [*raw.cells.get("lon", ()), *raw.cells.get("lat", ())]
    )
    raw.form = f"{form}, decimal {'commas' if raw.decimal == ',' else 'points'}"
    return raw


def _joined(cells: Sequence[str], places: Sequence[int]) -> str:
    """The cells of a field; a date beside a time of day loses its midnight."""
    midnight = " 00:00:00" if len(places) > 1 else ""
    return " ".join(filter(None, (cells[i].strip().removesuffix(midnight) for i in places)))


def _places(where: str, header: list[str], wanted: Wanted) -> dict[str, list[int]]:
    """Which cells make up each field: the columns that are named for it, or its own name."""
    position = spreadsheets.column_places(header)
    places: dict[str, list[int]] = {}
    for name, columns in wanted.columns.items():
        found = [_first(column, position) for column in columns or (name,)]
        lost = next((c for c, at in zip(columns, found, strict=False) if at is None), None)
        if lost is not None and name not in wanted.optional:
            raise InputError(f"{where}: no column {lost!r} for {name}")
        if None not in found:
            places[name] = [at for at in found if at is not None]
    for one_of in wanted.needed:
        if not any(name in places for name in one_of):
            raise InputError(
                f"{where}: no column for {' or '.join(one_of)}; name yours under [columns]; "
                f"the file has {', '.join(map(repr, header[:20]))}"
            )
    return places


def _first(column: str, position: Mapping[str, int]) -> int | None:
    """Where the column stands; of "lon|Longitude" the first that is there."""
    names = map(plain_column, (column, *column.split("|")))
    return next((position[name] for name in names if name in position), None)


def _empty(fields: Iterable[str]) -> dict[str, list[str]]:
    """A column for each field, two for a place."""
    return {name: [] for entry in fields for name in _PLACES.get(entry, (entry,))}


def _split(values: Mapping[str, str]) -> dict[str, str]:
    """The same with longitude and latitude apart, unless they stand in columns of their own."""
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


def read_nemsis(
    path: str | os.PathLike[str], elements: Mapping[str, str] = _ELEMENTS
) -> RawRecords:
    """The patient care reports of a file; a null value of any kind is an empty cell.

    ``elements`` are the fields and the element of each; places come as longitude and latitude.
    """
    reports = _Reports(path, elements)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = reports.refuse
    parser.StartElementHandler = reports.start
    parser.EndElementHandler = reports.end
    parser.CharacterDataHandler = reports.text
    try:
        with open(path, "rb") as file:
            parser.ParseFile(file)
    except expat.ExpatError as error:
        raise FileFormatError(f"{path}: not a whole XML file ({error})") from None
    if not reports.count:
        raise FileFormatError(f"{path}: holds no {_REPORT}; is it NEMSIS v3.5 EMS data?")
    return reports.records


class _Reports:
    """Gathers the wanted values of one report at a time."""

    def __init__(self, path: str | os.PathLike[str], elements: Mapping[str, str]) -> None:
        self._fields = {element: name for name, element in elements.items()}
        self.records = RawRecords(os.path.basename(path), "NEMSIS XML", cells=_empty(elements))
        self.count, self._path, self._field, self._text = 0, path, "", ""
        self._values: dict[str, str] | None = None

    def refuse(self, *_: object) -> None:
        raise FileFormatError(
            f"{self._path}: holds a document type declaration (DOCTYPE), which NEMSIS files never "
            "need; remove it"
        )

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        local = name.rpartition(" ")[2]
        if local == _REPORT:
            self.count += 1
            self._values = {}
        plain = {key.rpartition(" ")[2]: value for key, value in attributes.items()}
        null = plain.get("nil") in {"true", "1"} or "NV" in plain or "PN" in plain
        self._field = "" if null or self._values is None else self._fields.get(local, "")
        self._text = ""

    def text(self, data: str) -> None:
        if self._field and len(self._text) < _LONGEST:
            self._text += data

    def end(self, name: str) -> None:
        value, values = self._text.strip()[:_LONGEST], self._values
        if self._field and value and values is not None:
            values.setdefault(self._field, value)
        self._field, self._text = "", ""
        if name.rpartition(" ")[2] == _REPORT and values is not None:
            self.records.add(self.count, _split(values))
            self._values = None

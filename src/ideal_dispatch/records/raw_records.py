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
import xml.parsers.expat as expat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias

from ideal_dispatch import spreadsheets
from ideal_dispatch.errors import FileFormatError, InputError
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

_ELEMENTS = {
    "eResponse.03": "call_id",
    "eResponse.13": "unit",
    "eResponse.14": "depot",
    "eResponse.17": "depot_place",
    "eScene.11": "place",
    "eTimes.01": "call_at",
    "eTimes.03": "notified_at",
    "eTimes.05": "en_route_at",
    "eTimes.06": "on_scene_at",
    "eTimes.14": "cancelled_at",
    "eArrest.19": "cpr_at",
}
"""NEMSIS element and our field: call sign .14 names the depot by ``[depots.aliases]``, GPS .17
places it; a place is one text "latitude,longitude"."""

_REPORT = "PatientCareReport"
_PLACES = {"place": ("lat", "lon"), "depot_place": ("depot_lat", "depot_lon")}
_LONGEST = 200  # characters of one value; more is no time, place or number


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
    midnight = " 00:00:00" if len(places) > 1 else ""
    return " ".join(filter(None, (cells[i].strip().removesuffix(midnight) for i in places)))


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
        if columns or name in position:
            places[name] = [position[plain_column(column)] for column in columns or (name,)]
    for one_of in _NEEDED:
        if not any(name in places for name in one_of):
            raise InputError(
                f"{where}: no column for {' or '.join(one_of)}; name yours under [columns]; "
                f"the file has {', '.join(map(repr, header[:20]))}"
            )
    return places


def read_nemsis(path: str | os.PathLike[str]) -> RawRecords:
    """The patient care reports of a file; a null value of any kind is an empty cell."""
    reports = _Reports(path)
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

    def __init__(self, path: str | os.PathLike[str]) -> None:
        names = [name for name in _ELEMENTS.values() if name not in _PLACES]
        cells: dict[str, list[str]] = {name: [] for name in chain(names, *_PLACES.values())}
        self.records = RawRecords(os.path.basename(path), "NEMSIS XML", cells=cells)
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
        self._field = "" if null or self._values is None else _ELEMENTS.get(local, "")
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
            for place, (lat, lon) in _PLACES.items():
                first, _, second = values.get(place, "").partition(",")
                values |= {lat: first.strip(), lon: second.strip()}
            self.records.add(self.count, values)
            self._values = None

"""Records of a NEMSIS v3.5 XML file, read as a stream.

Elements are told by their local name, whatever the namespace. Only those in
:data:`ELEMENTS` are ever kept; patients' names, addresses and ages are passed
over unread. A document type declaration is refused: it can hold entities that
grow without bound or that read other files.
"""

import os
import xml.parsers.expat as expat
from collections.abc import Mapping
from types import MappingProxyType

from ideal_dispatch.errors import FileFormatError
from ideal_dispatch.records.raw_records import RawRecords

ELEMENTS: Mapping[str, str] = MappingProxyType(
    {
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
)
"""Element and our field: call sign .14 names the depot by ``[depots.aliases]``, GPS .17 places
it; a place is one text "latitude,longitude"."""

_REPORT = "PatientCareReport"
_PLACES = {"place": ("lat", "lon"), "depot_place": ("depot_lat", "depot_lon")}
_LONGEST = 200  # characters of one value; more is no time, place or number
_FIELDS = (*(f for f in ELEMENTS.values() if f not in _PLACES), "lat", "lon", "depot_lat",
           "depot_lon")  # fmt: skip


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
        cells: dict[str, list[str]] = {name: [] for name in _FIELDS}
        self.records = RawRecords(os.path.basename(path), "NEMSIS XML", cells=cells)
        self.count, self._path = 0, path
        self._values: dict[str, str] | None = None
        self._field = ""
        self._text: list[str] = []

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
        self._field = "" if null or self._values is None else ELEMENTS.get(local, "")
        self._text = []

    def text(self, data: str) -> None:
        if self._field and sum(map(len, self._text)) < _LONGEST:
            self._text.append(data)

    def end(self, name: str) -> None:
        value, values = "".join(self._text).strip()[:_LONGEST], self._values
        if self._field and value and values is not None:
            values.setdefault(self._field, value)
        self._field, self._text = "", []
        if name.rpartition(" ")[2] == _REPORT and values is not None:
            for place, (lat, lon) in _PLACES.items():
                first, _, second = values.get(place, "").partition(",")
                values |= {lat: first.strip(), lon: second.strip()}
            self.records.add(self.count, values)
            self._values = None

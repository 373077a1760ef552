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
    where = os.fspath(path)
    handler = _Reports(
        RawRecords(os.path.basename(where), "NEMSIS XML", cells={name: [] for name in _FIELDS})
    )
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = handler.refuse
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.CharacterDataHandler = handler.text
    try:
        with open(where, "rb") as file:
            parser.ParseFile(file)
    except expat.ExpatError as error:
        raise FileFormatError(f"{where}: not a whole XML file ({error})") from None
    except _ForbiddenError as error:
        raise FileFormatError(f"{where}: {error}") from None
    if not handler.count:
        raise FileFormatError(f"{where}: holds no {_REPORT}; is it NEMSIS v3.5 EMS data?")
    return handler.records


class _ForbiddenError(Exception):
    pass


class _Reports:
    """Gathers the wanted values of one report at a time."""

    def __init__(self, records: RawRecords) -> None:
        self.records = records
        self.count = 0
        self._values: dict[str, str] | None = None
        self._field = ""
        self._text: list[str] = []

    def refuse(self, *_: object) -> None:
        raise _ForbiddenError(
            "holds a document type declaration (DOCTYPE), which NEMSIS files never need; remove it"
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
        value = "".join(self._text).strip()[:_LONGEST]
        if self._field and value and self._values is not None:
            self._values.setdefault(self._field, value)
        self._field, self._text = "", []
        if name.rpartition(" ")[2] == _REPORT and self._values is not None:
            self.records.add(self.count, _split_places(self._values))
            self._values = None


def _split_places(values: Mapping[str, str]) -> dict[str, str]:
    cells = {name: value for name, value in values.items() if name not in _PLACES}
    for name, (lat, lon) in _PLACES.items():
        if name in values:
            first, _, second = values[name].partition(",")
            cells |= {lat: first.strip(), lon: second.strip()}
    return cells

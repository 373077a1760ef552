"""NENA EIDO (NENA-STA-021.1) → a request of ours.

An EIDO is JSON whose components are named by ``$id`` and pointed at by
``$ref``; its locations are PIDF-LO documents, XML inside JSON strings.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from xml.parsers import expat

from pydantic import ValidationError

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.schemas import RecommendationRequest

EXAMPLE = {
    "$id": "urn:emergency:uid:eido:1",
    "incidentComponent": {
        "$id": "incident-1",
        "incidentTrackingIdentifier": "urn:emergency:uid:incidentid:2026-000123:cad.example",
        "lastUpdateTimeStamp": "2026-03-01T08:15:00+08:00",
        "incidentTypeCommonRegistryText": "Cardiac arrest",
        "locationReference": [{"$ref": "location-1"}],
    },
    "locationComponent": [
        {
            "$id": "location-1",
            "locationByValue": (
                '<presence xmlns="urn:ietf:params:xml:ns:pidf" '
                'xmlns:gml="http://www.opengis.net/gml"><tuple id="t"><status>'
                '<geopriv xmlns="urn:ietf:params:xml:ns:pidf:geopriv10"><location-info>'
                '<gml:Point srsName="urn:ogc:def:crs:EPSG::4326"><gml:pos>22.28 114.15</gml:pos>'
                "</gml:Point></location-info></geopriv></status></tuple></presence>"
            ),
        }
    ],
}

_XML_BYTES = 200_000
_SPACE = " "


def request_of(document: Mapping[str, Any]) -> RecommendationRequest:
    """The request that an EIDO stands for, or one line on what it lacks."""
    components = {component["$id"]: component for component in _named(document)}
    incident = _one(document.get("incidentComponent"), components, "incidentComponent")
    call_id = incident.get("incidentTrackingIdentifier")
    if not isinstance(call_id, str):
        raise InputError("EIDO: incidentComponent has no incidentTrackingIdentifier")
    place = incident.get("locationReference", document.get("locationComponent"))
    location = _one(place, components, "incidentComponent.locationReference")
    stamp = incident.get("lastUpdateTimeStamp", document.get("lastUpdateTimeStamp"))
    kind = incident.get("incidentTypeCommonRegistryText")
    kinds = kind if isinstance(kind, list) else [kind]
    try:
        return RecommendationRequest.model_validate({
            "call_id": call_id,
            "received_at": stamp,
            "location": _place(location.get("locationByValue")),
            "note": ", ".join(str(one) for one in kinds if one is not None)[:2000] or None,
        })  # fmt: skip
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        words = str(first["msg"]).removeprefix("Value error, ")
        raise InputError(f"EIDO: {where}: {words}") from None


def _named(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every object with a ``$id``, wherever it stands; nesting is capped before."""
    if isinstance(value, Mapping):
        if isinstance(value.get("$id"), str):
            yield value
        for inner in value.values():
            yield from _named(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _named(inner)


def _one(value: Any, components: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The first object of a component or of references to some."""
    first = value[0] if isinstance(value, list) and value else value
    if isinstance(first, Mapping) and isinstance(first.get("$ref"), str):
        name = first["$ref"]
        first = components.get(name, components.get(name.removeprefix("#")))
        if first is None:
            raise InputError(f"EIDO: {where} refers to {name[:100]!r}, which is not in it")
    if not isinstance(first, Mapping):
        raise InputError(f"EIDO: {where} is missing")
    return first


def _place(text: Any) -> dict[str, float]:
    """Longitude, latitude and accuracy of a PIDF-LO with a point, circle or ellipse."""
    if not isinstance(text, str):
        raise InputError("EIDO: the location has no locationByValue; a reference is not fetched")
    found = _gml(text)
    if "pos" not in found:
        raise InputError("EIDO: the PIDF-LO has no gml:pos; a civic address alone cannot be used")
    try:
        numbers = [float(part) for part in found["pos"].split()]
        lat, lon = numbers[:2]  # EPSG:4326 says latitude first
        place = {"lon": lon, "lat": lat}
        radius = found.get("radius", found.get("semiMajorAxis"))
        if radius is not None:
            place["accuracy_m"] = float(radius)
    except ValueError:
        raise InputError(
            f"EIDO: gml:pos {found['pos'][:60]!r} is no latitude and longitude"
        ) from None
    return place


def _gml(text: str) -> dict[str, str]:
    """The first text of every element by its local name; entities are refused unread."""
    content = text.encode("utf-8", "replace")
    if len(content) > _XML_BYTES:
        raise InputError(f"EIDO: a PIDF-LO of more than {_XML_BYTES:,} bytes")
    found: dict[str, str] = {}
    inside: list[list[str]] = []

    def begin(name: str, attributes: dict[str, str]) -> None:
        inside.append([])

    def data(piece: str) -> None:
        if inside:
            inside[-1].append(piece)

    def end(name: str) -> None:
        local = name.rsplit(_SPACE, 1)[-1]
        found.setdefault(local, "".join(inside.pop()).strip())

    def refuse(*_: Any) -> None:
        raise InputError("EIDO: the PIDF-LO declares a document type; entities are not read")

    parser = expat.ParserCreate("utf-8", _SPACE)
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.CharacterDataHandler = data
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise InputError(f"EIDO: the PIDF-LO is no XML ({error})") from None
    return found

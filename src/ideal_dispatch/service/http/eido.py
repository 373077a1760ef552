"""NENA EIDO (NENA-STA-021.1) → a request of ours, and news of units.

An EIDO is JSON whose components are named by ``$id`` and pointed at by
``$ref``; its locations are PIDF-LO documents, XML inside JSON strings.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, XMLParser

from pydantic import ValidationError

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.requests import RecommendationRequest, UnitInList, first_fault
from ideal_dispatch.service.unit_news import status_of
from ideal_dispatch.service.units import FREE, Status

MOST_RESOLVED = 5000
"""Components of a document that are followed, each once."""

_XML_BYTES = 200_000
_GML, _GS = "{http://www.opengis.net/gml}", "{http://www.opengis.net/pidflo/1.0}"
_REACH = {  # shapes with one middle, and the element that says how far around it
    f"{_GML}Point": None,
    f"{_GS}Circle": "radius",
    f"{_GS}Ellipse": "semiMajorAxis",
}
_SHAPES = "gml:Point, gs:Circle or gs:Ellipse"
_SYSTEM = re.compile(r"urn:ogc:def:crs:EPSG:[0-9.]*:(4326|4979)")  # latitude first
_METRE = "urn:ogc:def:uom:EPSG::9001"
_STATUSES = (  # from the centre's own code to the coarsest word
    "unitStatusInternal",
    "secondaryUnitStatusRegistryText",
    "primaryUnitStatusRegistryText",
)

Component = Mapping[str, Any]


class Eido:
    """A document whose components are followed once each; ``resolved`` counts them."""

    def __init__(self, document: Component) -> None:
        self._document = document
        self._named = {one["$id"]: one for one in _with_id(document)}
        self._places: dict[int, dict[str, float] | InputError] = {}
        self.resolved = 0
        self._incident = self._one(document.get("incidentComponent"), "incidentComponent")
        self._sent = {
            id(resource): resource
            for dispatch in self._all(document.get("dispatchComponent"))
            for resource in self._all(dispatch.get("emergencyResourceReference"))
        }
        self._resources = self._all(document.get("emergencyResourceComponent"))
        self._locations = {
            key: self._all(one.get("unitLocationReference"))
            for key, one in {**self._sent, **{id(one): one for one in self._resources}}.items()
        }

    def request(
        self, is_depot: Callable[[str], bool], is_unit: Callable[[str], bool]
    ) -> RecommendationRequest:
        """The request that the document stands for, or one line on what it lacks.

        The primary is the first dispatched resource whose name is a unit's or a depot's, or whose
        location is described by a depot's name.
        """
        incident = self._incident
        call_id = incident.get("incidentTrackingIdentifier")
        if not isinstance(call_id, str):
            raise InputError("EIDO: incidentComponent has no incidentTrackingIdentifier")
        place = incident.get("locationReference", self._document.get("locationComponent"))
        location = self._one(place, "incidentComponent.locationReference")
        primary: dict[str, Any] | None = None
        for key, resource in self._sent.items():
            name = resource.get("emergencyResourceName")
            unit = name if isinstance(name, str) else None
            stations = [one.get("locationDescriptionText") for one in self._locations[key]]
            depots = [one for one in (*stations, unit) if isinstance(one, str) and is_depot(one)]
            if unit is not None and is_unit(unit):
                primary = {"unit": unit}
                break
            if depots:
                primary = {"depot": depots[0], "unit": unit}
                break
        kinds = _listed(incident.get("incidentTypeCommonRegistryText"))
        try:
            return RecommendationRequest.model_validate({
                "call_id": call_id,
                "received_at": _stamp(incident, self._document),
                "location": self._place(location),
                "primary": primary,
                "note": ", ".join(str(one) for one in kinds if one is not None)[:2000] or None,
            })  # fmt: skip
        except ValidationError as error:
            where, words = first_fault(error.errors())
            raise InputError(f"EIDO: {where}: {words}") from None

    def news(self, is_unit: Callable[[str], bool], codes: Mapping[str, str]) -> list[UnitInList]:
        """What the document says of known units: statuses and positions.

        What has no time or cannot be read is left out: none of it is a reason to refuse a call.
        """
        call = self._incident.get("incidentTrackingIdentifier")
        news: dict[tuple[str, str], dict[str, Any]] = {}
        for resource in self._resources:
            unit = resource.get("emergencyResourceName")
            if not (isinstance(unit, str) and is_unit(unit)):
                continue
            found: list[tuple[Component, dict[str, Any]]] = []
            if (status := _status(resource, codes)) is not None:
                on_call = id(resource) in self._sent and status not in FREE
                found.append((resource, {"status": status, "call_id": call if on_call else None}))
            for location in self._locations[id(resource)]:
                with suppress(InputError):
                    place = self._place(location)
                    found.append((location, {"lon": place["lon"], "lat": place["lat"]}))
            for component, values in found:
                at = _stamp(component, resource, self._document)
                if isinstance(at, str):
                    news.setdefault((unit, at), {"id": unit, "at": at}).update(values)
        valid = []
        for one in news.values():
            with suppress(ValidationError):
                valid.append(UnitInList.model_validate(one))
        return valid

    def _all(self, value: Any) -> list[Component]:
        """The objects of a component or of references to some, each once."""
        found = {}
        for item in _listed(value):
            self.resolved += 1
            if self.resolved > MOST_RESOLVED:
                raise InputError(f"EIDO: more than {MOST_RESOLVED:,} components and references")
            name = item.get("$ref") if isinstance(item, Mapping) else None
            if isinstance(name, str):  # the document may lack it
                item = self._named.get(name, self._named.get(name.removeprefix("#")))
            if isinstance(item, Mapping):
                found[id(item)] = item
        return list(found.values())

    def _one(self, value: Any, where: str) -> Component:
        """The first object of a component or of references to some; no other takes its place."""
        found = self._all(_listed(value)[:1])
        if not found:
            raise InputError(f"EIDO: {where} names no component of the document: {value!r:.100}")
        return found[0]

    def _place(self, location: Component) -> dict[str, float]:
        """Longitude, latitude and accuracy of a location, read once."""
        key = id(location)
        if key not in self._places:
            try:
                self._places[key] = _place(location.get("locationByValue"))
            except InputError as error:
                self._places[key] = error
        found = self._places[key]
        if isinstance(found, InputError):
            raise found
        return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _with_id(value: Any) -> Iterator[Component]:
    """Every object with a ``$id``, wherever it stands; nesting is capped before."""
    if isinstance(value, Mapping) and isinstance(value.get("$id"), str):
        yield value
    if isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _with_id(inner)


def _stamp(*components: Component) -> Any:
    """The time stamp of the first that has one."""
    name = "lastUpdateTimeStamp"
    return next((one[name] for one in components if one.get(name) is not None), None)


def _status(resource: Component, codes: Mapping[str, str]) -> Status | None:
    for name in _STATUSES:
        for text in _listed(resource.get(name)):
            with suppress(InputError):
                if isinstance(text, str) and (status := status_of(text, codes)) is not None:
                    return status
    return None


def _place(text: Any) -> dict[str, float]:
    """Longitude, latitude and accuracy of the first GML shape, which a PIDF-LO means first."""
    if not isinstance(text, str):
        raise InputError("EIDO: the location has no locationByValue; a reference is not fetched")
    content = text.encode("utf-8", "replace")
    if len(content) > _XML_BYTES:
        raise InputError(f"EIDO: a PIDF-LO of more than {_XML_BYTES:,} bytes")
    if b"<!DOCTYPE" in content:  # looked for first: the parser would go on and expand entities
        raise InputError("EIDO: the PIDF-LO declares a document type; entities are not read")
    try:
        root = ElementTree.XML(content, XMLParser(encoding="utf-8"))
    except ElementTree.ParseError as error:
        raise InputError(f"EIDO: the PIDF-LO is no XML ({error})") from None
    shape = next((one for one in root.iter() if one.tag.startswith((_GML, _GS))), None)
    if shape is None:
        raise InputError(f"EIDO: the PIDF-LO has no {_SHAPES}; a civic address cannot be used")
    if shape.tag not in _REACH:
        name = shape.tag.rpartition("}")[2]
        raise InputError(f"EIDO: the location's shape is {name[:40]}; send a {_SHAPES}")
    # other systems have other axes or another order of them: a swapped place looks like one
    systems = [one.attrib["srsName"] for one in shape.iter() if "srsName" in one.attrib]
    for system in systems or [""]:
        if _SYSTEM.fullmatch(system) is None:
            raise InputError(
                f"EIDO: the location has srsName {system[:60]!r}; "
                "urn:ogc:def:crs:EPSG::4326 or urn:ogc:def:crs:EPSG::4979 is needed"
            )
    words, numbers, _ = _measured(shape.find(f"{_GML}pos"))
    if len(numbers) not in (2, 3):
        raise InputError(f"EIDO: gml:pos {words!r} is no latitude and longitude")
    place = {"lat": numbers[0], "lon": numbers[1]}
    reach = _REACH[shape.tag]
    if reach is not None:
        words, numbers, unit = _measured(shape.find(f"{_GS}{reach}"))
        if len(numbers) != 1 or unit != _METRE:
            raise InputError(f"EIDO: {reach} {words!r} in {unit!r}; metres ({_METRE}) are needed")
        place["accuracy_m"] = numbers[0]
    return place


def _measured(element: Element | None) -> tuple[str, list[float], str]:
    """The beginning of an element's text, its numbers (none if a word is no number), its unit."""
    words = "" if element is None else (element.text or "").strip()
    unit = "" if element is None else element.get("uom", "")
    try:
        numbers = [float(word) for word in words.split()]
    except ValueError:
        numbers = []
    return words[:60], numbers, unit[:60]

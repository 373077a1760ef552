"""Which OpenStreetMap ways an ambulance drives on, and what their tags mean.

Kept: the 14 classes of the features, service roads included, and any other
carriageway (``road``, ``busway``, edited classes such as ``residential_tunnel``).
Dropped: ways for feet and bicycles, areas, parking aisles, and ways closed to
motor vehicles, unless emergency vehicles or buses are let in by name.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from ideal_dispatch.network.road_class import class_code

_NOT_ROADS = frozenset(
    {
        "abandoned", "bridleway", "bus_guideway", "bus_stop", "construction", "corridor",
        "crossing", "cycleway", "disused", "elevator", "emergency_bay", "escalator", "escape",
        "footway", "no", "path", "pedestrian", "planned", "platform", "proposed", "raceway",
        "razed", "rest_area", "services", "steps", "track", "via_ferrata",
    }
)  # fmt: skip
_PARKING = frozenset({"parking_aisle", "parking", "drive-through"})
_CLOSED = frozenset({"no", "private", "agricultural", "forestry"})
_OPEN = frozenset({"yes", "designated", "permissive", "official"})
_FORWARD = frozenset({"yes", "true", "1"})
_BACKWARD = frozenset({"-1", "reverse"})
_KMH_PER_MPH = 1.609344
_PLAUSIBLE_KMH = (5.0, 140.0)
_SEVERAL = re.compile(r"[;|]")
_SPEED = re.compile(r"^(\d+(?:\.\d+)?)\s*(mph|km/h|kmh|kph)?$")


class WayRule(NamedTuple):
    """What a way's tags say about driving on it."""

    road_class: int
    known_class: bool
    speed_kmh: float
    lanes: float
    forward: bool
    backward: bool
    name: str

    @property
    def oneway(self) -> bool:
        return self.forward != self.backward


def way_rule(tags: Mapping[str, str]) -> WayRule | str:
    """The rule for a way, or the reason why it is dropped.

    >>> way_rule({"highway": "primary", "maxspeed": "25 mph", "oneway": "yes"}).speed_kmh
    40.2336
    >>> way_rule({"highway": "steps"})
    'ways not for cars: steps'
    """
    highway = tags.get("highway", "")
    if not highway or highway in _NOT_ROADS:
        return f"ways not for cars: {highway or 'no highway tag'}"
    if tags.get("area") == "yes":
        return "ways that are areas"
    if tags.get("service") in _PARKING:
        return f"service ways: {tags['service']}"
    if _closed(tags):
        return "ways closed to motor vehicles"
    code, known = class_code(highway)
    forward, backward = _directions(tags, highway)
    return WayRule(
        road_class=code,
        known_class=known,
        speed_kmh=speed_kmh(tags.get("maxspeed", "")),
        lanes=lane_count(tags.get("lanes", "")),
        forward=forward,
        backward=backward,
        name=tags.get("name", "") or tags.get("ref", ""),
    )


def _closed(tags: Mapping[str, str]) -> bool:
    if any(tags.get(key) in _OPEN for key in ("emergency", "bus", "psv")):
        return False
    # the most specific key decides, as OpenStreetMap's access hierarchy says
    for key in ("motorcar", "motor_vehicle", "vehicle", "access"):
        if key in tags:
            return tags[key] in _CLOSED
    return False


def _directions(tags: Mapping[str, str], highway: str) -> tuple[bool, bool]:
    """Whether the way is driven along its points, and against them.

    Motorways and roundabouts are one-way unless tagged otherwise; reversible
    streets are open both ways, and so are those that exempt emergency vehicles.
    """
    implied = highway.startswith("motorway") and not highway.startswith("motorway_link")
    implied = implied or tags.get("junction") in {"roundabout", "circular"}
    oneway = tags.get("oneway", "yes" if implied else "no")
    if tags.get("oneway:emergency") == "no":
        return True, True
    return oneway not in _BACKWARD, oneway not in _FORWARD


def speed_kmh(text: str) -> float:
    """A ``maxspeed`` value in km/h, NaN when it is missing or not a plausible number.

    Of several values ("50;30") the lowest counts.

    >>> speed_kmh("50"), speed_kmh("30 mph"), speed_kmh("walk")
    (50.0, 48.28032, nan)
    """
    speeds = []
    for part in _SEVERAL.split(text):
        match = _SPEED.match(part.strip())
        if match:
            value = float(match[1]) * (_KMH_PER_MPH if match[2] == "mph" else 1.0)
            if _PLAUSIBLE_KMH[0] <= value <= _PLAUSIBLE_KMH[1]:
                speeds.append(value)
    return min(speeds, default=float("nan"))


def lane_count(text: str) -> float:
    """A ``lanes`` value, NaN when it is missing or not between 1 and 20; the lowest of several."""
    lanes = []
    for part in _SEVERAL.split(text):
        try:
            value = float(part)
        except ValueError:
            continue
        if 1 <= value <= 20:
            lanes.append(value)
    return min(lanes, default=float("nan"))

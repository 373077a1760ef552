"""Which OpenStreetMap ways an ambulance drives on, and what their tags mean.

Kept: the 14 classes of the features, service roads included, and any other
carriageway (``road``, ``busway``, edited classes such as ``residential_tunnel``).
Dropped: ways for feet and bicycles, areas, parking aisles, and ways closed to
motor vehicles, unless emergency vehicles or buses are let in by name. So are
pedestrian streets, unless emergency vehicles are: those count as living streets.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from ideal_dispatch.network.road_class import class_code, plain_class

_NOT_ROADS = frozenset(
    {
        "abandoned", "bridleway", "bus_guideway", "bus_stop", "construction", "corridor",
        "crossing", "cycleway", "demolished", "destroyed", "dismantled", "disused", "elevator",
        "emergency_bay", "escalator", "escape", "footway", "historic", "ladder", "no", "path",
        "pedestrian", "planned", "platform", "proposed", "raceway", "razed", "removed",
        "rest_area", "services", "steps", "track", "traffic_island", "via_ferrata",
    }
)  # fmt: skip
_PARKING = frozenset({"parking_aisle", "parking", "drive-through"})
_CLOSED = frozenset({"no", "private", "agricultural", "forestry"})
_OPEN = frozenset({"yes", "designated", "permissive", "official"})
_BY_NAME = frozenset({"yes", "designated"})
_FORWARD = frozenset({"yes", "true", "1"})
_BACKWARD = frozenset({"-1", "reverse"})
_KMH_PER_MPH = 1.609344
_PLAUSIBLE_KMH = (5.0, 160.0)
_NO_LIMIT_KMH = 130.0  # advised on the motorways that have no limit
_SEVERAL = re.compile(r"[;|]")
_SPEED = re.compile(r"^(\d+(?:\.\d+)?)\s*(mph|km/h|kmh|kph)?$", re.IGNORECASE)


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
    if plain_class(highway) == "pedestrian" and tags.get("emergency") in _BY_NAME:
        code, known = class_code("living_street")[0], False
    elif is_road(highway):
        code, known = class_code(highway)
    else:
        return f"ways not for cars: {plain_class(highway) or 'no highway tag'}"
    if tags.get("area") == "yes":
        return "ways that are areas"
    if tags.get("service") in _PARKING:
        return f"service ways: {tags['service']}"
    if _closed(tags):
        return "ways closed to motor vehicles"
    forward, backward = _directions(tags, plain_class(highway))
    limit_kmh = speed_kmh(tags.get("maxspeed", ""))
    if limit_kmh != limit_kmh:  # not known: the lower of those of the two directions
        each = (tags.get(f"maxspeed:{way}", "") for way in ("forward", "backward"))
        limit_kmh = speed_kmh(";".join(each))
    return WayRule(
        road_class=code,
        known_class=known,
        speed_kmh=limit_kmh,
        lanes=lane_count(tags.get("lanes", "")),
        forward=forward,
        backward=backward,
        name=tags.get("name", "") or tags.get("ref", ""),
    )


def is_road(highway: str) -> bool:
    """Whether a ``highway`` value is a carriageway, additions set aside."""
    return bool(highway) and plain_class(highway) not in _NOT_ROADS


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
    streets are open both ways, and so are those that exempt emergency vehicles
    or buses.
    """
    implied = highway == "motorway" or tags.get("junction") in {"roundabout", "circular"}
    oneway = tags.get("oneway", "yes" if implied else "no")
    if any(tags.get(f"oneway:{vehicle}") == "no" for vehicle in ("emergency", "bus", "psv")):
        return True, True
    return oneway not in _BACKWARD, oneway not in _FORWARD


def speed_kmh(text: str) -> float:
    """A ``maxspeed`` value in km/h, NaN when it is missing or not a plausible number.

    Of several values ("50;30") the lowest counts; "none" is a road without limit.

    >>> speed_kmh("50"), speed_kmh("30 mph"), speed_kmh("walk")
    (50.0, 48.28032, nan)
    """
    speeds = []
    for part in _SEVERAL.split(text):
        match = _SPEED.match(part.strip())
        if part.strip() == "none":  # as written in OpenStreetMap; "None" is a missing value
            speeds.append(_NO_LIMIT_KMH)
        elif match:
            mph = (match[2] or "").lower() == "mph"
            value = float(match[1]) * (_KMH_PER_MPH if mph else 1.0)
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

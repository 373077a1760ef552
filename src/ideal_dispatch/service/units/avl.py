"""Lines of a vehicle location (AVL) feed → news of units: NMEA 0183 and GeoJSON."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from functools import reduce
from typing import Any

from ideal_dispatch.errors import InputError
from ideal_dispatch.service import clock
from ideal_dispatch.service.clock import moment_text

NewsFields = dict[str, Any]
"""News of a unit with the fields of ``PUT /v1/fleet/units``; ``id`` and ``at`` are always there."""

FIELDS: Mapping[str, tuple[str, ...]] = {
    "id": ("unit", "id"),
    "status": ("status",),
    "station": ("station",),
    "kind": ("kind",),
    "heading": ("heading", "course"),
    "speed_kmh": ("speed_kmh", "speed"),
    "at": ("at", "time", "timestamp"),
    "call_id": ("call_id",),
}
"""Fields of news, and the properties of a GeoJSON feature that they are looked for in."""

LINE_BYTES = 1_000_000
"""What a line may have, a collection of a whole fleet too; a longer one is passed over."""

_LONGEST_NAME = 200
_MOST_UNITS = 10_000
_SAME_FIX = timedelta(seconds=10)
_KNOT_KMH = 1.852
_FASTEST_KMH = 400.0
_SENTENCE = re.compile(
    r"(?:\\(?P<tags>[^\\]*)\\)?\s*(?P<unit>[^$!\\]*?)[\s,;:]*[$!](?P<text>[^*]*)(?P<sum>.*)"
)
_CLOCK = re.compile(r"([01]\d|2[0-3])([0-5]\d)([0-5]\d|60)(\.\d+)?")
_DAY = re.compile(r"(\d\d)(\d\d)(\d\d)")
_ANGLE = re.compile(r"(\d{1,3})(\d\d(?:\.\d*)?)")


def checksum(text: str) -> str:
    """The two digits after the ``*`` of an NMEA sentence: all that stands before it, XORed."""
    return f"{reduce(lambda sum_, letter: sum_ ^ ord(letter), text, 0):02X}"


def lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Lines of what arrives in pieces. Of a line that is too long only the beginning is kept."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
        rest = rest[: LINE_BYTES + 1]
    if rest:
        yield rest.decode("utf-8", "replace")


class LineReader:
    """Reads lines one after another; what it knows of earlier ones dates the later.

    ``unit`` names the unit of lines that name none. ``fields`` are other names of properties by
    field, such as ``{"id": "vehicle"}``. ``now`` is the time of a line that has none.
    """

    def __init__(
        self,
        unit: str = "",
        fields: Mapping[str, str] | None = None,
        now: Callable[[], datetime] = clock.now,
    ) -> None:
        for name in fields or {}:
            if name not in FIELDS:
                raise InputError(f"field {name!r} is not known; known: {', '.join(FIELDS)}")
        own = {name: (given,) for name, given in (fields or {}).items()}
        self._names = {**FIELDS, **own}
        self._unit, self._now = unit, now
        self._last_rmc: dict[str, datetime] = {}

    def read(self, line: str) -> Iterable[NewsFields]:
        """News of a line, none where it says nothing of a place or a status.

        Raises an :class:`InputError` of one line where it cannot be read, after the news of all
        that can.
        """
        if len(line) > LINE_BYTES:
            raise InputError(f"a line of more than {LINE_BYTES:,} bytes")
        line = line.strip(" \t\r\n\x1e\ufeff\0")
        if not line:
            return
        if line.startswith("{"):
            yield from self._geojson(line)
            return
        found = _SENTENCE.fullmatch(line)
        if found is None:
            raise InputError("neither an NMEA sentence nor a GeoJSON feature")
        if (news := self._nmea(found)) is not None:
            yield news

    # --- NMEA 0183 -----------------------------------------------------------------

    def _nmea(self, found: re.Match[str]) -> NewsFields | None:
        _check_sum(found["text"], found["sum"], "the checksum")
        tags = _tags(found["tags"]) if found["tags"] else {}
        kind, *values = found["text"].split(",")
        fix = _FIXES.get(kind[-3:]) if re.fullmatch("[A-OQ-Z][A-Z]...", kind) else None
        if fix is None:  # of satellites, or of the maker of the device
            return None
        unit = _name(tags.get("s") or found["unit"] or self._unit, "the unit")
        told = fix([*values, *[""] * 12])
        if told is None:
            return None
        known = self._last_rmc.get(unit)
        if "day" in told:
            at = datetime.combine(told.pop("day"), told.pop("time"), UTC) + told.pop("more")
            if len(self._last_rmc) >= _MOST_UNITS:
                self._last_rmc.clear()
            self._last_rmc[unit] = at
        else:
            near = _moment(float(tags["c"])) if "c" in tags else known or self._now()
            at = _nearest(told.pop("time"), near) + told.pop("more")
            if known is not None and abs(at - known) <= _SAME_FIX:
                return None  # the same fix came as RMC, with speed and course
        return {"id": unit, "at": moment_text(at), **told}

    # --- GeoJSON -------------------------------------------------------------------

    def _geojson(self, line: str) -> Iterator[NewsFields]:
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            raise InputError("not whole JSON") from None
        many = document.get("type") == "FeatureCollection"
        features = document.get("features") if many else [document]
        if not isinstance(features, list):
            raise InputError("a FeatureCollection without features")
        bad = None
        for feature in features:
            try:
                yield self._feature(feature)
            except InputError as error:  # one vehicle without a fix must not hide the others
                bad = error
        if bad is not None:
            raise bad

    def _feature(self, feature: Any) -> NewsFields:
        if not isinstance(feature, dict) or feature.get("type") != "Feature":
            raise InputError("JSON, but no GeoJSON feature")
        properties = feature.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        told = {
            name: next((properties[key] for key in keys if properties.get(key) is not None), None)
            for name, keys in self._names.items()
        }
        unit = feature.get("id") if told["id"] is None else told["id"]
        at = self._now() if told["at"] is None else _moment(told["at"])
        news: NewsFields = {"id": _name(unit or self._unit, "the unit"), "at": moment_text(at)}
        for name in ("status", "station", "kind", "call_id"):
            if told[name] not in (None, ""):
                news[name] = _text(told[name], name)
        geometry = feature.get("geometry")
        if geometry is None and len(news) == 2:
            raise InputError("a feature without a place and a status")
        if geometry is not None:
            news |= _point(geometry)
            news |= _motion(told["heading"], told["speed_kmh"])
        return news


# --- parts of sentences ----------------------------------------------------------------


def _check_sum(text: str, given: str, what: str) -> None:
    if re.fullmatch(r"\*[0-9A-Fa-f]{2}", given) is None:
        raise InputError(f"{what} is missing" if not given else f"{what} {given[:10]!r} is none")
    if given[1:].upper() != checksum(text):
        raise InputError(f"{what} is {given[1:]}, and {checksum(text)} of what came")


def _tags(block: str) -> dict[str, str]:
    text, star, given = block.partition("*")
    _check_sum(text, star + given, "the checksum of the tag block")
    tags = dict(part.partition(":")[::2] for part in text.split(","))
    if "c" in tags and not tags["c"].isdecimal():
        raise InputError(f"the tag block's time {tags['c'][:20]!r} is none")
    return tags


def _rmc(values: list[str]) -> NewsFields | None:
    when, state, lat, north, lon, east, knots, course, day = values[:9]
    if state != "A":
        return None
    found = _DAY.fullmatch(day)
    try:
        dates = [int(part) for part in found.groups()] if found else []
        begin = datetime(2000 + dates[2], dates[1], dates[0], tzinfo=UTC)
    except (ValueError, IndexError):
        raise InputError(
            f"the date {day[:20]!r} is none, as in 230394 of day, month and year"
        ) from None
    speed = _number(knots)
    motion = _motion(_number(course), None if speed is None else speed * _KNOT_KMH)
    return {"day": begin.date(), **_time(when), **_place(lat, north, lon, east), **motion}


def _gga(values: list[str]) -> NewsFields | None:
    when, lat, north, lon, east, quality = values[:6]
    return None if quality in ("", "0") else {**_time(when), **_place(lat, north, lon, east)}


def _gll(values: list[str]) -> NewsFields | None:
    lat, north, lon, east, when, state = values[:6]
    return {**_time(when), **_place(lat, north, lon, east)} if state == "A" else None


_FIXES: Mapping[str, Callable[[list[str]], NewsFields | None]] = {
    "RMC": _rmc, "GGA": _gga, "GLL": _gll,
}  # fmt: skip
"""What a sentence tells, None where the device has no fix."""


def _time(text: str) -> NewsFields:
    """The time of day, and what there is more of it: a leap second or a part of one."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        raise InputError(f"the time {text[:20]!r} is none, as in 081836.00")
    hours, minutes, seconds = map(int, found.groups()[:3])
    more = timedelta(seconds=seconds + float(found[4] or 0))
    return {"time": time(hours, minutes), "more": more}


def _place(lat: str, north: str, lon: str, east: str) -> NewsFields:
    return _checked_place(_degrees(lon, east, "EW"), _degrees(lat, north, "NS"))


def _degrees(text: str, side: str, sides: str) -> float:
    """Of degrees and minutes written together, as in 2135.07."""
    found = _ANGLE.fullmatch(text)
    if found is None or not side or side not in sides or float(found[2]) >= 60:
        raise InputError(f"the place {text[:20]!r} {side[:5]!r} is none, as in 2135.07 N")
    degrees = int(found[1]) + float(found[2]) / 60
    return round(degrees if side == sides[0] else -degrees, 7)


def _number(text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        raise InputError(f"{text[:20]!r} is no number") from None


def _nearest(day_time: time, near: datetime) -> datetime:
    """The moment of that time of day that is nearest to another."""
    middle = datetime.combine(near.astimezone(UTC).date(), day_time, UTC)
    around = (middle + timedelta(days=days) for days in (-1, 0, 1))
    return min(around, key=lambda moment: abs(moment - near))


# --- values ----------------------------------------------------------------------------


def _name(value: Any, what: str) -> str:
    if not value and value != 0:
        raise InputError(f"{what} is not named; give --unit, or --field id=NAME")
    return _text(value, what)


def _text(value: Any, what: str) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool)
    text = str(value).strip() if whole or isinstance(value, str) else ""
    if len(text) > _LONGEST_NAME or not text.isprintable() or not (whole or isinstance(value, str)):
        raise InputError(f"{what} {str(value)[:40]!r} is no text of up to {_LONGEST_NAME} letters")
    return text


def _point(geometry: Any) -> NewsFields:
    kind = geometry.get("type") if isinstance(geometry, dict) else geometry
    if kind != "Point":
        raise InputError(f"the geometry is {str(kind)[:40]!r}; a Point is needed")
    place = geometry.get("coordinates")
    if not isinstance(place, list) or len(place) < 2 or not all(map(_is_number, place[:2])):
        raise InputError("the Point has no coordinates, as in [117.24, 21.58]")
    return _checked_place(float(place[0]), float(place[1]))


def _checked_place(lon: float, lat: float) -> NewsFields:
    if not (-180 <= lon <= 180 and -90 <= lat <= 90):
        raise InputError(f"longitude {lon:g} and latitude {lat:g} are nowhere on earth")
    if lon == 0 and lat == 0:
        raise InputError("longitude 0 and latitude 0: devices without a fix say so")
    return {"lon": lon, "lat": lat}


def _motion(heading: Any, speed_kmh: Any) -> NewsFields:
    """Heading and speed; devices say -1 for what they do not know, and jump now and then."""
    for name, value in (("heading", heading), ("speed", speed_kmh)):
        if value is not None and not _is_number(value):
            raise InputError(f"the {name} {str(value)[:40]!r} is no number")
    told: NewsFields = {}
    if heading is not None and heading >= 0:
        told["heading"] = round(float(heading) % 360, 1) % 360
    if speed_kmh is not None and 0 <= speed_kmh <= _FASTEST_KMH:
        told["speed_kmh"] = round(float(speed_kmh), 1)
    return told


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _moment(value: Any) -> datetime:
    """Of ISO 8601 with its zone, or of seconds or milliseconds since 1970."""
    try:
        if _is_number(value):
            seconds = value / 1000 if abs(value) > 1e11 else value
            return datetime.fromtimestamp(seconds, UTC)
        moment = datetime.fromisoformat(value)
    except (ValueError, TypeError, OverflowError, OSError):
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InputError(
            f"the time {str(value)[:40]!r} is none with a zone, as in 2026-03-01T08:15:00Z"
        )
    return moment.astimezone(UTC)

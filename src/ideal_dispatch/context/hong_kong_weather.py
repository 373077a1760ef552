"""The Hong Kong Observatory's present weather: one report and two tables.

Temperature, humidity and rainfall come from the current weather report, wind
and pressure from tables of automatic stations. All of it is of the last
minutes: there is no archive here.
"""

import csv
import html
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache, partial
from importlib.resources import files
from typing import Any
from zoneinfo import ZoneInfo

from ideal_dispatch.context.context import Weather
from ideal_dispatch.context.weather import (
    NEAREST_LIMIT,
    FirstKnown,
    check_query,
    measured,
    utc_now,
)
from ideal_dispatch.context.weather_stations import NOWHERE, WeatherDocuments, WeatherStations
from ideal_dispatch.errors import WeatherError

BASE_URL = "https://data.weather.gov.hk/weatherAPI"
SOURCE = "hong kong observatory"
_TABLES = "hko_data/regional-weather"
_FRESH = timedelta(minutes=5)  # the tables change every ten minutes

Row = tuple[str, str, float, datetime]
"""Variable, place, value and time."""


def hong_kong_observatory(
    base_url: str = BASE_URL,
    *,
    on_problem: Callable[[WeatherError], None] | None = None,
    now: Callable[[], datetime] = utc_now,
    **options: Any,
) -> FirstKnown:
    """All five variables of the Observatory; one document failing leaves the others.

    ``options`` are those of :class:`WeatherDocuments`.
    """
    root = base_url.rstrip("/")
    wind = partial(_table_rows, "wind_kmh", "10-minute mean speed(km/hour)")
    pressure = partial(_table_rows, "pressure_hpa", "mean sea level pressure(hpa)")
    report = {"dataType": "rhrread", "lang": "en"}
    feeds = [
        Feed(f"{root}/opendata/weather.php", _report_rows, report, now, options),
        Feed(f"{root}/{_TABLES}/latest_10min_wind.csv", wind, {}, now, options),
        Feed(f"{root}/{_TABLES}/latest_1min_pressure.csv", pressure, {}, now, options),
    ]
    return FirstKnown(feeds, on_problem)


class Feed:
    """One document of the Observatory: asked at most every five minutes, for present times only."""

    def __init__(
        self,
        url: str,
        rows: Callable[[bytes], Iterable[Row]],
        params: Mapping[str, str],
        now: Callable[[], datetime],
        options: Mapping[str, Any],
    ) -> None:
        self._rows, self._params, self._now = rows, params, now
        self._documents = WeatherDocuments(url, "weather of the Observatory", now, **options)

    def reading(self, at: datetime, lon: float, lat: float) -> Weather:
        """The latest values of the nearest stations, if they are of that time."""
        check_query(at, lon, lat)
        if abs(self._now() - at) > 2 * NEAREST_LIMIT:  # the document cannot hold it
            return Weather()
        read, params = self._stations, self._params
        return self._documents.reading(at, lon, lat, read, fresh=_FRESH, params=params)

    def _stations(self, body: bytes) -> WeatherStations:
        found: dict[tuple[str, str], dict[int, float]] = {}
        for variable, place, value, at in self._rows(body):
            found.setdefault((place, variable), {})[int(at.timestamp())] = value
        return WeatherStations(found, SOURCE, _place)


def _place(name: str, variable: str) -> tuple[float, float]:
    """Where it is: rain is of districts, and a district and a station may have the same name."""
    kind = "district" if variable == "rainfall_mm" else "station"
    return _places().get((kind, name), NOWHERE)


@cache
def _places() -> Mapping[tuple[str, str], tuple[float, float]]:
    """Longitude and latitude of stations and districts, by kind and name.

    They are rounded to 0.01° (about 1 km), enough to tell which station is nearest. Stations with
    an anemometer follow the point layer of the Observatory's wind table; the others, which only
    measure temperature, are placed by hand and may be off by a unit or two. Districts stand where
    most people live. A station that is not listed is used after all that are; so are Tate's Cairn
    and Ngong Ping, because the wind on a mountain is not the wind in the streets below.
    """
    table = (files(__package__) / "hong_kong_places.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(table.splitlines())
    return {(row["kind"], row["name"]): (float(row["lon"]), float(row["lat"])) for row in rows}


def _report_rows(body: bytes) -> Iterator[Row]:
    report = json.loads(body.decode("utf-8-sig"))
    if not isinstance(report, dict) or "updateTime" not in report:
        raise ValueError("no updateTime")
    for variable, name, time_name in (
        ("temperature_c", "temperature", "recordTime"),
        ("humidity_percent", "humidity", "recordTime"),
        ("rainfall_mm", "rainfall", "endTime"),
    ):
        block = report.get(name)
        if not isinstance(block, dict):  # an empty block is written as ""
            continue
        at = datetime.fromisoformat(block[time_name])
        if at.tzinfo is None:
            at = at.replace(tzinfo=ZoneInfo("Asia/Hong_Kong"))
        for entry in block.get("data") or ():
            value = _rain(entry) if name == "rainfall" else measured(entry.get("value"), variable)
            yield variable, html.unescape(str(entry.get("place", ""))).strip(), value, at


def _rain(entry: Mapping[str, Any]) -> float:
    """Rain of a district: the middle between its driest and its wettest gauge."""
    if str(entry.get("main", "")).upper() == "TRUE":  # under maintenance
        return math.nan
    most = measured(entry.get("max"), "rainfall_mm")
    least = measured(entry.get("min"), "rainfall_mm")
    return most if math.isnan(least) else (most + least) / 2


def _table_rows(variable: str, column: str, body: bytes) -> Iterator[Row]:
    """One variable of every whole row of a table; rows may have a cell too many."""
    reader = csv.reader(io.StringIO(body.decode("utf-8-sig")))
    header = [cell.strip().lower() for cell in next(reader, [])]
    if column not in header:
        raise ValueError(f"no column {column!r}")
    needed = ("date time", "automatic weather station", column)
    when, where, what = map(header.index, needed)
    for row in reader:
        if len(row) > max(when, where, what) and row[when].strip().isdigit():
            at = datetime.strptime(row[when].strip(), "%Y%m%d%H%M")
            zoned = at.replace(tzinfo=ZoneInfo("Asia/Hong_Kong"))
            text = row[what].strip()
            value = 0.0 if text.casefold() == "calm" else measured(text, variable)
            yield variable, row[where].strip(), value, zoned

"""Live weather in Hong Kong: a weather provider over the open data of the Hong Kong Observatory.

Put this file and hong_kong_places.csv beside the service's settings, and name it there:

    [weather]
    source = "hong_kong_weather:HongKongObservatory"

Temperature, humidity and rainfall come from the current weather report, wind and pressure from
tables of automatic stations. All of it is of the last minutes: there is no archive here.
"""

import csv
import html
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from ideal_dispatch.context import Weather
from ideal_dispatch.context.weather import (
    NEAREST_LIMIT,
    NOWHERE,
    PATIENCE,
    OutdatedWeatherError,
    WeatherDocuments,
    WeatherStations,
    measured,
    utc_now,
)
from ideal_dispatch.errors import WeatherError
from ideal_dispatch.outside_service import Patience

BASE_URL = "https://data.weather.gov.hk/weatherAPI"
_TABLES = "hko_data/regional-weather"
_WHAT = "weather of the Observatory"
_FRESH = timedelta(minutes=5)  # the tables change every ten minutes

Row = tuple[str, str, float, datetime]
"""Variable, place, value and time."""


class HongKongObservatory:
    """All five variables; a document that fails leaves the others.

    Each of the three documents is requested at most every five minutes, for present times only.
    ``patience`` is that of :class:`WeatherDocuments`.
    """

    def __init__(
        self, url: str = "", now: Callable[[], datetime] = utc_now, patience: Patience = PATIENCE
    ) -> None:
        root, self._now = (url or BASE_URL).rstrip("/"), now
        wind = partial(_table_rows, "wind_kmh", "10-minute mean speed(km/hour)")
        pressure = partial(_table_rows, "pressure_hpa", "mean sea level pressure(hpa)")
        report = {"dataType": "rhrread", "lang": "en"}
        self._documents = [
            (WeatherDocuments(f"{root}/{path}", _WHAT, now, patience=patience), rows, params)
            for path, rows, params in (
                ("opendata/weather.php", _report_rows, report),
                (f"{_TABLES}/latest_10min_wind.csv", wind, {}),
                (f"{_TABLES}/latest_1min_pressure.csv", pressure, {}),
            )
        ]

    def reading(self, at: datetime, lon: float, lat: float) -> Weather:
        """The latest values of the nearest stations, if they are of that time."""
        found, problems = Weather(), list[str]()
        if abs(self._now() - at) > 2 * NEAREST_LIMIT:  # the documents cannot hold it
            return found
        for document, rows, params in self._documents:
            read = partial(_stations, rows)
            try:
                more = document.reading(at, lon, lat, read, fresh=_FRESH, params=params)
            except WeatherError as error:
                problems.append(str(error))
                more = getattr(error, "known", Weather())
            found = found.completed_by(more)
        if problems:
            raise OutdatedWeatherError("; ".join(problems), found)
        return found


def _stations(rows: Callable[[bytes], Iterator[Row]], body: bytes) -> WeatherStations:
    found: dict[tuple[str, str], dict[int, float]] = {}
    for variable, place, value, at in rows(body):
        found.setdefault((place, variable), {})[int(at.timestamp())] = value
    return WeatherStations(found, "hong kong observatory", _place)


def _place(name: str, variable: str) -> tuple[float, float]:
    """Where it is: rain is of districts, and a district and a station may have the same name."""
    kind = "district" if variable == "rainfall_mm" else "station"
    return _places().get((kind, name), NOWHERE)


@cache
def _places() -> Mapping[tuple[str, str], tuple[float, float]]:
    """Longitude and latitude of stations and districts, by kind and name.

    They are rounded to 0.01° (about 1 km), enough to tell which station is nearest. Stations with
    an anemometer follow the point layer of the Observatory's wind table; the others are placed by
    hand. Districts stand where most people live. A station that is not listed is used after all
    that are; so are Tate's Cairn and Ngong Ping, because the wind on a mountain is not the wind
    in the streets below.
    """
    table = Path(__file__).with_name("hong_kong_places.csv").read_text(encoding="utf-8")
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

"""Open-Meteo: modelled weather of any place, past and near future.

The free service is for non-commercial use; a commercial plan has its own
address and key.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

from ideal_dispatch.context.context import Weather, require_zone
from ideal_dispatch.context.weather import (
    PATIENCE,
    WeatherDocuments,
    WeatherStations,
    measured,
    utc_now,
)
from ideal_dispatch.errors import WeatherError
from ideal_dispatch.network.geodesy import check_degrees
from ideal_dispatch.outside_service import Patience

FORECAST_URL = "https://api.open-meteo.com/v1/forecast"
ARCHIVE_URL = "https://archive-api.open-meteo.com/v1/archive"

FIELDS: Mapping[str, tuple[str, str]] = {
    "temperature_c": ("temperature_2m", "°C"),
    "rainfall_mm": ("precipitation", "mm"),  # of the hour before, as at a rain gauge
    "humidity_percent": ("relative_humidity_2m", "%"),
    "wind_kmh": ("wind_speed_10m", "km/h"),
    "pressure_hpa": ("pressure_msl", "hPa"),
}
"""Our variables, the service's names and the units we ask for."""

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_FIRST_DAY = date(1940, 1, 1)
_CELL_DEGREES = 0.1
_NEVER_CHANGES = timedelta(days=36_500)


@dataclass(frozen=True, slots=True)
class OpenMeteo:
    """Weather from one of the two endpoints; use :meth:`forecast` or :meth:`archive`.

    Places within the same 0.1 degrees share one answer, which spans a
    calendar month of the archive or a day of the forecast, so that thousands of
    records need few requests. Moments outside the endpoint's range are unknown
    and cost no request. A service that fails is left alone as ``patience`` says; for many
    records give it no rest.
    """

    url: str
    source: str
    past: timedelta | None
    future: timedelta
    monthly: bool
    patience: Patience = PATIENCE
    proxy: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    now: Callable[[], datetime] = utc_now
    _documents: WeatherDocuments = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        documents = WeatherDocuments(
            self.url, "hourly weather", self.now, patience=self.patience, proxy=self.proxy,
            secrets=[self.api_key or ""],
        )  # fmt: skip
        object.__setattr__(self, "_documents", documents)

    @classmethod
    def forecast(cls, url: str = FORECAST_URL, **options: Any) -> "OpenMeteo":
        """The forecast endpoint: 92 days back to 15 days ahead, for live calls."""
        past, future = timedelta(days=92), timedelta(days=15)
        return cls(url, "open-meteo forecast", past, future, monthly=False, **options)

    @classmethod
    def archive(cls, url: str = ARCHIVE_URL, **options: Any) -> "OpenMeteo":
        """The archive endpoint: 1940 to about five days ago, for records."""
        return cls(url, "open-meteo archive", None, -timedelta(days=5), monthly=True, **options)

    def reading(self, at: datetime, lon: float, lat: float) -> Weather:
        """The modelled weather of the nearest hour, of the cell around the place."""
        require_zone(at)
        check_degrees(lon, lat)
        moment = at.astimezone(UTC)
        # round to the hour, half past to the earlier: around midnight it is another day
        day = (moment + _HOUR / 2 - timedelta(microseconds=1)).date()
        now = self.now().astimezone(UTC)
        first = _FIRST_DAY if self.past is None else (now - self.past).date()
        last = (now + self.future).date()
        if not first <= day <= last:
            return Weather()
        start = end = day
        if self.monthly:
            start = day.replace(day=1)
            end = (start + 31 * _DAY).replace(day=1) - _DAY
        cell_lon, cell_lat = _cell(lon), _cell(lat)
        key = cell_lon, cell_lat, start
        start, end = max(start, first), min(end, last)
        # the archive's last days are revised, and its month is still growing
        settled = self.monthly and end < last
        params = {
            "latitude": f"{min(max(cell_lat, -90.0), 90.0):g}",
            "longitude": f"{min(max(cell_lon, -180.0), 180.0):g}",
            "hourly": ",".join(name for name, _ in FIELDS.values()),
            "start_date": start.isoformat(),
            "end_date": end.isoformat(),
            "timezone": "GMT",
            "temperature_unit": "celsius",
            "wind_speed_unit": "kmh",
            "precipitation_unit": "mm",
        }
        if self.api_key is not None:
            params["apikey"] = self.api_key
        read = partial(_hourly, self.source, f"{cell_lat:g},{cell_lon:g}")
        fresh = _NEVER_CHANGES if settled else _HOUR
        return self._documents.reading(at, lon, lat, read, fresh=fresh, params=params, key=key)


def _cell(degrees: float) -> float:
    return round(round(degrees / _CELL_DEGREES) * _CELL_DEGREES, 6)


def _hourly(source: str, place: str, body: bytes) -> WeatherStations:
    answer = json.loads(body)
    if isinstance(answer, dict) and answer.get("error"):
        raise WeatherError(f"refused: {str(answer.get('reason', 'no reason given'))[:160]}")
    if not isinstance(answer, dict):
        raise ValueError("not an object")
    if answer.get("utc_offset_seconds", 0) != 0:
        raise ValueError("times are not in UTC")
    hourly, units = answer["hourly"], answer["hourly_units"]
    times = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in hourly["time"]]
    seconds = [int(at.timestamp()) for at in times]
    hours = {}
    for variable, (name, unit) in FIELDS.items():
        if units[name] != unit:
            raise ValueError(f"{name} is in {units[name]}, not {unit}")
        values = hourly[name]
        if not isinstance(values, list) or len(values) != len(seconds):
            raise ValueError(f"{name} has not one value an hour")
        numbers = [measured(value, variable) for value in values]
        hours[place, variable] = dict(zip(seconds, numbers, strict=True))
    return WeatherStations(hours, source)

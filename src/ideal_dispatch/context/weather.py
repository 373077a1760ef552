"""Weather at a place and time: the protocol of a provider, stations, and documents over HTTP.

Every provider follows one rule: the value nearest in time counts (of two equally near the
earlier, which was already known), and a value more than :data:`NEAREST_LIMIT` away is unknown.
"""

import csv
import json
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ideal_dispatch.context.context import WEATHER_VARIABLES, Weather, WeatherValue, require_zone
from ideal_dispatch.errors import WeatherError, WeatherServiceError
from ideal_dispatch.network.geodesy import check_degrees, great_circle_m
from ideal_dispatch.outside_service import (
    HttpAnswer,
    NoAnswerError,
    OutsideService,
    Patience,
    public,
)

NEAREST_LIMIT = timedelta(minutes=90)
"""A value further away in time than this is unknown."""

REACH_M = 100_000.0
"""A station further away than this says nothing about a place."""

NOWHERE = (math.nan, math.nan)
"""The place of a station that is not known."""

PLAUSIBLE: Mapping[str, tuple[float, float]] = {
    "temperature_c": (-90.0, 60.0),
    "rainfall_mm": (0.0, 500.0),
    "humidity_percent": (0.0, 100.0),
    "wind_kmh": (0.0, 450.0),
    "pressure_hpa": (850.0, 1100.0),
}
"""Values outside these limits (-999, 32767) are faults of a sensor or a file: unknown."""

PATIENCE = Patience(attempts=2, longest_pause_s=5.0, failures=1, rest_s=60.0)
"""One failure is enough: a dead weather service costs two timeouts, not two a record."""

_CAPACITY = 512  # documents kept


@runtime_checkable
class WeatherProvider(Protocol):
    """A source of weather."""

    def reading(self, at: datetime, lon: float, lat: float) -> Weather:
        """The weather of the nearest hour; what the source does not know is unknown.

        A source that cannot answer raises a :class:`WeatherError`.
        """
        ...


class OutdatedWeatherError(WeatherError):
    """The source failed; ``known`` is what it said before, still within the limit."""

    def __init__(self, message: str, known: Weather) -> None:
        super().__init__(message)
        self.known = known


def source_counts(readings: Iterable[Weather]) -> dict[str, dict[str, int]]:
    """How many values of each variable came from which source, "unknown" included.

    Stored with a model, it shows when training and serving use different sources.
    """
    counts: dict[str, Counter[str]] = {variable: Counter() for variable in WEATHER_VARIABLES}
    for weather in readings:
        for variable, value in zip(WEATHER_VARIABLES, weather, strict=True):
            counts[variable][value.source if value.known else "unknown"] += 1
    return {variable: dict(sorted(counter.items())) for variable, counter in counts.items()}


def measured(value: object, variable: str) -> float:
    """A source's entry as a number, NaN where it is missing, no number or not plausible."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return math.nan
    low, high = PLAUSIBLE[variable]
    return number if low <= number <= high else math.nan


def utc_now() -> datetime:
    """The present moment."""
    return datetime.now(UTC)


class WeatherStations:
    """Stations of one source, asked for the nearest value.

    ``measured`` has values by UTC second, of a station and a variable; NaN is left out. For each
    variable the nearest station that has a value at the time counts; stations whose place is
    unknown come last. ``place`` gives longitude and latitude of a station, which may differ by
    variable.
    """

    def __init__(
        self,
        measured: Mapping[tuple[str, str], Mapping[int, float]],
        source: str,
        place: Callable[[str, str], tuple[float, float]] = lambda station, variable: NOWHERE,
    ) -> None:
        self.source = source
        self._series: dict[str, list[tuple[str, Any, Any]]] = {}  # station, UTC seconds, values
        for (station, variable), values in sorted(measured.items()):
            known = sorted((second, value) for second, value in values.items() if value == value)
            if known:
                seconds, numbers = zip(*known, strict=True)
                series = station, np.array(seconds, np.int64), np.array(numbers, np.float64)
                self._series.setdefault(variable, []).append(series)
        self._places = {
            variable: np.array([place(station, variable) for station, *_ in having]).T
            for variable, having in self._series.items()
        }

    def reading(self, at: datetime, lon: float, lat: float) -> Weather:
        """The nearest values in time and place."""
        require_zone(at)
        check_degrees(lon, lat)
        found, second, limit_s = {}, at.timestamp(), NEAREST_LIMIT.total_seconds()
        for variable, having in self._series.items():
            lons, lats = self._places[variable]
            far_m = great_circle_m(lons, lats, np.array(lon), np.array(lat))
            for index in np.argsort(far_m, kind="stable").tolist():  # NaN sorts last
                station, seconds, values = having[index]
                after = int(np.searchsorted(seconds, second))
                around = range(max(after - 1, 0), min(after + 1, seconds.size))
                near = min(around, key=lambda i: abs(seconds[i] - second))  # the earlier of equals
                if abs(seconds[near] - second) <= limit_s and not far_m[index] > REACH_M:
                    then = datetime.fromtimestamp(int(seconds[near]), UTC)
                    found[variable] = WeatherValue(float(values[near]), self.source, station, then)
                    break
        return Weather(**found)


class WeatherDocuments:
    """What the documents at one address say.

    ``what`` names what they should hold. ``options`` are those of :class:`OutsideService`.
    Questions are answered one at a time.
    """

    def __init__(
        self,
        url: str,
        what: str,
        now: Callable[[], datetime],
        *,
        patience: Patience = PATIENCE,
        **options: Any,
    ) -> None:
        self._url, self._what, self._now = url, what, now
        self._service = OutsideService("weather", patience=patience, **options)
        self._kept: OrderedDict[Hashable, tuple[datetime, timedelta, WeatherStations]]
        self._kept, self._lock = OrderedDict(), Lock()

    def reading(
        self,
        at: datetime,
        lon: float,
        lat: float,
        read: Callable[[bytes], WeatherStations],
        *,
        fresh: timedelta,
        params: Mapping[str, str],
        key: Hashable = None,
    ) -> Weather:
        """What the document of a ``key`` says; it is requested again once it is not ``fresh``.

        ``read`` makes stations of its body, and raises where it has none. Where a document
        cannot be renewed, the error has what the older one says, if there is one.
        """
        with self._lock:
            now = self._now()
            asked_at, lasts, stations = self._kept.get(key, (now, timedelta(), None))
            outdated: WeatherError | None = None
            # clocks may jump back
            if stations is None or not timedelta() <= now - asked_at < lasts:
                try:
                    stations = self._service.ask(
                        lambda answer: self._read(read, answer), "GET", self._url, params=params
                    )
                    self._kept[key] = now, fresh, stations
                except (NoAnswerError, WeatherError) as error:
                    known = isinstance(error, WeatherError)
                    outdated = error if known else WeatherServiceError(str(error))  # type: ignore[assignment]
                if stations is None:
                    assert outdated is not None
                    raise outdated
            self._kept.move_to_end(key)
            if len(self._kept) > _CAPACITY:
                self._kept.popitem(last=False)
        weather = stations.reading(at, lon, lat)
        if outdated is not None:
            raise OutdatedWeatherError(str(outdated), weather)
        return weather

    def _read(
        self, read: Callable[[bytes], WeatherStations], answer: HttpAnswer
    ) -> WeatherStations:
        status, url = answer.status, public(self._url)
        if status != 200:
            moved = answer.headers.get("location", "") if 300 <= status < 400 else ""
            said = f": moved to {public(moved).partition('?')[0]}" if moved else answer.excerpt
            raise WeatherError(f"{url}: HTTP {status}{said}; check the address and the request")
        try:
            return read(answer.body)
        except WeatherError as error:
            raise WeatherError(f"{url}: {error}") from None
        except (
            ValueError, TypeError, KeyError, AttributeError, RecursionError, csv.Error
        ) as error:  # fmt: skip
            why = "not JSON" if isinstance(error, json.JSONDecodeError) else repr(error)[:160]
            raise NoAnswerError(f"{url}: the answer is not {self._what} ({why})") from None

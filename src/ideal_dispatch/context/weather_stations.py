"""Weather stations: which is nearest, which of its values holds, and documents that tell of them.

Documents are asked for over HTTP, and kept while fresh, or while none is newer.
"""

import csv
import json
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context.context import Weather, WeatherValue
from ideal_dispatch.context.weather import NEAREST_LIMIT, OutdatedWeatherError, check_query
from ideal_dispatch.errors import WeatherError, WeatherServiceError
from ideal_dispatch.http_client import HttpAnswer, NoAnswerError, public
from ideal_dispatch.network.geodesy import great_circle_m
from ideal_dispatch.outside_service import OutsideService, Patience

PATIENCE = Patience(attempts=2, longest_pause_s=5.0, failures=1, rest_s=60.0)
"""One failure is enough: a dead weather service costs two timeouts, not two a record."""

_CAPACITY = 512  # documents kept

REACH_M = 100_000.0
"""A station further away than this says nothing about a place."""
NOWHERE = (math.nan, math.nan)
"""The place of a station that is not known."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One variable at one station: UTC seconds, sorted, and a finite value at each."""

    station: str
    at_s: npt.NDArray[np.int64]
    values: FloatArray

    def nearest(self, second: float) -> int | None:
        """Index of the value nearest in time, or None when none is within the limit."""
        after = int(np.searchsorted(self.at_s, second))
        around = range(max(after - 1, 0), min(after + 1, self.at_s.size))
        away_s = {i: abs(float(self.at_s[i]) - second) for i in around}
        best = min(away_s, key=away_s.__getitem__, default=None)  # the earlier wins a tie
        near = best is not None and away_s[best] <= NEAREST_LIMIT.total_seconds()
        return best if near else None


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
        self._series: dict[str, list[Series]] = {}
        for (station, variable), values in sorted(measured.items()):
            known = sorted((second, value) for second, value in values.items() if value == value)
            if known:
                at_s, numbers = zip(*known, strict=True)
                series = Series(station, np.array(at_s, np.int64), np.array(numbers))
                self._series.setdefault(variable, []).append(series)
        self._places = {
            variable: np.array([place(one.station, variable) for one in having]).T
            for variable, having in self._series.items()
        }

    def reading(
        self, at: datetime, lon: float, lat: float, outdated: WeatherError | None = None
    ) -> Weather:
        """The nearest values in time and place; ``outdated`` is why they could not be renewed."""
        check_query(at, lon, lat)
        found, second = {}, at.timestamp()
        for variable, having in self._series.items():
            lons, lats = self._places[variable]
            far_m = lons  # NaN is as far as it is known to be
            if lons.size > 1 or not math.isnan(lons[0]):
                far_m = great_circle_m(lons, lats, np.float64(lon), np.float64(lat))  # type: ignore[arg-type]
            for index in np.argsort(far_m, kind="stable").tolist():  # NaN sorts last
                nearest = having[index].nearest(second)
                if nearest is not None and not far_m[index] > REACH_M:
                    found[variable] = self._value(having[index], nearest)
                    break
        if outdated is not None:
            raise OutdatedWeatherError(str(outdated), Weather(**found))
        return Weather(**found)

    def hours(self) -> Iterator[Weather]:
        """Every hour of every station."""
        for station in sorted({one.station for having in self._series.values() for one in having}):
            hours: dict[int, dict[str, WeatherValue]] = {}
            for variable, having in self._series.items():
                for own in (one for one in having if one.station == station):
                    for index, second in enumerate(own.at_s.tolist()):
                        hours.setdefault(second, {})[variable] = self._value(own, index)
            yield from (Weather(**values) for _, values in sorted(hours.items()))

    def _value(self, series: Series, index: int) -> WeatherValue:
        at = datetime.fromtimestamp(int(series.at_s[index]), UTC)
        return WeatherValue(float(series.values[index]), self.source, series.station, at)


_Kept = tuple[datetime, timedelta, WeatherStations]


class WeatherDocuments:
    """What the documents at one address say.

    ``what`` names what they should hold. ``options`` are those of
    :class:`OutsideService`. Questions are answered one at a time.
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
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._lock = Lock()

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
        """What the document of a ``key`` says; it is asked again where it is no longer fresh.

        ``read`` makes stations of its body, and raises where it has none. Where it
        cannot be renewed, the error has what the older one says, if there is one.
        """
        with self._lock:
            now = self._now()
            outdated: WeatherError | None = None
            asked_at, lasts, stations = self._kept.get(key, (now, timedelta(), None))
            # clocks may jump back
            if stations is None or not timedelta() <= now - asked_at < lasts:
                reader = partial(self._read, read)
                try:
                    stations = self._service.ask(reader, "GET", self._url, params=params)
                    self._kept[key] = now, fresh, stations
                except NoAnswerError as error:
                    outdated = WeatherServiceError(str(error))
                except WeatherError as error:
                    outdated = error
                if stations is None:
                    assert outdated is not None
                    raise outdated
            self._kept.move_to_end(key)
            if len(self._kept) > _CAPACITY:
                self._kept.popitem(last=False)
        return stations.reading(at, lon, lat, outdated)

    def _read(
        self, read: Callable[[bytes], WeatherStations], answer: HttpAnswer
    ) -> WeatherStations:
        status, url = answer.status, public(self._url)
        if 300 <= status < 400:
            where = public(answer.headers.get("location", "nowhere")).partition("?")[0]
            raise WeatherError(f"{url}: moved to {where} (HTTP {status}); use that address")
        if status != 200:
            said = f"{url}: HTTP {status}{answer.excerpt}"
            raise WeatherError(f"{said}; check the address and the request")
        try:
            return read(answer.body)
        except WeatherError as error:
            raise WeatherError(f"{url}: {error}") from None
        except (
            ValueError, TypeError, KeyError, AttributeError, RecursionError, csv.Error
        ) as error:  # fmt: skip
            why = f"no {error}" if isinstance(error, KeyError) else str(error)
            why = "not JSON" if isinstance(error, json.JSONDecodeError) else why
            raise NoAnswerError(
                f"{url}: the answer is no {self._what} ({why}); is the address right?"
            ) from None

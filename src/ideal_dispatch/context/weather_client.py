"""Documents of weather services, asked over HTTP: kept while fresh, or while none is newer."""

import csv
import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime, timedelta
from functools import partial
from threading import Lock
from typing import Any

from ideal_dispatch.context.context import Weather
from ideal_dispatch.context.weather_stations import WeatherStations
from ideal_dispatch.errors import WeatherError, WeatherServiceError
from ideal_dispatch.http_client import HttpAnswer, NoAnswerError, public
from ideal_dispatch.outside_service import OutsideService, Patience

PATIENCE = Patience(attempts=2, longest_pause_s=5.0, failures=1, rest_s=60.0)
"""One failure is enough: a dead weather service costs two timeouts, not two a record."""

_CAPACITY = 512  # documents kept
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

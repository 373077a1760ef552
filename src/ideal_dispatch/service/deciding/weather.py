"""Weather, fetched in the background: a call never waits for it."""

import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ideal_dispatch.context import WEATHER_VARIABLES, Weather
from ideal_dispatch.context.weather import WeatherProvider
from ideal_dispatch.dispatch.answer import Reason
from ideal_dispatch.errors import IdealError
from ideal_dispatch.plugins import WEATHER, load_plugin
from ideal_dispatch.service.clock import moment
from ideal_dispatch.service.logs import without_secrets
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.toml_tables import complaints_about

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KnownWeather:
    """What is known about the weather now, and why that is less than it should be."""

    weather: Weather = field(default_factory=Weather)
    doubts: tuple[Reason, ...] = ()


class WeatherPoll:
    """The latest weather of one place; values older than ``stale_s`` count as unknown.

    One thread refreshes it, any may read it. ``problem`` is what was wrong the last time, empty
    where nothing was.
    """

    def __init__(
        self, provider: WeatherProvider | None, lon: float, lat: float, stale_s: float
    ) -> None:
        self._provider, self._place, self._stale_s = provider, (lon, lat), stale_s
        self._latest = Weather()
        self.problem = "" if provider is None else "not asked yet"

    def refresh(self, now: int) -> None:
        """Ask the provider once; what was known stays known until it is stale."""
        if self._provider is None:
            return
        weather, problem = Weather(), ""
        try:
            found = self._provider.reading(moment(now), *self._place)
            if not isinstance(found, Weather):
                raise TypeError(f"a reading is a Weather, not {type(found).__name__}")
            weather = found
        except IdealError as error:
            weather = getattr(error, "known", weather)  # OutdatedWeatherError
            problem = str(error)
        except Exception as error:  # whatever a provider does, calls go on
            log.exception("weather: unexpected")
            who = type(self._provider).__name__
            problem = f"provider {who} failed ({type(error).__name__}); it was logged"
        if problem:
            log.warning("weather: %s", problem)
            problem = without_secrets(problem)  # every answer and desk says it
        self._latest, self.problem = weather.completed_by(self._latest), problem

    def known(self, now: int) -> KnownWeather:
        latest, at = self._latest, moment(now)
        both = zip(WEATHER_VARIABLES, latest, strict=True)
        ages = {name: value.age(at) for name, value in both if value.known}
        dated = {name: age for name, age in ages.items() if age is not None}
        limit = timedelta(seconds=self._stale_s)
        fresh = {name: getattr(latest, name) for name, age in dated.items() if abs(age) <= limit}
        doubts = list[Reason]()
        if len(fresh) < len(dated):
            doubts.append(("weather_stale", "weather values too old to use are left out"))
        if self.problem:
            doubts.append(("weather_unavailable", f"weather: {self.problem}"))
        return KnownWeather(Weather(**fresh), tuple(doubts))


def oldest_s(weather: Weather, at: datetime) -> float | None:
    """How old the oldest known value is at a moment."""
    ages = [value.age(at) for value in weather if value.known]
    known = [age.total_seconds() for age in ages if age is not None]
    return max(max(known), 0.0) if known else None


def weather_provider(settings: ServiceSettings) -> WeatherProvider | None:
    """The source that the settings name."""
    table = settings.weather
    if table.source == "none":
        return None
    if table.source == "open-meteo":
        from ideal_dispatch.context.open_meteo import FORECAST_URL, OpenMeteo

        return OpenMeteo.forecast(table.url or FORECAST_URL, api_key=settings.weather_key or None)
    with complaints_about(settings.path):
        return load_plugin(
            WEATHER, table.source, table.options, "weather.source",
            WeatherProvider,  # type: ignore[type-abstract]
            url=table.url, key=settings.weather_key, folder=settings.folder,
        )  # fmt: skip

"""Weather, fetched in the background: a call never waits for it."""

import logging
from collections.abc import Callable
from dataclasses import replace

from ideal_dispatch.context import WEATHER_VARIABLES, Weather
from ideal_dispatch.context.weather import FirstKnown, OutdatedWeatherError, WeatherProvider
from ideal_dispatch.errors import IdealError
from ideal_dispatch.plugins import WEATHER, load_plugin
from ideal_dispatch.service.clock import moment
from ideal_dispatch.service.logs import without_secrets
from ideal_dispatch.service.messages import KnownWeather
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.toml_tables import complaints_about

log = logging.getLogger(__name__)


class WeatherPoll:
    """The latest weather of one place; values older than ``stale_s`` count as unknown.

    One thread refreshes it, any may read it.
    """

    def __init__(
        self, provider: WeatherProvider | None, lon: float, lat: float, stale_s: float
    ) -> None:
        self._failures: list[str] = []  # of those that a FirstKnown asks
        if isinstance(provider, FirstKnown) and provider.on_problem is None:
            note: Callable[[str], None] = self._failures.append
            provider = replace(provider, on_problem=lambda error: note(str(error)))
        self._provider, self._place, self._stale_s = provider, (lon, lat), stale_s
        self._latest = Weather(), "" if provider is None else "not asked yet"

    def refresh(self, now: int) -> None:
        """Ask the provider once; what was known stays known until it is stale."""
        if self._provider is None:
            return
        self._failures.clear()
        before = self._latest[0]
        try:
            try:
                weather, problem = self._provider.reading(moment(now), *self._place), ""
            except OutdatedWeatherError as error:
                weather, problem = error.known, without_secrets(str(error))
            newest = {
                name: value if value.known else old
                for name, value, old in zip(WEATHER_VARIABLES, weather, before, strict=True)
            }
        except IdealError as error:
            log.warning("weather: %s", error)
            self._latest = before, without_secrets(str(error))  # every answer and desk says it
            return
        except Exception as error:  # whatever a provider does, calls go on
            log.exception("weather: unexpected")
            who = type(self._provider).__name__
            self._latest = before, f"provider {who} failed ({type(error).__name__}); it was logged"
            return
        if self._failures:
            log.warning("weather: %s", "; ".join(self._failures))
            more = f" (and {len(self._failures) - 1} more)" if len(self._failures) > 1 else ""
            problem = without_secrets(self._failures[0]) + more
        self._latest = Weather(**newest), problem

    @property
    def problem(self) -> str:
        """What is wrong with it; empty where nothing is."""
        return self._latest[1]

    def known(self, now: int) -> KnownWeather:
        """The weather to use now."""
        latest, problem = self._latest
        ages = {
            name: (moment(now) - value.observed_at).total_seconds()
            for name, value in zip(WEATHER_VARIABLES, latest, strict=True)
            if value.known and value.observed_at is not None
        }
        fresh = {name: age for name, age in ages.items() if abs(age) <= self._stale_s}
        weather = Weather(**{name: getattr(latest, name) for name in fresh})
        age_s = max([0.0, *fresh.values()]) if fresh else None
        return KnownWeather(weather, age_s, problem, len(fresh) < len(ages))


def weather_provider(settings: ServiceSettings) -> WeatherProvider | None:
    """The source that the settings name."""
    table = settings.weather
    if table.source == "none":
        return None
    if table.source == "open-meteo":
        from ideal_dispatch.context.open_meteo import FORECAST_URL, OpenMeteo

        return OpenMeteo.forecast(table.url or FORECAST_URL, api_key=settings.weather_key or None)
    if table.source == "hong-kong-observatory":
        from ideal_dispatch.context.hong_kong_weather import BASE_URL, hong_kong_observatory

        return hong_kong_observatory(table.url or BASE_URL)
    with complaints_about(settings.path):
        return load_plugin(
            WEATHER, table.source, table.options, "weather.source",
            WeatherProvider,  # type: ignore[type-abstract]
            url=table.url, key=settings.weather_key, folder=settings.folder,
        )  # fmt: skip

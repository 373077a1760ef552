"""Weather, fetched in the background: a call never waits for it."""

import logging
from dataclasses import replace
from datetime import UTC

from ideal_dispatch.context import WEATHER_VARIABLES, Weather, WeatherValue
from ideal_dispatch.context.weather import FirstKnown, OutdatedWeatherError, WeatherProvider
from ideal_dispatch.errors import IdealError
from ideal_dispatch.plugins import WEATHER, load_plugin
from ideal_dispatch.service import clock
from ideal_dispatch.service.logs import without_secrets
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.solver.messages import KnownWeather
from ideal_dispatch.toml_tables import complaints_about

log = logging.getLogger(__name__)


class WeatherPoll:
    """The latest weather of one place; values older than ``stale_s`` count as unknown."""

    def __init__(
        self, provider: WeatherProvider | None, lon: float, lat: float, stale_s: float
    ) -> None:
        self._failures: list[str] = []  # of those that a FirstKnown asks
        if isinstance(provider, FirstKnown) and provider.on_problem is None:
            note = self._failures.append
            provider = replace(provider, on_problem=lambda error: note(str(error)))
        self._provider, self._place, self._stale_s = provider, (lon, lat), stale_s
        self._latest, self._problem = Weather(), "" if provider is None else "not asked yet"

    def refresh(self) -> None:
        """Ask the provider once; what was known stays known until it is stale."""
        if self._provider is None:
            return
        self._failures.clear()
        try:
            try:
                weather, problem = self._provider.reading(clock.now(), *self._place), ""
            except OutdatedWeatherError as error:
                weather, problem = error.known, without_secrets(str(error))
            known = {
                name: _plain(value) if value.known else before
                for name, value, before in zip(
                    WEATHER_VARIABLES, weather, self._latest, strict=True
                )
            }
        except IdealError as error:
            log.warning("weather: %s", error)
            self._problem = without_secrets(str(error))  # every answer and desk says it
            return
        except Exception as error:  # whatever a provider does, calls go on
            log.exception("weather: unexpected")
            who = type(self._provider).__name__
            self._problem = f"provider {who} failed ({type(error).__name__}); it was logged"
            return
        if self._failures:
            log.warning("weather: %s", "; ".join(self._failures))
            more = f" (and {len(self._failures) - 1} more)" if len(self._failures) > 1 else ""
            problem = without_secrets(self._failures[0]) + more
        self._latest, self._problem = Weather(**known), problem

    def known(self) -> KnownWeather:
        """The weather to use now."""
        now, latest, problem = clock.now(), self._latest, self._problem
        ages = {
            name: (now - value.observed_at).total_seconds()
            for name, value in zip(WEATHER_VARIABLES, latest, strict=True)
            if value.known and value.observed_at is not None
        }
        fresh = {name: age for name, age in ages.items() if abs(age) <= self._stale_s}
        weather = Weather(**{name: getattr(latest, name) for name in fresh})
        age_s = max([0.0, *fresh.values()]) if fresh else None
        return KnownWeather(weather, age_s, problem, len(fresh) < len(ages))


def _plain(value: WeatherValue) -> WeatherValue:
    """The same in types that a solver's process knows, which loads no provider."""
    at = None if value.observed_at is None else value.observed_at.astimezone(UTC)
    return WeatherValue(float(value.value), str(value.source), str(value.station), at)


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

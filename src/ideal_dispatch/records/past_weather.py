"""The weather of past calls, from the provider that an agency's settings name."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import WEATHER_VARIABLES, Weather
from ideal_dispatch.context.open_meteo import ARCHIVE_URL, OpenMeteo
from ideal_dispatch.context.recorded_weather import (
    UNITS,
    RecordedWeather,
    WeatherColumn,
    WeatherColumns,
)
from ideal_dispatch.context.weather import PATIENCE, OutdatedWeatherError, WeatherProvider
from ideal_dispatch.errors import InputError, WeatherError
from ideal_dispatch.plugins import WEATHER, ask_plugin, load_plugin
from ideal_dispatch.records.agency import FileSettings, WeatherSettings
from ideal_dispatch.toml_tables import complaints_about

_MOST_FAILURES = 5  # failures in a row after which a service is asked no more


def weather_provider(settings: FileSettings) -> WeatherProvider | None:
    """The provider, or None where the settings want none; what is wrong names their file."""
    weather, folder = settings.weather, Path(settings.path).parent
    with complaints_about(settings.path):
        if weather.source == "none":
            return None
        if weather.source == "open-meteo":
            # one failure is not the end: readings() counts them
            patience = replace(PATIENCE, rest_s=0.0)
            return OpenMeteo.archive(weather.url or ARCHIVE_URL, patience=patience)
        if weather.source != "recorded":
            return load_plugin(
                WEATHER, weather.source, weather.options, "weather.source",
                WeatherProvider,  # type: ignore[type-abstract]
                url=weather.url, folder=folder,
            )  # fmt: skip
        columns = WeatherColumns(
            variables={
                variable: WeatherColumn(
                    weather.columns.get(variable, variable),
                    weather.units.get(variable) or next(iter(UNITS[variable])),
                    tuple(filter(None, [weather.quality.get(variable, "")])),
                )
                for variable in WEATHER_VARIABLES
            },
            time=weather.time,
            time_zone=weather.time_zone or settings.agency.time_zone,
            time_format=weather.time_format or None,
            good=frozenset(weather.good),
            source=weather.name,
        )
        files = [folder / name for name in weather.files]
        known = weather.layout == "cowin"  # files are read so unless columns are given
        return RecordedWeather.read(files) if known else RecordedWeather.read(files, columns)


def readings(
    provider: WeatherProvider | None,
    settings: WeatherSettings,
    at: Sequence[datetime],
    lon: FloatArray,
    lat: FloatArray,
) -> tuple[list[Weather], list[str]]:
    """The weather of each call, and what went wrong.

    Places are rounded to 0.01 degrees: no service learns where a patient was. A provider that
    fails :data:`_MOST_FAILURES` times in a row is left alone. What is unknown stays so.
    """
    if provider is None:
        return [Weather()] * len(at), []
    who = f"weather.source {settings.source!r}"
    found, problems, failures = [], [], 0
    for moment, x, y in zip(at, lon.round(2).tolist(), lat.round(2).tolist(), strict=True):
        weather = Weather()
        if failures < _MOST_FAILURES:
            try:
                weather = ask_plugin(who, provider.reading, moment, x, y, check=_a_weather)
                failures = 0
            except WeatherError as error:
                failures += 1
                problems.append(f"weather: {error}")
                if isinstance(error, OutdatedWeatherError):
                    weather = error.known
        found.append(weather)
    if failures >= _MOST_FAILURES:
        problems.append("weather: the source failed repeatedly and was not asked again")
    return found, list(dict.fromkeys(problems))


def _a_weather(answer: object, *_: object) -> Weather:
    if not isinstance(answer, Weather):
        raise InputError(f"{answer!r:.80}; a Weather is needed")
    return answer

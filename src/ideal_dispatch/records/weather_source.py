"""The weather of past calls, from the source that the settings name."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import WEATHER_VARIABLES, Weather
from ideal_dispatch.context.weather import OutdatedWeatherError, WeatherProvider
from ideal_dispatch.errors import WeatherError
from ideal_dispatch.plugins import WEATHER, load_plugin
from ideal_dispatch.records.agency import AgencySettings

_UNITS = {
    "temperature_c": "C", "rainfall_mm": "mm", "humidity_percent": "percent", "wind_kmh": "km/h",
    "pressure_hpa": "hPa",
}  # fmt: skip
_PATIENCE = 5  # failures in a row after which a service is asked no more


def weather_provider(settings: AgencySettings) -> WeatherProvider | None:
    """The provider, or None where the settings want none."""
    weather = settings.weather
    if weather.source == "none":
        return None
    if weather.source == "open-meteo":
        from ideal_dispatch.context.open_meteo import ARCHIVE_URL, OpenMeteo

        # one failure is not the end: readings() counts them
        return OpenMeteo.archive(weather.url or ARCHIVE_URL, patience=timedelta())
    if weather.source != "recorded":
        return load_plugin(
            WEATHER, weather.source, weather.options, "weather.source",
            WeatherProvider,  # type: ignore[type-abstract]
            url=weather.url, folder=settings.folder,
        )  # fmt: skip
    from ideal_dispatch.context.recorded_weather import RecordedWeather
    from ideal_dispatch.context.weather_columns import COWIN, WeatherColumn, WeatherColumns

    files = [settings.folder / name for name in weather.files]
    if weather.layout == "cowin":
        return RecordedWeather.read(files, COWIN)
    columns = WeatherColumns(
        variables={
            variable: WeatherColumn(
                weather.columns.get(variable, variable),
                weather.units.get(variable, _UNITS[variable]),
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
    return RecordedWeather.read(files, columns)


def readings(
    provider: WeatherProvider | None,
    at: Sequence[datetime],
    lon: FloatArray,
    lat: FloatArray,
    climatology: bool = False,
) -> tuple[list[Weather], list[str]]:
    """The weather of each call, and what went wrong.

    Places are rounded to 0.01 degrees: no service learns where a patient was.
    A source that fails :data:`_PATIENCE` times in a row is left alone; what it
    would have said stays unknown, or becomes the mean of its month and hour
    where ``climatology`` is wanted.
    """
    if provider is None:
        return [Weather()] * len(at), []
    found, problems, failures = [], [], 0
    for moment, x, y in zip(at, lon.round(2).tolist(), lat.round(2).tolist(), strict=True):
        weather = Weather()
        if failures < _PATIENCE:
            try:
                weather = provider.reading(moment, x, y)
                failures = 0
            except WeatherError as error:
                failures += 1
                problems.append(f"weather: {error}")
                if isinstance(error, OutdatedWeatherError):
                    weather = error.known
        found.append(weather)
    if failures >= _PATIENCE:
        problems.append("weather: the source failed repeatedly and was not asked again")
    if climatology and any(value.known for weather in found for value in weather):
        found = _completed(provider, found, at)
    return found, list(dict.fromkeys(problems))


def _completed(
    provider: WeatherProvider, found: Sequence[Weather], at: Sequence[datetime]
) -> list[Weather]:
    """Unknown values replaced by the means of all that the source is known to have said."""
    from ideal_dispatch.context.climatology import Climatology

    means = Climatology.fit(provider if isinstance(provider, Iterable) else found)
    whole = []
    for weather, moment in zip(found, at, strict=True):
        usual = means.reading(moment, 0.0, 0.0)  # a climatology is of one city
        whole.append(
            Weather(*(own if own.known else mean for own, mean in zip(weather, usual, strict=True)))
        )
    return whole

"""The context of a call: weather, calendar, and their encoding."""

from typing import TYPE_CHECKING

from ideal_dispatch.context.calendar import Calendar
from ideal_dispatch.context.context import WEATHER_VARIABLES, Context, Weather, WeatherValue
from ideal_dispatch.lazy import on_first_use

if TYPE_CHECKING:
    from ideal_dispatch.context.climatology import Climatology
    from ideal_dispatch.context.encoding import ContextEncoding
    from ideal_dispatch.context.hong_kong_weather import hong_kong_observatory
    from ideal_dispatch.context.open_meteo import OpenMeteo
    from ideal_dispatch.context.recorded_weather import RecordedWeather
    from ideal_dispatch.context.weather import (
        NEAREST_LIMIT,
        FirstKnown,
        OutdatedWeatherError,
        WeatherProvider,
        source_counts,
    )
    from ideal_dispatch.context.weather_client import WeatherClient
    from ideal_dispatch.context.weather_columns import COWIN, WeatherColumn, WeatherColumns

__all__ = [
    "COWIN",
    "NEAREST_LIMIT",
    "WEATHER_VARIABLES",
    "Calendar",
    "Climatology",
    "Context",
    "ContextEncoding",
    "FirstKnown",
    "OpenMeteo",
    "OutdatedWeatherError",
    "RecordedWeather",
    "Weather",
    "WeatherClient",
    "WeatherColumn",
    "WeatherColumns",
    "WeatherProvider",
    "WeatherValue",
    "hong_kong_observatory",
    "source_counts",
]

# what a call's context does not need: numbers for models, clients and tables of weather sources
_HOMES = {
    "climatology": ("Climatology",),
    "encoding": ("ContextEncoding",),
    "hong_kong_weather": ("hong_kong_observatory",),
    "open_meteo": ("OpenMeteo",),
    "recorded_weather": ("RecordedWeather",),
    "weather": (
        "NEAREST_LIMIT", "FirstKnown", "OutdatedWeatherError", "WeatherProvider", "source_counts",
    ),
    "weather_client": ("WeatherClient",),
    "weather_columns": ("COWIN", "WeatherColumn", "WeatherColumns"),
}  # fmt: skip

__getattr__ = on_first_use(__name__, {name: home for home in _HOMES for name in _HOMES[home]})

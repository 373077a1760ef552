"""The context of a call: weather, calendar, and their encoding."""

from typing import TYPE_CHECKING

from ideal_dispatch.context.calendar import Calendar
from ideal_dispatch.context.context import WEATHER_VARIABLES, Context, Weather, WeatherValue
from ideal_dispatch.context.weather import (
    NEAREST_LIMIT,
    FirstKnown,
    OutdatedWeatherError,
    WeatherProvider,
    source_counts,
)
from ideal_dispatch.context.weather_columns import COWIN, WeatherColumn, WeatherColumns
from ideal_dispatch.lazy import on_first_use

if TYPE_CHECKING:
    from ideal_dispatch.context.climatology import Climatology
    from ideal_dispatch.context.encoding import ContextEncoding
    from ideal_dispatch.context.hong_kong_weather import hong_kong_observatory
    from ideal_dispatch.context.open_meteo import OpenMeteo
    from ideal_dispatch.context.recorded_weather import RecordedWeather

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
    "WeatherColumn",
    "WeatherColumns",
    "WeatherProvider",
    "WeatherValue",
    "hong_kong_observatory",
    "source_counts",
]

# these load NumPy, which the web workers of the service do without
_HOMES = {
    "Climatology": "climatology",
    "ContextEncoding": "encoding",
    "OpenMeteo": "open_meteo",
    "RecordedWeather": "recorded_weather",
    "hong_kong_observatory": "hong_kong_weather",
}

__getattr__ = on_first_use(__name__, _HOMES)

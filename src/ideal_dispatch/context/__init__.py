"""The context of a call: weather, calendar, and their encoding."""

from typing import TYPE_CHECKING

from ideal_dispatch.context.calendar import Calendar
from ideal_dispatch.context.context import WEATHER_VARIABLES, Context, Weather, WeatherValue
from ideal_dispatch.context.weather import FirstKnown, WeatherProvider, source_counts
from ideal_dispatch.lazy import on_first_use

if TYPE_CHECKING:
    from ideal_dispatch.context.climatology import Climatology
    from ideal_dispatch.context.encoding import ContextEncoding
    from ideal_dispatch.context.hong_kong_weather import hong_kong_observatory
    from ideal_dispatch.context.open_meteo import OpenMeteo
    from ideal_dispatch.context.recorded_weather import (
        COWIN,
        RecordedWeather,
        WeatherColumn,
        WeatherColumns,
    )

__all__ = [
    "COWIN",
    "WEATHER_VARIABLES",
    "Calendar",
    "Climatology",
    "Context",
    "ContextEncoding",
    "FirstKnown",
    "OpenMeteo",
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
    "hong_kong_observatory": "hong_kong_weather",
    **dict.fromkeys(
        ("COWIN", "RecordedWeather", "WeatherColumn", "WeatherColumns"), "recorded_weather"
    ),
}

__getattr__ = on_first_use(__name__, _HOMES)

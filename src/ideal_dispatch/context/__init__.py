"""The context of a call: weather, calendar, and their encoding."""

from typing import TYPE_CHECKING

from ideal_dispatch.context.calendar import Calendar
from ideal_dispatch.context.context import WEATHER_VARIABLES, Context, Weather, WeatherValue
from ideal_dispatch.lazy import on_first_use

if TYPE_CHECKING:
    from ideal_dispatch.context.encoding import ContextEncoding
    from ideal_dispatch.context.open_meteo import OpenMeteo
    from ideal_dispatch.context.recorded_weather import RecordedWeather
    from ideal_dispatch.context.weather import WeatherProvider

__all__ = [
    "WEATHER_VARIABLES", "Calendar", "Context", "ContextEncoding", "OpenMeteo", "RecordedWeather",
    "Weather", "WeatherProvider", "WeatherValue",
]  # fmt: skip

_HOMES = {
    "ContextEncoding": "encoding",
    "OpenMeteo": "open_meteo",
    "RecordedWeather": "recorded_weather",
    "WeatherProvider": "weather",
}

__getattr__ = on_first_use(__name__, _HOMES)

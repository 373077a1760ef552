"""The context of a call: weather, calendar, and their encoding."""

from ideal_dispatch.context.context import WEATHER_VARIABLES, Context, Weather, WeatherValue
from ideal_dispatch.context.encoding import ContextEncoding

__all__ = ["WEATHER_VARIABLES", "Context", "ContextEncoding", "Weather", "WeatherValue"]

"""A trained model at dispatch time: the forward pass in NumPy, no torch."""

from ideal_dispatch.forecast.architecture import Architecture
from ideal_dispatch.forecast.model import Forecast, Model

__all__ = ["Architecture", "Forecast", "Model"]

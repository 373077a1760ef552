"""A city and the calls in it; one comes with the package, for the demo and the tests."""

from pathlib import Path
from typing import TYPE_CHECKING

from ideal_dispatch.lazy import on_first_use

if TYPE_CHECKING:
    from ideal_dispatch.cities.city import City, Hospital, depots_of
    from ideal_dispatch.traffic.recording import RecordedTraffic

TRAINING_DAYS = 8
HARBOUR_STEM = Path(__file__).parent / "data" / "harbour"


def harbour_city() -> "City":
    """The embedded harbour city, Port Almery, with its model: fictional, at the paper's scale."""
    from ideal_dispatch.cities.city import City

    return City.load(HARBOUR_STEM, model=harbour_model_folder())


def harbour_traffic(city: "City") -> "RecordedTraffic":
    """Eighteen simulated days of the harbour city, made by ``make city-traffic``.

    The first :data:`TRAINING_DAYS` are to learn from and to choose by; the
    others are to be looked at when everything is fixed.
    """
    from ideal_dispatch.traffic.recording import RecordedTraffic

    return RecordedTraffic.load(f"{HARBOUR_STEM}.traffic", city.network)


def harbour_model_folder() -> Path:
    """A model of the harbour city with its spread of gains, fitted on the training days.

    Made by ``make city-model``.
    """
    return HARBOUR_STEM.with_name("harbour_model")


def harbour_gain_file() -> Path:
    """How much gains vary in the harbour city, beside its model."""
    return harbour_model_folder() / "gain.json"  # GAIN of model_directory, which loads numpy


__all__ = [
    "TRAINING_DAYS",
    "City",
    "Hospital",
    "depots_of",
    "harbour_city",
    "harbour_gain_file",
    "harbour_model_folder",
    "harbour_traffic",
]

__getattr__ = on_first_use(__name__, dict.fromkeys(("City", "Hospital", "depots_of"), "city"))

"""A city and the calls in it; one comes with the package, for the demo and the tests."""

from pathlib import Path
from typing import TYPE_CHECKING

from ideal_dispatch.lazy import on_first_use

if TYPE_CHECKING:
    from ideal_dispatch.cities.city import City, Hospital, depots_of
    from ideal_dispatch.traffic.recording import RecordedTraffic

TRAINING_DAYS = 8
HARBOUR_STEM = Path(__file__).parent / "data" / "harbour"
HARBOUR_MODEL = HARBOUR_STEM.with_name("harbour_model")
"""A model with its response times, fitted on the training days; made by ``make city-model``."""
HARBOUR_RECORDS = HARBOUR_STEM.with_name("harbour_records")
"""Made-up records of an agency there, and its weather; made by ``make samples``."""


def harbour_city() -> "City":
    """The embedded harbour city, Port Almery, with its model: fictional, at the paper's scale."""
    from ideal_dispatch.cities.city import City

    return City.load(HARBOUR_STEM, model=HARBOUR_MODEL)


def harbour_traffic(city: "City") -> "RecordedTraffic":
    """Eighteen simulated days of the harbour city, made by ``make city-traffic``.

    The first :data:`TRAINING_DAYS` are to learn from and to choose by; the
    others are to be looked at when everything is fixed.
    """
    from ideal_dispatch.traffic.recording import RecordedTraffic

    return RecordedTraffic.load(f"{HARBOUR_STEM}.traffic", city.network)


__all__ = ["City", "Hospital", "depots_of", "harbour_city", "harbour_traffic"]

__getattr__ = on_first_use(__name__, dict.fromkeys(("City", "Hospital", "depots_of"), "city"))

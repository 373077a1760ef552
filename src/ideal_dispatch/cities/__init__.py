"""A city and the calls in it; one comes with the package, for the demo and the tests."""

from pathlib import Path
from typing import TYPE_CHECKING

from ideal_dispatch.lazy import on_first_use

if TYPE_CHECKING:
    from datetime import date

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


def held_out_dates(recording: "RecordedTraffic", file: Path) -> "frozenset[date]":
    """Days of a recording that are test days of the embedded city, or copies of them."""
    city = harbour_city()
    its_own = recording.network.checksum == city.network.checksum
    if not its_own or recording.provenance.get("engine") != "sumo":
        return frozenset()
    embedded = file.resolve() == HARBOUR_STEM.with_suffix(".traffic").resolve()
    whole = recording if embedded else harbour_traffic(city)
    first = [whole.stretches[day[0]] for day in whole.days[TRAINING_DAYS:]]
    seeds = {whole.calendar.local(one.start).date(): one.notes["seed"] for one in first}
    days = [(recording.calendar.local(one.start).date(), one) for one in recording.stretches]
    # a day simulated with another seed is another day; one that tells none may be a copy
    return frozenset(
        day for day, one in days
        if day in seeds and one.notes.get("seed", seeds[day]) == seeds[day]
    )  # fmt: skip


__all__ = ["City", "Hospital", "depots_of", "harbour_city", "harbour_traffic", "held_out_dates"]

__getattr__ = on_first_use(__name__, dict.fromkeys(("City", "Hospital", "depots_of"), "city"))

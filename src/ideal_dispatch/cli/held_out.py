"""Which days of the embedded city's traffic are test days, hidden until all is fixed."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date

    from ideal_dispatch.traffic.recording import RecordedTraffic


def held_out_dates(recording: "RecordedTraffic", file: Path) -> "frozenset[date]":
    """Days of a recording that are test days of the embedded city, or copies of them."""
    from ideal_dispatch.cities import HARBOUR_STEM, TRAINING_DAYS, harbour_city, harbour_traffic

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

"""Which days of the embedded city's traffic nobody looks at before all is fixed."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date

    from ideal_dispatch.traffic.recording import RecordedTraffic


def held_out_dates(recording: "RecordedTraffic", file: Path) -> "frozenset[date]":
    """Days of the embedded city's traffic that are looked at when everything is fixed."""
    from ideal_dispatch.cities import HARBOUR_STEM, TRAINING_DAYS, harbour_city, harbour_traffic

    city = harbour_city()
    its_own = recording.network.checksum == city.network.checksum
    if not its_own or recording.provenance.get("engine") != "sumo":
        return frozenset()
    embedded = file.resolve() == HARBOUR_STEM.with_suffix(".traffic").resolve()
    whole = recording if embedded else harbour_traffic(city)
    first = [whole.stretches[day[0]] for day in whole.days[TRAINING_DAYS:]]
    return frozenset(whole.calendar.local(stretch.start).date() for stretch in first)

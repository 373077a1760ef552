"""Records of an agency in the embedded city, its drives timed in recorded traffic."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from ideal_dispatch.cities import City
from ideal_dispatch.context import Weather
from ideal_dispatch.dispatch.situation import Assignment
from ideal_dispatch.records.agency import AgencySettings
from ideal_dispatch.records.synthetic_records import RecordsParams, synthesise, write_agency
from ideal_dispatch.records.synthetic_weather import SyntheticWeather
from ideal_dispatch.replay.drive import DriveError, World, drive
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic

_YEAR, _WEATHER_SEED = 2025, 5  # of the recorded days, so that records and replay share weather


class RecordedDrives:
    """Travel times of made-up records: driven through recorded days at the same time of day.

    All calls of a date drive in the same recorded day, where it has their hour.
    A drive that leaves the recorded time takes no time, and :func:`synthesise`
    draws another call. ``progress`` is told after every drive.
    """

    def __init__(self, world: ReplayedTraffic, progress: Callable[[], None]) -> None:
        self._world, self._progress = world, progress

    def __call__(self, origin: int, destination: int, at: datetime, weather: Weather) -> float:
        world, moments = self._world, self._moments(at)
        if not moments:
            return 0.0
        moment = moments[at.toordinal() % len(moments)]
        try:
            told = Assignment(0, world.quote(origin, destination, moment).path)
            took_s = drive(
                world, world.network, told, destination, moment, World.EXPERIENCED
            ).total_s
        except DriveError:
            return 0.0
        self._progress()
        return took_s

    def _moments(self, at: datetime) -> list[datetime]:
        """The same time of day on every recorded day that has it."""
        recording = self._world.recording
        local, found = recording.calendar.local(at), []
        clock = timedelta(hours=local.hour, minutes=local.minute, seconds=local.second)
        for stretch in recording.stretches:
            start = recording.calendar.local(stretch.start)
            moment = start.replace(hour=0, minute=0) + clock
            if start <= moment < recording.end(stretch):
                found.append(moment)
        return found


def write_records(
    city: City,
    world: ReplayedTraffic,
    folder: Path,
    count: int,
    seed: int,
    progress: Callable[[float], None],
) -> AgencySettings:
    """Write the folder of an agency in the city; gives its settings."""
    done = 0

    def one_more() -> None:
        nonlocal done
        done += 1
        progress(min(done / count, 1.0))

    weather = SyntheticWeather.of_year(_YEAR, city.time_zone, _WEATHER_SEED)
    made = synthesise(
        city.network,
        city.depots,
        city.time_zone,
        seed=seed,
        params=RecordsParams(count, year=_YEAR),
        travel_time=RecordedDrives(world, one_more),
        weather=weather,
        districts=list(city.node_districts),
    )
    return write_agency(
        folder, made, weather, city.network, city.depots, name=city.name, country=city.country,
        weather_name=str(world.recording.provenance["engine"]),
    )  # fmt: skip

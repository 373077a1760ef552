"""Fit the response times that ship with the embedded city, on a made-up unit log.

``python -m workshop.city.response_times``, after :mod:`workshop.city.model`.

Calls come in on the city's training days; units drive in the recorded traffic of the moment.
Turnout, starts on the road, recalls and what two units share are those of
``ideal records synthesise --responses``. Same model and traffic, same bytes.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path

from ideal_dispatch.cities import HARBOUR_MODEL, TRAINING_DAYS, City, harbour_city, harbour_traffic
from ideal_dispatch.context import Weather
from ideal_dispatch.dispatch.situation import Assignment
from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.arrivals import Arrivals
from ideal_dispatch.evaluation.race_predictors import fit_predictors
from ideal_dispatch.forecast.model_directory import RESPONSE_TIMES
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.records.response_reading import read_responses
from ideal_dispatch.records.responses import Responses
from ideal_dispatch.records.synthetic.responses import LogParams, synthesise_log, write_log
from ideal_dispatch.replay.drive import DriveError, World, drive
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic

CALLS, SEED = 3000, 21


@dataclass(frozen=True, slots=True)
class DrivesOfTheMoment:
    """What a drive takes in recorded traffic; no time where the moment is not recorded."""

    traffic: ReplayedTraffic

    def __call__(self, origin: int, destination: int, at: datetime, weather: Weather) -> float:
        traffic = self.traffic
        try:
            told = Assignment(0, traffic.quote(origin, destination, at).path)
            driven = drive(traffic, traffic.network, told, destination, at, World.EXPERIENCED)
        except (DriveError, InputError):
            return 0.0
        return driven.total_s


def made_up_log(city: City, days: Sequence[int], calls: int, seed: int, folder: Path) -> Responses:
    """The unit log of the city on recorded days, written to a folder and read as any log is."""
    recording = harbour_traffic(city).only(days)
    starts = (recording.stretches[day[0]].start for day in recording.days)
    dates: tuple[date, ...] = tuple(recording.calendar.local(start).date() for start in starts)
    log = synthesise_log(
        city.network, city.depots, city.time_zone, seed=seed,
        params=LogParams(calls, dates[0].year, days=dates, positions=1.0),
        travel_time=DrivesOfTheMoment(ReplayedTraffic(recording)),
    )  # fmt: skip
    settings = write_log(
        folder, log, city.network, city.depots, name=city.name, time_zone=city.time_zone,
        country=city.country,
    )  # fmt: skip
    return read_responses(folder / "unit_log.csv", settings, folder / "stations.csv").responses


def fitted(city: City, log: Responses) -> ResponseModel:
    """Response times on the drives of the city's own model."""
    times = fit_predictors(Arrivals.of(log, city.network), city.model).response
    return replace(times, source=f"{times.rows:,} responses of a made-up unit log")


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "").parse_args()
    city = harbour_city()
    with tempfile.TemporaryDirectory() as folder:
        log = made_up_log(city, range(TRAINING_DAYS), CALLS, SEED, Path(folder))
    fitted(city, log).save(HARBOUR_MODEL / RESPONSE_TIMES)
    print(f"wrote {HARBOUR_MODEL / RESPONSE_TIMES}")


if __name__ == "__main__":
    main()

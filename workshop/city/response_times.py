"""Fit the response times that ship with the embedded city, on a made-up unit log.

``python -m workshop.city.response_times``, after :mod:`workshop.city.model`.

Calls come in on the city's training days; units drive in the recorded traffic of the moment.
Turnout, starts on the road, recalls and what two units share are those of
:mod:`workshop.samples`. Same model and traffic, same bytes.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path

from ideal_dispatch.cities import HARBOUR_MODEL, TRAINING_DAYS, City, harbour_city, harbour_traffic
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.evaluation.predictors import Arrivals, fit_predictors
from ideal_dispatch.files import write_csv
from ideal_dispatch.forecast.model_directory import RESPONSE_TIMES
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.records.response_log import LogSettings
from ideal_dispatch.records.response_reading import read_responses
from ideal_dispatch.records.responses import Responses
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from workshop.samples import EXAMPLES, Service, seconds_in, unit_log

CALLS, SEED = 3000, 21


def made_up_log(city: City, days: Sequence[int], calls: int, seed: int, folder: Path) -> Responses:
    """The unit log of the city on recorded days, written to a folder and read as any log is."""
    recording = harbour_traffic(city).only(days)
    starts = (recording.stretches[day[0]].start for day in recording.days)
    dates: tuple[date, ...] = tuple(recording.calendar.local(start).date() for start in starts)
    service = Service(
        city.network, city.depots, zone(city.time_zone),
        partial(seconds_in, ReplayedTraffic(recording)), dates[0].year, dates, positions=1.0,
    )  # fmt: skip
    rows = unit_log(service, seed, calls)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "unit_log.csv"
    write_csv(log, list(rows[0][0]), [list(cells.values()) for cells, _ in rows])
    settings = LogSettings.given(mapping=EXAMPLES / "unit_log.toml")
    return read_responses(log, settings, EXAMPLES / "depots.csv").responses


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

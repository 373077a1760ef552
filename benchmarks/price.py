"""The price of one unit of a large fleet, as the event loop works it out at every critical call."""

import time

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.timing import human
from ideal_dispatch.compiled import kernel
from ideal_dispatch.dispatch.price import PriceTables, price_of

UNITS, CELLS, HOURS = 30, 500, 24
_TIMES = 2000


def run(console: Console) -> None:
    """Seconds a price, by number of stations and load."""
    table = Table(title=f"The price of one unit, {UNITS} units and {CELLS} cells")
    for column in ("stations", "busy share", "a price"):
        table.add_column(column, justify="right")
    for stations in (10, 30):
        for busy in (0.3, 0.7):
            table.add_row(str(stations), f"{busy:g}", human(price_s(stations, busy)))
    console.print(table)


def price_s(stations: int, busy: float, times: int = _TIMES) -> float:
    """Seconds of one price; compiling does not count."""
    rng = np.random.default_rng(0)
    places, homes = rng.random((CELLS, 2)), rng.random((stations, 2))
    harm = 1.0 - np.exp(-np.hypot(*(homes[:, None] - places[None]).transpose(2, 0, 1)))
    occupation_s = 2400.0
    calls_per_hour = busy * UNITS * 3600.0 / occupation_s
    tables = PriceTables.of(
        harm, np.ones(CELLS), rng.random(CELLS), calls_per_hour, UNITS, occupation_s, critical=0.03
    )
    ready_s = np.where(rng.random(UNITS) < busy, rng.exponential(occupation_s, UNITS), 0.0)
    ready_s[0] = 0.0
    station = np.arange(UNITS, dtype=np.int32) % stations
    scratch = np.empty((3, UNITS))
    _priced(tables, station, ready_s, scratch, 1)
    begin = time.process_time()
    _priced(tables, station, ready_s, scratch, times)
    return (time.process_time() - begin) / times


@kernel(counted=False)
def _priced(tables, station, ready_s, scratch, times):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(times):
        total += price_of(tables, station, ready_s, 0, 360.0 + k, k % HOURS, scratch)
    return total

"""The log of a fleet's year: its calls, and what became of them under each policy."""

import csv
import gzip
import io
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ideal_dispatch.fleet.calls import ROLES, Calls
from ideal_dispatch.fleet.city import MIDNIGHT, FleetCity
from ideal_dispatch.fleet.units import Log

CALLS = "calls.csv.gz"
"""All that was drawn for the calls of a year: the same under every policy."""

_LUCK = [f"luck_{k}" for k in range(1 + 4 * ROLES)]
_DRAWN = ("scene_s", "transported", "handover_s", "chance", "assist_s")
_ROLES = ("primary", "second")
_TIMES = ("sent_s", "arrived_s", "stood_down_s")


def calls_file(city: FleetCity, calls: Calls) -> bytes:
    """The calls with all that was drawn for them, numbers in full.

    It can be the ``list`` of calls of another experiment.
    """
    columns = _of_calls(city, calls, exact=True)
    columns |= {name: _exact(getattr(calls, name)) for name in _DRAWN}
    columns |= dict(zip(_LUCK, map(_exact, calls.luck.T), strict=True))
    return _packed(columns)


def log_file(city: FleetCity, calls: Calls, log: Log) -> bytes:
    """What became of every call under one policy; times are seconds since the year began.

    ``saved`` and ``cost`` are what the policy weighed, as chances of death.
    """
    homes = city.units.tolist()
    numbers = [homes[: k + 1].count(home) for k, home in enumerate(homes)]
    units = (f"{city.station_names[home]} {n}" for home, n in zip(homes, numbers, strict=True))
    names = np.array([*units, ""])  # −1 is no unit
    columns = _of_calls(city, calls)
    for role, who in enumerate(_ROLES):
        columns[who] = names[log.unit[:, role]].tolist()
        times = log.sent_s[:, role], log.arrive_s[:, role], log.stood_s[:, role]
        columns |= {
            f"{who}_{name}": _texts(time, "%.3f")
            for name, time in zip(_TIMES, times, strict=True)
        }  # fmt: skip
    columns["first_arrival_s"] = _texts(log.first_s, "%.3f")
    columns["saved"], columns["cost"] = _texts(log.saved, "%.6g"), _texts(log.cost, "%.6g")
    return _packed(columns)


def _of_calls(city: FleetCity, calls: Calls, *, exact: bool = False) -> dict[str, list[str]]:
    place = city.cells[calls.cell]
    names = np.array([one.name for one in city.priorities])
    midnight = np.datetime64(MIDNIGHT if city.listed is None else city.listed.midnight, "ms")
    return {
        "call": list(map(str, range(len(calls)))),
        "time": (midnight + (1000.0 * calls.at_s).astype("m8[ms]")).astype(str).tolist(),
        "at_s": _exact(calls.at_s) if exact else _texts(calls.at_s, "%.3f"),
        "lon": _texts(city.travel.lon[place], "%.6f"),
        "lat": _texts(city.travel.lat[place], "%.6f"),
        "cell": _exact(calls.cell),
        "priority": names[calls.priority].tolist(),
        "arrest": _exact(calls.arrest), "entitled": _exact(calls.entitled),
    }  # fmt: skip


def _exact(values: Any) -> list[str]:
    numbers = values.astype(np.int8) if values.dtype == bool else values
    return [repr(value) for value in numbers.tolist()]


def _texts(values: Any, form: str) -> list[str]:
    """Numbers as text, empty where there is none."""
    good = np.isfinite(values).tolist()
    return [
        form % value if is_number else ""
        for value, is_number in zip(values.tolist(), good, strict=True)
    ]


def _packed(columns: Mapping[str, Iterable[str]]) -> bytes:
    """A table as CSV; same contents, same bytes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return gzip.compress(text.getvalue().encode(), 6, mtime=0)

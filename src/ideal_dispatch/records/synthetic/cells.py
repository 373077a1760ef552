"""How people write what happened, and how they get it wrong: cells of synthetic records."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

HEADER = (
    "call_id", "call_at", "patient_name", "age", "address", "floor", "lon", "lat", "district",
    "depot", "en_route_at", "on_scene_at", "cpr_at",
)  # fmt: skip

STAMPS = ("call_at", "en_route_at", "on_scene_at", "cpr_at")
_FORMS = (
    "%Y-%m-%d %H:%M:%S", "%d/%m/%Y %H:%M:%S", "%Y%m%d%H%M%S", "%d %b %Y %H:%M:%S", "iso", "clock",
)  # fmt: skip
_FLOORS = ("{}/F", "{}/F", "{}/F", "{}", "{}F", "{}A/F", "{}樓", "Floor {}", " {} /f ")
_NAMED_FLOORS = {
    0: ("G/F", "G/F", "Ground", "地下", "G", ""),
    1: ("1/F", "M/F", "1st floor", "UG1"),
    -1: ("LG", "B1", "LG1"),
    -2: ("LG2", "B2"),
}
_FIRST = ("Imaginary", "Fictive", "Invented", "Pretended", "Feigned", "Madeup")
_LAST = ("Almeryson", "Gannetby", "Kelpwright", "Lanternsdale", "Ridgemore")
_STREETS = ("Nowhere Lane", "Phantom Street", "Paper Road", "Mirage Terrace")

Cells = dict[str, str]
Defect = Callable[[Cells, np.random.Generator], tuple[str, str]]


def _one(rng: np.random.Generator, options: Sequence[str]) -> str:
    return options[int(rng.integers(len(options)))]


def stamp_texts(rng: np.random.Generator, zone: ZoneInfo, moments: Sequence[datetime]) -> list[str]:
    """The times of one row, in one of the ways in which agencies write them."""
    form = _one(rng, _FORMS)
    local = [moment.astimezone(zone) for moment in moments]
    if form == "iso":
        return [at.isoformat() for at in local]
    if form == "clock":  # later stamps as time of day, also past midnight
        first = local[0].strftime("%Y-%m-%d %H:%M:%S")
        return [first, *(at.strftime("%H:%M:%S") for at in local[1:])]
    return [at.strftime(form) for at in local]


def floor_text(rng: np.random.Generator, floor: int) -> str:
    """The floor as someone might write it."""
    return _one(rng, _NAMED_FLOORS.get(floor) or [form.format(floor) for form in _FLOORS])


def depot_text(rng: np.random.Generator, name: str) -> str:
    """The name, now and then shouted or carelessly spaced."""
    spaced = f" {name.replace(' ', '  ')} "
    return _one(rng, (name, name, name, name.upper(), name.lower(), spaced))


def personal(rng: np.random.Generator) -> Cells:
    """A made-up person, there to be dropped; the age is in words, so that a leak can be told."""
    name = f"{_one(rng, _FIRST)} {_one(rng, _LAST)}"
    age = f"{int(rng.integers(1, 104))} years of age"
    street = _one(rng, _STREETS)
    address = f"Flat {rng.integers(1, 40)}, {rng.integers(100, 999)} {street}"
    return {"patient_name": name, "age": age, "address": address}


def _quarantined(reason: str, **changes: str) -> Defect:
    def spoil(cells: Cells, rng: np.random.Generator) -> tuple[str, str]:
        cells.update(changes)
        return "quarantined", reason

    return spoil


def _swapped(cells: Cells, rng: np.random.Generator) -> tuple[str, str]:
    cells["lon"], cells["lat"] = cells["lat"], cells["lon"]
    return "quarantined", "swapped"


def _off_map(cells: Cells, rng: np.random.Generator) -> tuple[str, str]:
    cells["lat"] = f"{float(cells['lat']) + float(rng.uniform(0.4, 0.8)):.6f}"
    return "quarantined", "beyond the limit of"


def _ragged(cells: Cells, rng: np.random.Generator) -> tuple[str, str]:
    for name in HEADER[-3:]:
        del cells[name]
    return "quarantined", "cells where the header has"


def _excluded(reason: str, first: datetime, within_s: int, **cells_or_s: int | str) -> Defect:
    """Other stamps, in seconds after a call, and none that is not named; texts are other cells."""

    def spoil(cells: Cells, rng: np.random.Generator) -> tuple[str, str]:
        call = first + timedelta(seconds=int(rng.integers(within_s)))
        cells |= dict.fromkeys(STAMPS, "")
        for name, value in cells_or_s.items():
            cells[name] = value if isinstance(value, str) else str(call + timedelta(seconds=value))
        return "excluded", reason

    return spoil


def _no_times(cells: Cells, rng: np.random.Generator) -> tuple[str, str]:
    cells |= dict.fromkeys(STAMPS[1:], "")
    return "excluded", "its stamps give no travel time"


_MAY, _JUNE, _JULY = datetime(2023, 5, 1, 12), datetime(2023, 6, 1, 9), datetime(2023, 7, 1, 9)
DEFECTS: Mapping[str, Defect] = {
    "swapped coordinates": _swapped,
    "off the map": _off_map,
    "blank coordinates": _quarantined("lon is missing", lon="", lat=""),
    "coordinates that are text": _quarantined("lat is not a finite number", lat="N/A"),
    "infinite coordinates": _quarantined("lon is not a finite number", lon="1e999"),
    "blank call time": _quarantined("call_at is missing", call_at="", en_route_at="",
                                    on_scene_at="", cpr_at=""),
    "call time that is none": _quarantined("call_at is not a known form",
                                           call_at="last Tuesday"),
    "impossible date": _quarantined("call_at is not a date", call_at="31/02/2023 10:00:00"),
    "unknown depot": _quarantined("is not in the depots file", depot="Lighthouse Depot"),
    "formula for a depot": _quarantined("is not in the depots file",
                                        depot="=HYPERLINK(0)"),
    "blank depot": _quarantined("names no depot", depot=""),
    "missing cells": _ragged,
    "negative interval": _excluded("zero or negative", _MAY, 80_000, call_at=0,
                                   en_route_at=90, on_scene_at=-150),
    "zero interval": _excluded("zero or negative", _MAY, 80_000, call_at=0,
                               en_route_at=90, on_scene_at=90),
    "impossible speed": _excluded("faster than 150 km/h", _MAY, 80_000, call_at=0,
                                  en_route_at=90, on_scene_at=95),
    "late CPR": _excluded("longer than 30 min", _JUNE, 30_000, call_at=0, cpr_at=45 * 60),
    "unrecognised floor": _excluded("the floor is not recognised", _JULY, 30_000, call_at=0,
                                    cpr_at=14 * 60, floor="R/F"),
    "floor too high": _excluded("above 60", _JULY, 30_000, call_at=0, cpr_at=14 * 60,
                                floor="88/F"),
    "no times": _no_times,
}  # fmt: skip
"""Kinds of defects: each spoils a row and says which verdict and reason it deserves."""

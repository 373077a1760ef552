"""How people write what happened, and how they get it wrong: cells of synthetic records."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from zoneinfo import ZoneInfo

import numpy as np

HEADER = (
    "call_id", "call_at", "patient_name", "age", "address", "floor", "lon", "lat", "district",
    "depot", "en_route_at", "on_scene_at", "cpr_at",
)  # fmt: skip

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


def stamp_texts(rng: np.random.Generator, zone: ZoneInfo, moments: Sequence[datetime]) -> list[str]:
    """The times of one row, in one of the ways in which agencies write them."""
    form = _FORMS[rng.integers(len(_FORMS))]
    local = [moment.astimezone(zone) for moment in moments]
    if form == "iso":
        return [at.isoformat() for at in local]
    if form == "clock":  # later stamps as time of day, also past midnight
        first = local[0].strftime("%Y-%m-%d %H:%M:%S")
        return [first, *(at.strftime("%H:%M:%S") for at in local[1:])]
    return [at.strftime(form) for at in local]


def floor_text(rng: np.random.Generator, floor: int, encoding: str) -> str:
    """The floor as someone might write it in this encoding."""
    options = _NAMED_FLOORS.get(floor) or tuple(form.format(floor) for form in _FLOORS)
    while True:
        text = options[rng.integers(len(options))]
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            continue
        return text


def depot_text(rng: np.random.Generator, name: str) -> str:
    """The name, now and then shouted or carelessly spaced."""
    options = (name, name, name, name.upper(), name.lower(), f" {name.replace(' ', '  ')} ")
    return options[rng.integers(len(options))]


def personal(rng: np.random.Generator, what: str) -> str:
    """A made-up name or address, there to be dropped."""
    if what == "name":
        return f"{_FIRST[rng.integers(len(_FIRST))]} {_LAST[rng.integers(len(_LAST))]}"
    street = _STREETS[rng.integers(len(_STREETS))]
    return f"Flat {rng.integers(1, 40)}, {rng.integers(100, 999)} {street}"


def age(rng: np.random.Generator) -> str:
    """A made-up age in words, so that a leak can be told from other numbers."""
    return f"{int(rng.integers(1, 104))} years of age"


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


def _intervals(reason: str, drive_s: int) -> Defect:
    """Stamps that contradict each other, and no CPR to fall back on."""

    def spoil(cells: Cells, rng: np.random.Generator) -> tuple[str, str]:
        call = datetime(2023, 5, 1, 12, 0, 0) + timedelta(seconds=int(rng.integers(80_000)))
        for name, after_s in (("call_at", 0), ("en_route_at", 90), ("on_scene_at", 90 + drive_s)):
            cells[name] = str(call + timedelta(seconds=after_s))
        cells["cpr_at"] = ""
        return "excluded", reason

    return spoil


def _late_cpr(cells: Cells, rng: np.random.Generator) -> tuple[str, str]:
    call = datetime(2023, 6, 1, 9, 0, 0) + timedelta(seconds=int(rng.integers(30_000)))
    cells |= {"call_at": str(call), "cpr_at": str(call + timedelta(minutes=45))}
    cells["en_route_at"] = cells["on_scene_at"] = ""
    return "excluded", "longer than 30 min"


def _only_cpr(reason: str, floor: str) -> Defect:
    """A floor that cannot be used where it is needed."""

    def spoil(cells: Cells, rng: np.random.Generator) -> tuple[str, str]:
        call = datetime(2023, 7, 1, 9, 0, 0) + timedelta(seconds=int(rng.integers(30_000)))
        cells |= {"call_at": str(call), "cpr_at": str(call + timedelta(minutes=14))}
        cells["en_route_at"] = cells["on_scene_at"] = ""
        cells["floor"] = floor
        return "excluded", reason

    return spoil


def _no_times(cells: Cells, rng: np.random.Generator) -> tuple[str, str]:
    cells["en_route_at"] = cells["on_scene_at"] = cells["cpr_at"] = ""
    return "excluded", "its stamps give no travel time"


DEFECTS: Mapping[str, Defect] = MappingProxyType(
    {
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
        "negative interval": _intervals("zero or negative", -240),
        "zero interval": _intervals("zero or negative", 0),
        "impossible speed": _intervals("faster than 150 km/h", 5),
        "late CPR": _late_cpr,
        "unrecognised floor": _only_cpr("the floor is not recognised", "R/F"),
        "floor too high": _only_cpr("above 60", "88/F"),
        "no times": _no_times,
    }
)  # fmt: skip
"""Kinds of defects: each spoils a row and says which verdict and reason it deserves."""

"""Rows that did not become trips, with every reason; safe to open and to pass on.

Of the row itself only operational values are written: times as they were
understood, depot and floor as written, coordinates to three decimals (about
100 m). Cells that a spreadsheet would run as a formula are defused.
"""

import os

import numpy as np

from ideal_dispatch.files import safe_cell, write_csv
from ideal_dispatch.records.prepare import Prepared
from ideal_dispatch.records.schema import TIMES

COLUMNS = ("row", "verdict", "reasons", *TIMES, "lon", "lat", "depot", "floor", "district")
_LONGEST = {"depot": 40, "floor": 12, "district": 40}
"""Longer texts are free text, which may say anything: they are left out."""


def write_quarantine(prepared: Prepared, path: str | os.PathLike[str]) -> None:
    """Write the rows in the order of the source file."""
    table = prepared.table
    rows: list[tuple[int, str, list[str], int | None]]
    rows = [(row, "quarantined", [reason], None) for row, reason in prepared.broken]
    for verdict, found in (
        ("quarantined", prepared.quarantined),
        ("excluded", prepared.excluded),
    ):
        rows += [(int(table.row[at]), verdict, why, at) for at, why in found.items()]
    lines = []
    for row, verdict, reasons, position in sorted(rows, key=lambda entry: entry[0]):
        cells = [""] * (len(COLUMNS) - 3) if position is None else _cells(prepared, position)
        lines.append([row, verdict, *map(safe_cell, ["; ".join(reasons), *cells])])
    write_csv(path, COLUMNS, lines)


def _cells(prepared: Prepared, position: int) -> list[str]:
    table = prepared.table
    times = [table.times[name][position] for name in TIMES]
    cells = ["" if np.isnat(at) else f"{at.astype('M8[s]')}Z" for at in times]
    for name in ("lon", "lat"):
        value = table.numbers[name][position]
        cells.append("" if np.isnan(value) else f"{value:.3f}")
    return cells + [shown(table.texts[name][position], name) for name in _LONGEST]


def shown(text: str, field: str) -> str:
    """A text as it may leave the house: as it is, or how long it was."""
    return text if len(text) <= _LONGEST[field] else f"({len(text)} characters)"

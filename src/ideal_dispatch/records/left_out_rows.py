"""Rows that did not become trips: every reason, and the words that were not understood.

What is told of a row is safe to open and to pass on: coordinates have three decimals (about
100 m), and cells that a spreadsheet would run as a formula are defused.
"""

import json
import math
import os
import re
from collections import Counter
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from ideal_dispatch.files import safe_cell, write_csv
from ideal_dispatch.records.agency import Floors
from ideal_dispatch.records.floors import read_floor
from ideal_dispatch.records.places import UNKNOWN, plain_name
from ideal_dispatch.records.prepare import Prepared
from ideal_dispatch.records.schema import TIMES

COLUMNS = ("row", "verdict", "reasons", *TIMES, "lon", "lat", "depot", "floor", "district")
_LONGEST = {"depot": 40, "floor": 12, "district": 40}
"""Longer texts are free text, which may say anything: they are left out."""
_FORM = re.compile(r"(?P<field>\w+) is not a known form .*\(it looks like (?P<shape>.*)\)")


def write_quarantine(prepared: Prepared, path: str | os.PathLike[str]) -> None:
    """Write the rows in the order of the file they are from."""
    no_cells = [""] * (len(COLUMNS) - 3)
    rows = [(row, "quarantined", [reason], no_cells) for row, reason in prepared.broken]
    verdicts = {"quarantined": prepared.quarantined, "excluded": prepared.excluded}
    for verdict, found in verdicts.items():
        for at, reasons in found.items():
            rows.append((int(prepared.table.row[at]), verdict, reasons, _cells(prepared, at)))
    lines = [
        [row, verdict, *map(safe_cell, ["; ".join(reasons), *cells])]
        for row, verdict, reasons, cells in sorted(rows, key=lambda entry: entry[0])
    ]
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


@dataclass(frozen=True, slots=True)
class UnknownWord:
    """A word of ``field``, and how many rows with it did not become trips.

    Of a time only its shape is told. ``nearest`` is the most similar depot.
    """

    field: str
    word: str
    rows: int
    nearest: str = ""

    @property
    def setting(self) -> tuple[str, str]:
        """The table and line of the settings that explain it, once the value is right."""
        word = json.dumps(self.word, ensure_ascii=False)  # TOML quotes as JSON does
        if self.field == "depot":
            return "[depots.aliases]", f"{word} = {json.dumps(self.nearest, ensure_ascii=False)}"
        if self.field == "floor":
            return "[floors.words]", f'{word} = ""'
        return "[input]", 'time_formats = ["%d.%m.%y %Hh%M"]'


def unknown_words(prepared: Prepared, floors: Floors) -> list[UnknownWord]:
    """Unknown depots, floors and forms of times, the most frequent first."""
    book, texts = prepared.book, prepared.table.texts
    found: Counter[tuple[str, str]] = Counter()
    for row, reasons in prepared.quarantined.items():
        depot = texts["depot"][row]
        if depot and book.index(depot) == UNKNOWN:
            found["depot", shown(depot, "depot")] += 1
        for form in filter(None, map(_FORM.match, reasons)):
            if form["field"] in TIMES:
                found[form["field"], form["shape"].strip("'\"")] += 1
    for row in prepared.excluded:
        floor = texts["floor"][row]
        if floor and math.isnan(read_floor(floor, floors)):
            found["floor", shown(floor, "floor")] += 1
    words = []
    for (field, word), rows in found.items():
        near = get_close_matches(plain_name(word), book.keys, 1) if field == "depot" else []
        nearest = book.names[book.keys[near[0]]] if near else ""
        words.append(UnknownWord(field, word, rows, nearest))
    return sorted(words, key=lambda one: (-one.rows, one.field, one.word))

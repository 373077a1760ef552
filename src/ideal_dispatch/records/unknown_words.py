"""Words of a records file that were not understood, and how to explain them in the settings."""

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from difflib import get_close_matches

from ideal_dispatch.records.agency import Floors
from ideal_dispatch.records.depots import UNKNOWN, DepotBook, plain_name
from ideal_dispatch.records.floors import read_floor
from ideal_dispatch.records.prepare import Prepared
from ideal_dispatch.records.quarantine import shown
from ideal_dispatch.records.schema import TIMES

_FORM = re.compile(r"(?P<field>\w+) is not a known form .*\(it looks like (?P<shape>.*)\)")


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
            name = json.dumps(self.nearest, ensure_ascii=False)
            return "[depots.aliases]", f"{word} = {name}"
        if self.field == "floor":
            return "[floors.words]", f'{word} = ""'
        return "[input]", 'time_formats = ["%d.%m.%y %Hh%M"]'


def unknown_words(prepared: Prepared, floors: Floors) -> list[UnknownWord]:
    """Unknown depots, floors and forms of times, the most frequent first."""
    texts = prepared.table.texts
    depots = Counter(
        shown(texts["depot"][row], "depot")
        for row in prepared.quarantined
        if texts["depot"][row] and prepared.book.index(texts["depot"][row]) == UNKNOWN
    )
    storeys = Counter(
        shown(texts["floor"][row], "floor")
        for row in prepared.excluded
        if texts["floor"][row] and math.isnan(read_floor(texts["floor"][row], floors))
    )
    forms: Counter[tuple[str, str]] = Counter()
    for reasons in prepared.quarantined.values():
        for found in filter(None, map(_FORM.match, reasons)):
            if found["field"] in TIMES:
                forms[found["field"], found["shape"].strip("'\"")] += 1
    words = [
        UnknownWord("depot", word, n, _nearest(word, prepared.book)) for word, n in depots.items()
    ]
    words += [UnknownWord("floor", word, n) for word, n in storeys.items()]
    words += [UnknownWord(field, shape, n) for (field, shape), n in forms.items()]
    return sorted(words, key=lambda one: (-one.rows, one.field, one.word))


def _nearest(word: str, book: DepotBook) -> str:
    keys = dict(book.keys)
    near = get_close_matches(plain_name(word), keys, 1)
    return book.names[keys[near[0]]] if near else ""

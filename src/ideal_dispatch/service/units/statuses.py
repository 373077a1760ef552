"""What a status code of a radio system or of a CAD says a unit does."""

import re
from collections.abc import Mapping
from typing import Literal, get_args

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.units.unit import STATUSES, Status

Table = Literal["words", "fms", "tetra"]
"""The tables that come with the package."""

_OTHER_WORDS: Mapping[Status, tuple[str, ...]] = {
    "at_station": ("in station", "station", "at base", "in quarters"),
    "available": ("free", "clear", "cleared", "ready", "in service"),
    "dispatched": ("assigned", "alerted"),
    "en_route": ("en route to scene", "on the way", "responding"),
    "on_scene": ("at scene", "arrived", "arrived on scene", "arrived at scene"),
    "transporting": ("transport", "conveying", "to hospital", "en route to hospital"),
    "at_hospital": ("hospital", "arrived at hospital"),
    "out_of_service": ("off duty", "out of order"),
}
"""Not "unavailable", which some say of a unit on a call and others of one without a crew."""

_FMS: tuple[Status | None, ...] = (
    None,  # 0: an urgent wish to speak
    "available",
    "at_station",
    "en_route",
    "on_scene",
    None,  # 5: a wish to speak
    "out_of_service",
    "transporting",
    "at_hospital",
    None,  # 9: differs from state to state
)
"""The German Funkmeldesystem, by digit."""

_TETRA_ZERO = 0x8002
"""What the radios of German authorities send over TETRA for the 0 of FMS; the others follow."""


def _folded(text: str) -> str:
    return re.sub(r"[\s_-]+", "", text).casefold()


_WORDS: Mapping[str, Status | None] = {
    word: status for status in STATUSES for word in (status, *_OTHER_WORDS[status])
}
_TABLES: Mapping[str, Mapping[str, Status | None]] = {
    "words": {},
    "fms": {str(digit): status for digit, status in enumerate(_FMS)},
    "tetra": {
        written.format(_TETRA_ZERO + digit): status
        for written in ("{}", "{:04X}", "0x{:04X}")
        for digit, status in enumerate(_FMS)
    },
}


class StatusCodes:
    """What the codes of a centre say: its own ``codes`` first, then a table, then plain words.

    A code of the settings is matched as it is written. Elsewhere capitals, blanks, ``_`` and ``-``
    make no difference. A code whose meaning is "" says nothing of what the unit does.
    """

    def __init__(self, table: Table = "words", codes: Mapping[str, str] | None = None) -> None:
        if table not in get_args(Table):
            known = ", ".join(get_args(Table))
            raise InputError(f"table of statuses {table!r} is not known; known: {known}")
        self._codes: dict[str, Status | None] = {"": None}
        for code, word in (codes or {}).items():
            self._codes[code.strip()] = _meaning(code, word)
        self._shipped = {
            _folded(code): status for code, status in {**_WORDS, **_TABLES[table]}.items()
        }
        self._known = ", ".join(dict.fromkeys([*(codes or {}), *_TABLES[table], *_WORDS]))

    def status(self, text: str) -> Status | None:
        """What the unit does; None where the code says nothing of it."""
        code = text.strip()
        if code in self._codes:
            return self._codes[code]
        try:
            return self._shipped[_folded(code)]
        except KeyError:
            raise InputError(
                f"status {code[:60]!r} is not known; add it to [units] codes, or send one of "
                f"{self._known}"
            ) from None


def _meaning(code: str, word: str) -> Status | None:
    if not word:
        return None
    for status in STATUSES:
        if word == status:
            return status
    raise InputError(f'codes: {code!r} is {word!r}; choose one of {", ".join(STATUSES)}, or ""')

"""Rows of the log, each bound to the row before it by a hash.

A row's hash covers its number, all its contents and the hash of the row before it: every later
hash tells where a row was edited, removed or moved. Whoever may rewrite the whole database can
still forge a chain: note a head elsewhere now and then (``ideal audit verify`` prints it).
"""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.errors import RecordUnavailableError


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the chain: the row of that number has that hash."""

    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class LogRow:
    """One row as the database holds it: nothing in it is checked yet."""

    number: int
    at: int
    kind: str
    call_id: str
    body: str
    previous_hash: str
    hash: str

    @classmethod
    def after(cls, last: Mark, at: int, kind: str, call_id: str, body: str) -> "LogRow":
        """The row that follows the last one."""
        row = cls(last.number + 1, at, kind, call_id, body, last.hash, "")
        return replace(row, hash=row.expected_hash)

    @property
    def expected_hash(self) -> str:
        """The hash that these contents give."""
        contents = (self.number, self.at, self.kind, self.call_id, self.body, self.previous_hash)
        return hashlib.sha256(canonical(contents).encode("ascii")).hexdigest()

    @property
    def mark(self) -> Mark:
        return Mark(self.number, self.hash)

    @property
    def content(self) -> dict[str, Any]:
        """The body as values, or one line where it is damaged."""
        try:
            found = json.loads(self.body)
            if isinstance(found, dict):
                return found
        except (ValueError, TypeError, RecursionError):
            pass
        raise RecordUnavailableError(
            f"row {self.number} of the log is no JSON object; run `ideal audit verify`"
        )

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def canonical(value: Any) -> str:
    """JSON with sorted keys and without blanks, in ASCII: the same value, the same text."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"this cannot be written as JSON ({error})") from None


def digest(value: Any) -> str:
    """A hash of a request; the same content, the same hash."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def parse_mark(text: str) -> Mark:
    """A head as ``ideal audit verify`` prints it: number and hash."""
    number, _, hashed = text.partition(":")
    if not number.isdecimal() or len(hashed) != 64:
        raise InputError(f"--head {text}: write it as 734:… with the 64 letters of the hash")
    return Mark(int(number), hashed.lower())

"""Is the chain whole? The first row that is not, and what is wrong with it."""

import json
from dataclasses import dataclass, replace
from typing import Literal

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.audit.record import Mark, Row
from ideal_dispatch.service.audit.store import AuditStore, Chain

_MOVED_AT_MOST = 100_000  # rows; how far a row is looked for that was moved


@dataclass(frozen=True, slots=True)
class Fault:
    """The first row in doubt, by number."""

    number: int
    kind: Literal["edited", "missing", "moved", "replaced", "added", "cut"]
    words: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What a walk along the chain found: ``fault`` is None where all of it is whole."""

    rows: int
    duplicates: int
    anchor: Mark
    head: Mark
    fault: Fault | None


def verify(store: AuditStore, noted: Mark | None = None) -> Verification:
    """Walk the whole chain; ``noted`` is a head that was written down earlier.

    A chain that was recomputed as a whole, marks included, is only told from
    the true one by a noted head.
    """
    with store.chain() as chain:
        walk = _Walk(chain, noted)
        fault = walk.first_fault()
        return Verification(walk.rows, walk.duplicates, chain.anchor, chain.head, fault)


class _Walk:
    """A walk along a chain, as far as it is whole."""

    def __init__(self, chain: Chain, noted: Mark | None) -> None:
        self._chain, self._noted, self._last = chain, noted, chain.anchor
        self.rows = self.duplicates = 0
        self._noted_is_there = noted == chain.anchor
        self._prunings: set[Mark] = set()

    def first_fault(self) -> Fault | None:
        for row in self._chain.rows:
            fault = self._fault(row)
            if fault is not None:
                return fault
            self.rows += 1
            self.duplicates += row.duplicate_of is not None
            self._noted_is_there |= row.mark == self._noted
            if row.kind == "service":
                body = json.loads(row.body)
                if body.get("event") == "prune":
                    self._prunings.add(Mark(body["number"], body["hash"]))
            self._last = row.mark
        return self._fault_at_the_ends()

    def _fault(self, row: Row) -> Fault | None:
        last = self._last
        if row.number <= last.number:
            words = f"stands before the anchor at row {last.number}, where all rows were pruned"
            return Fault(row.number, "added", f"row {row.number} {words}")
        if row.number > last.number + 1:
            gone = _numbers(last.number + 1, row.number - 1)
            return Fault(last.number + 1, "missing", f"{gone} missing, before row {row.number}")
        linked = row.previous_hash == last.hash
        if _hash(row) == row.hash:
            if linked:
                return None
            if last.number == self._chain.anchor.number:
                words = f"row {row.number} does not follow the rows that came before it"
                return Fault(row.number, "replaced", words)
            words = f"row {last.number} is not the one that row {row.number} was written after"
            return Fault(last.number, "replaced", f"{words}: it was rewritten with a new hash")
        number = None if linked else self._true_number(row)
        if number is not None:
            words = f"row {row.number} was written as row {number}: rows changed places"
            return Fault(row.number, "moved", f"{words}, or some were taken out")
        return Fault(row.number, "edited", f"row {row.number} was edited: {_edited(row)}")

    def _true_number(self, row: Row) -> int | None:
        """The number with which the row's contents give its hash."""
        top = min(self._chain.head.number, row.number + _MOVED_AT_MOST)
        numbers = range(max(1, row.number - _MOVED_AT_MOST), top + 1)
        return next((n for n in numbers if _hash(replace(row, number=n)) == row.hash), None)

    def _fault_at_the_ends(self) -> Fault | None:
        last, head, anchor, noted = self._last, self._chain.head, self._chain.anchor, self._noted
        if last.number < head.number:
            gone = _numbers(last.number + 1, head.number)
            return Fault(last.number + 1, "cut", f"{gone} missing: the end of the chain was cut")
        if last.number > head.number:
            words = f"row {head.number + 1} was added behind the chain's head"
            return Fault(head.number + 1, "added", words)
        if last.hash != head.hash:
            words = f"row {last.number} is not the one that the chain's head names"
            return Fault(last.number, "replaced", words)
        if anchor.number and anchor not in self._prunings:
            words = f"{_numbers(1, anchor.number)} missing, and no row says that they were pruned"
            return Fault(1, "missing", words)
        if noted is None or noted.number < anchor.number or self._noted_is_there:
            return None
        if noted.number > head.number:
            gone = _numbers(head.number + 1, noted.number)
            return Fault(head.number + 1, "cut", f"{gone} missing: the noted head came after them")
        words = f"row {noted.number} is not the one that was noted: the chain was rewritten"
        return Fault(noted.number, "replaced", words)


def parse_mark(text: str) -> Mark:
    """A head as ``ideal audit verify`` prints it: number and hash."""
    number, _, digest = text.partition(":")
    if not number.isdecimal() or len(digest) != 64:
        raise InputError(f"--head {text}: write it as 734:… with the 64 letters of the hash")
    return Mark(int(number), digest.lower())


def _hash(row: Row) -> str | None:
    try:
        return row.expected_hash
    except InputError:  # a value that no text column should hold
        return None


def _edited(row: Row) -> str:
    try:
        json.loads(row.body)
    except (ValueError, TypeError):
        return "its body is no longer JSON"
    return "its contents do not give its hash"


def _numbers(first: int, last: int) -> str:
    return f"row {first} is" if first == last else f"rows {first} to {last} are"

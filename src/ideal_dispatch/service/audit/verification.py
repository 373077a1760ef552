"""Is the chain whole? The first row that is not, and what is wrong with it."""

import json
from dataclasses import dataclass, replace

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.audit.record import Mark, Row
from ideal_dispatch.service.audit.store import AuditStore, Chain

_MOVED_AT_MOST = 100_000  # rows; how far a row is looked for that was moved


@dataclass(frozen=True, slots=True)
class Verification:
    """What a walk along the chain found: ``fault`` is None where all of it is whole.

    Otherwise it names the first row in doubt.
    """

    rows: int
    duplicates: int
    anchor: Mark
    head: Mark
    fault: str | None


def verify(store: AuditStore, noted: Mark | None = None) -> Verification:
    """Walk the whole chain; ``noted`` is a head that was written down earlier.

    A chain that was recomputed as a whole, marks included, is only told from
    the true one by a noted head.
    """
    with store.chain() as chain:
        last, fault, rows, duplicates = chain.anchor, None, 0, 0
        noted_is_there, prunings = noted == last, set()
        for row in chain.rows:
            if fault := _fault(row, last, chain):
                break
            last, rows, duplicates = row.mark, rows + 1, duplicates + (row.duplicate_of is not None)
            noted_is_there |= last == noted
            if row.kind == "service":
                body = json.loads(row.body)
                if body.get("event") == "prune":
                    prunings.add(Mark(body["number"], body["hash"]))
        else:
            pruned = not chain.anchor.number or chain.anchor in prunings
            fault = _fault_at_the_ends(last, chain, pruned, None if noted_is_there else noted)
        return Verification(rows, duplicates, chain.anchor, chain.head, fault)


def _fault(row: Row, last: Mark, chain: Chain) -> str | None:
    """What is wrong with the row after the last one that is whole."""
    if row.number <= last.number:
        words = f"stands before the anchor at row {last.number}, where all rows were pruned"
        return f"row {row.number} {words}"
    if row.number > last.number + 1:
        return f"{_numbers(last.number + 1, row.number - 1)} missing, before row {row.number}"
    linked = row.previous_hash == last.hash
    if _hash(row) == row.hash:
        if linked:
            return None
        if last.number == chain.anchor.number:
            return f"row {row.number} does not follow the rows that came before it"
        words = f"row {last.number} is not the one that row {row.number} was written after"
        return f"{words}: it was rewritten with a new hash"
    if not linked:
        top = min(chain.head.number, row.number + _MOVED_AT_MOST)
        for number in range(max(1, row.number - _MOVED_AT_MOST), top + 1):
            if _hash(replace(row, number=number)) == row.hash:
                words = f"row {row.number} was written as row {number}: rows changed places"
                return f"{words}, or some were taken out"
    try:
        json.loads(row.body)
    except (ValueError, TypeError):
        return f"row {row.number} was edited: its body is no longer JSON"
    return f"row {row.number} was edited: its contents do not give its hash"


def _fault_at_the_ends(last: Mark, chain: Chain, pruned: bool, noted: Mark | None) -> str | None:
    """What is missing before or after rows that are whole; ``noted`` is a head not among them."""
    head, anchor = chain.head, chain.anchor
    if last.number < head.number:
        gone = _numbers(last.number + 1, head.number)
        return f"{gone} missing: the end of the chain was cut"
    if last.number > head.number:
        return f"row {head.number + 1} was added behind the chain's head"
    if last.hash != head.hash:
        return f"row {last.number} is not the one that the chain's head names"
    if not pruned:
        return f"{_numbers(1, anchor.number)} missing, and no row says that they were pruned"
    if noted is None or noted.number < anchor.number:
        return None
    if noted.number > head.number:
        gone = _numbers(head.number + 1, noted.number)
        return f"{gone} missing: the noted head came after them"
    return f"row {noted.number} is not the one that was noted: the chain was rewritten"


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


def _numbers(first: int, last: int) -> str:
    return f"row {first} is" if first == last else f"rows {first} to {last} are"

"""What the audit keeps: entries, and the rows that chain them by hashes.

A row's hash covers its number, its whole entry and the hash of the row before it: every later
hash tells where a row was edited, removed or moved. Whoever may rewrite the whole database can
still forge a chain: note a head elsewhere now and then (``ideal audit verify`` prints it).
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from uuid import uuid4

from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.service.clock import at_text

KINDS = (
    "recommendation", "response", "units", "unit", "closure", "reassessment", "reply", "service",
)  # fmt: skip
FIRST_HASH = "0" * 64
"""What the first row ever written names as the hash before it."""

LONGEST = 256
"""Letters of an id, call or key: more would not fit into a database's index."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # PostgreSQL and UTF-8 refuse them


class AuditError(IdealError):
    """The audit cannot do what it is asked."""


class StoreError(AuditError):
    """The database does not answer, or not as needed: the spool takes over."""


class NoTablesError(StoreError):
    """A database that nothing was written to yet."""


class NotRecordedError(AuditError):
    """Neither the database nor the spool made an entry durable in time."""


class DuplicateEntry(AuditError):  # noqa: N818  an answer to the caller as much as an error
    """The call and key are on record already: here is the entry that was first."""

    def __init__(self, entry: "Entry") -> None:
        super().__init__(
            f"{entry.kind} of call {entry.call_id!r} with key {entry.key!r} is on record already "
            f"as {entry.id}; use that answer, or a new key for new contents"
        )
        self.entry = entry


class OvertakenEntry(AuditError):  # noqa: N818  an answer to the caller as much as an error
    """Another entry of the kind and call came on record after what the writer had seen."""


class PromisedUnits(AuditError):  # noqa: N818  an answer to the caller as much as an error
    """Units that an entry would promise were promised to other calls meanwhile.

    ``calls`` are those calls, by depot.
    """

    def __init__(self, entry: "Entry", calls: Mapping[str, Sequence[str]]) -> None:
        super().__init__(
            f"{entry.kind} of call {entry.call_id!r}: its units at {', '.join(calls)} are not free "
            "any more; decide again"
        )
        self.calls = calls


class UncheckedPromises(AuditError):  # noqa: N818  an answer to the caller as much as an error
    """The database did not say in time whether the units of an entry are still free."""


class OutdatedUnits(AuditError):  # noqa: N818  an answer to the caller as much as an error
    """A newer count of a depot is known than the one that an entry tells."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened: inputs, outputs, versions, ages, latency, actor in ``body``.

    ``call_id`` is empty where no call is concerned. ``key``, where given, is unique among the
    entries of the same kind and call. ``at`` is kept in UTC. ``text`` is the body in canonical JSON
    at construction: later changes of ``body`` do not count. ``seen``, where given, is the number of
    the last row its writer knew: an entry of the same kind and call after that one (of a reply, a
    reassessment, and of that a reply) keeps it from the record, but not from the spool. The units
    that a ``promising`` entry takes must still be free when it comes on record; it never goes to
    the spool.
    """

    kind: str
    call_id: str
    body: Mapping[str, Any]
    at: datetime
    key: str | None = None
    id: str = field(default_factory=lambda: uuid4().hex)
    seen: int | None = field(default=None, repr=False, compare=False)
    promising: bool = field(default=False, repr=False, compare=False)
    text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"audit entry: kind {self.kind!r}; choose one of {', '.join(KINDS)}")
        for name, value in (("id", self.id), ("call_id", self.call_id), ("key", self.key or "")):
            if len(value) > LONGEST or _UNSTORABLE.search(value):
                raise InputError(
                    f"audit entry: {name} {value[:40]!r} cannot be kept; at most {LONGEST} "
                    "letters are, without NUL and halves of characters"
                )
        if self.at.tzinfo is None:
            raise InputError(f"audit entry: at {self.at} has no zone; add one")
        if not isinstance(self.body, Mapping):
            raise InputError(f"audit entry: body is {type(self.body).__name__}; give a mapping")
        object.__setattr__(self, "at", self.at.astimezone(UTC))
        object.__setattr__(self, "text", canonical(dict(self.body)))

    @property
    def slot(self) -> tuple[str, str, str] | None:
        """What may be on record once: kind, call and key; None without a key."""
        return None if self.key is None else (self.kind, self.call_id, self.key)


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the chain: the row of that number has that hash."""

    number: int
    hash: str


@dataclass(frozen=True)
class Row:
    """An entry on record, as the database holds it: nothing in it is checked yet.

    ``duplicate_of`` is the id of the entry that had its key first: two workers cut off from the
    database may both answer the same request. Both answers left, so both stay on record.
    """

    number: int
    id: str
    kind: str
    call_id: str
    key: str | None
    at: str
    body: str
    duplicate_of: str | None
    previous_hash: str
    hash: str

    @classmethod
    def after(cls, last: Mark, entry: Entry, duplicate_of: str | None = None) -> "Row":
        """The row that follows the last one."""
        row = cls(
            last.number + 1, entry.id, entry.kind, entry.call_id, entry.key, at_text(entry.at),
            entry.text, duplicate_of, last.hash, "",
        )  # fmt: skip
        return replace(row, hash=row.expected_hash)

    @property
    def expected_hash(self) -> str:
        """The hash that these contents give."""
        contents = [
            self.number, self.id, self.kind, self.call_id, self.key, self.at,
            self.body, self.duplicate_of, self.previous_hash,
        ]  # fmt: skip
        return hashlib.sha256(canonical(contents).encode("ascii")).hexdigest()

    @property
    def mark(self) -> Mark:
        """Its place in the chain."""
        return Mark(self.number, self.hash)

    @cached_property
    def entry(self) -> Entry:
        """The entry for use, or one line where the contents make no sense."""
        try:
            at, body = datetime.fromisoformat(self.at), json.loads(self.body)
            return Entry(self.kind, self.call_id, body, at, self.key, self.id)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise StoreError(
                f"audit row {self.number} cannot be read ({error}); run `ideal audit verify`"
            ) from None


def canonical(value: Any) -> str:
    """JSON with sorted keys and without blanks, in ASCII: the same value, the same text."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"audit entry: the body cannot be written as JSON ({error})") from None

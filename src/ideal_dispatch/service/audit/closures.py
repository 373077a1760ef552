"""Roads that a centre closed, as the entries on record say.

One fold over entries serves a worker's memory and the table in the database.
The table is an index: all that it holds is in the entries.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from ideal_dispatch.service import clock
from ideal_dispatch.service.audit.record import Entry, canonical
from ideal_dispatch.service.audit.schema import closures
from ideal_dispatch.service.clock import moment_text

log = logging.getLogger(__name__)

KEPT = timedelta(days=1)
"""How long a closure is kept after its end: a clock that is wrong for a while must not lose it."""

_ENDED = 1000  # ids that are remembered: what a row or a table says of them is of before


@dataclass(frozen=True, slots=True)
class Closure:
    """Edges that are closed ``since`` a moment ``until`` another one; None is always.

    ``network`` is the checksum of the network that the edges are of. ``line`` or ``polygon`` is
    what was drawn, as lon and lat, where something was.
    """

    id: str
    edges: tuple[int, ...]
    network: str
    by: str
    at: datetime
    since: datetime | None = None
    until: datetime | None = None
    reason: str = ""
    line: Sequence[Sequence[float]] | None = None
    polygon: Sequence[Sequence[float]] | None = None

    def plain(self) -> dict[str, Any]:
        """As values of JSON."""
        return {
            "id": self.id, "from": _text(self.since), "until": _text(self.until),
            "reason": self.reason, "by": self.by, "at": moment_text(self.at),
            "edges": list(self.edges), "line": self.line, "polygon": self.polygon,
            "network": self.network,
        }  # fmt: skip

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Closure":
        """From values of JSON."""
        return cls(
            str(plain["id"]), tuple(int(edge) for edge in plain["edges"]), str(plain["network"]),
            str(plain["by"]), datetime.fromisoformat(plain["at"]), _moment(plain["from"]),
            _moment(plain["until"]), str(plain["reason"]), plain["line"], plain["polygon"],
        )  # fmt: skip

    def row(self, now: datetime, network: str) -> dict[str, Any]:
        """For the API."""
        row, edges = self.plain(), self.edges_on(network)
        del row["network"]
        return {**row, "edges": list(edges), "active": bool(edges) and self.active(now)}

    def edges_on(self, network: str) -> tuple[int, ...]:
        """Its edges; none where they are of another network: nobody knows its roads here."""
        return self.edges if self.network == network else ()

    def over(self, now: datetime) -> bool:
        """Whether its time has passed."""
        return self.until is not None and self.until <= now

    def active(self, now: datetime) -> bool:
        """Whether the edges are closed now."""
        return not self.over(now) and (self.since is None or self.since <= now)


class Closures:
    """All closures that are known, the newest last."""

    def __init__(self, known: Iterable[Closure] = ()) -> None:
        self._known = {one.id: one for one in known}
        self._ended: dict[str, None] = {}

    def __iter__(self) -> Iterator[Closure]:
        return iter(list(self._known.values()))

    def get(self, id: str) -> Closure | None:  # noqa: A002
        """The one of this id, unless it ended."""
        found = self._known.get(id)
        return None if found is None or found.over(clock.now()) else found

    def take(self, entry: Entry) -> None:
        """Know what an entry closes or opens again."""
        made, ended = changes(entry)
        if made is not None:
            self.put(made)
        elif ended:
            self._known.pop(ended, None)
            self._ended[ended] = None
            while len(self._ended) > _ENDED:
                del self._ended[next(iter(self._ended))]

    def put(self, closure: Closure) -> None:
        """Know one, unless it ended or is known."""
        if closure.id not in self._ended:
            self._known.setdefault(closure.id, closure)

    def lay(self, closure: Closure, edges: Iterable[int], network: str) -> None:
        """Know the edges of one on another network than that on which it was closed."""
        if closure.id in self._known:
            self._known[closure.id] = replace(closure, edges=tuple(edges), network=network)

    def forget(self, now: datetime) -> None:
        """Let go of those whose time passed long ago (:data:`KEPT`)."""
        for one in self:
            if one.over(now - KEPT):
                self._known.pop(one.id)

    def active(self, now: datetime, network: str) -> list[Closure]:
        """Those that close edges of this network now."""
        return [one for one in self if one.active(now) and one.edges_on(network)]

    def rows(self, now: datetime, network: str) -> list[dict[str, Any]]:
        """Those whose time has not passed, for the API."""
        return [one.row(now, network) for one in self if not one.over(now)]


def changes(entry: Entry) -> tuple[Closure | None, str]:
    """The closure that an entry makes, or the id of the one that it ends.

    One that makes no sense changes nothing: it must not block those behind it.
    """
    if entry.kind != "closure":
        return None, ""
    try:
        if (ended := entry.body.get("ended")) is not None:
            return None, str(ended)
        return Closure.of(entry.body["closure"]), ""
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        log.warning("audit entry %s closes nothing (%r)", entry.id, error)
        return None, ""


def keep_closures(connection: Connection, entries: Iterable[Entry], *, clean: bool) -> None:
    """Let the table say what these entries say, after all before them.

    Closures whose time passed long ago are removed, too, with any change and if ``clean``.
    """
    for entry in entries:
        made, ended = changes(entry)
        clean |= made is not None or bool(ended)
        if made is not None:
            connection.execute(sa.delete(closures).where(closures.c.id == made.id))
            row = {"id": made.id, "until": made.until, "closure": canonical(made.plain())}
            connection.execute(sa.insert(closures), row)
        elif ended:
            connection.execute(sa.delete(closures).where(closures.c.id == ended))
    if clean:
        connection.execute(sa.delete(closures).where(closures.c.until < clock.now() - KEPT))


def read_closures(connection: Connection) -> list[Closure]:
    """All that the table holds, in the order in which they were closed."""
    found = connection.execute(sa.select(closures.c.closure)).scalars()
    return sorted((Closure.of(json.loads(text)) for text in found), key=lambda one: one.at)


def _text(at: datetime | None) -> str | None:
    return None if at is None else moment_text(at)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)

"""News of units between two lists: what is kept, and what newer news replace."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Condition

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.units.avl import NewsFields

CHANGES = 10_000
"""Changes that are kept while the service is away; then the oldest are lost."""

UNITS = 10_000
"""Units that a feed may name."""

_WORK = ("status", "station", "kind", "call_id")


@dataclass(frozen=True, slots=True)
class Item:
    """News to send. A ``change`` is of what a unit does: every one of them counts."""

    news: NewsFields
    change: bool


class Gathered:
    """News to send: every change in its order, then the last place of each unit.

    News that repeat the status, station, kind and call of a unit are no change. One thread may
    :meth:`take` while another sends. At most ``changes`` are kept; ``lost`` counts the others.
    """

    def __init__(self, changes: int = CHANGES, units: int = UNITS) -> None:
        self.lost = 0
        self._most_changes, self._most_units = changes, units
        self._known: dict[str, NewsFields] = {}
        self._changes: deque[NewsFields] = deque()
        self._last: dict[tuple[str, bool], NewsFields] = {}
        self._out = 0
        self._room = Condition()

    @property
    def units(self) -> int:
        """How many units were named so far."""
        return len(self._known)

    def take(self, news: NewsFields, wait: bool = False) -> None:
        """Note news; ``wait`` rather than lose a change where there is no room for another."""
        unit, placed = news["id"], "lon" in news
        with self._room:
            if unit not in self._known and len(self._known) >= self._most_units:
                raise InputError(f"unit {unit!r} is one more than {self._most_units:,} units")
            known = self._known.setdefault(unit, {})
            work = {name: news[name] for name in _WORK if name in news}
            if work.items() <= known.items():
                older = self._last.get((unit, placed))
                if older is None or older["at"] <= news["at"]:
                    self._last[unit, placed] = news
                return
            while wait and len(self._changes) + self._out >= self._most_changes:
                self._room.wait()
            known.update(work)
            self._changes.append(news)
            self._last.pop((unit, False), None)
            if placed:
                self._last.pop((unit, True), None)
            self._trim()

    def hand_out(self) -> list[Item]:
        """All that is to be sent; :meth:`back` must follow, with what could not be."""
        with self._room:
            items = [Item(news, True) for news in self._changes]
            items += [Item(news, False) for news in self._last.values()]
            self._out = len(self._changes)
            self._changes.clear()
            self._last.clear()
        return items

    def back(self, items: Iterable[Item] = ()) -> None:
        """Take back what could not be sent, before all that came meanwhile."""
        with self._room:
            changes = []
            for item in items:
                if item.change:
                    changes.append(item.news)
                else:
                    self._last.setdefault((item.news["id"], "lon" in item.news), item.news)
            self._changes.extendleft(reversed(changes))
            self._out = 0
            self._trim()
            self._room.notify_all()

    def _trim(self) -> None:
        while len(self._changes) > self._most_changes:
            self._changes.popleft()
            self.lost += 1

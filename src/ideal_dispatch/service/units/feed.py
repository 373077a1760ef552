"""A feed of units followed: its lines read, gathered, and sent to the service as lists of news."""

import math
import random
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from time import monotonic, sleep
from typing import Protocol

from ideal_dispatch.errors import InputError
from ideal_dispatch.http_client import NoAnswerError, one_line
from ideal_dispatch.service.units.avl import LineReader, NewsFields
from ideal_dispatch.service.units.feed_source import Source
from ideal_dispatch.service.units.fleet_client import AwayError, NewsRefusedError, Told
from ideal_dispatch.service.units.gathered import UNITS, Gathered, Item

_LIST = 300
"""News of one list: below the service's 1,000, and usually below its ``body_bytes``."""

_LONGEST_PAUSE_S = 30.0
_LONGEST_WISH_S = 300.0
_SAY_EVERY_S = 60.0
_ASIDE_S = 30.0


class Client(Protocol):
    """Who is told: see :class:`~ideal_dispatch.service.units.fleet_client.FleetClient`."""

    def tell(self, news: Sequence[NewsFields]) -> Told: ...


@dataclass
class Counts:
    """What came of a feed so far."""

    lines: int = 0
    unread: int = 0
    taken: int = 0
    ignored: int = 0
    refused: int = 0
    lost: int = 0


@dataclass
class FoundUnit:
    """What a feed says of a unit: how often, its statuses, and the newest."""

    news: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    last: NewsFields = field(default_factory=dict)


class _Notes:
    """One line for people on each kind of trouble: the first at once, then one a minute."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._lock = say, Lock()
        self._many, self._last = Counter[str](), dict[str, str]()
        self._said: dict[str, float] = {}

    def note(self, kind: str, example: str, many: int = 1) -> None:
        with self._lock:
            self._many[kind] += many
            self._last[kind] = example

    def say(self, everything: bool = False) -> None:
        """Say what is due, or all that has not been said."""
        with self._lock:
            for kind, many in list(self._many.items()):
                if everything or monotonic() >= self._said.get(kind, -math.inf) + _SAY_EVERY_S:
                    self._say(f"{kind}: {many:,}, the last: {self._last[kind]}")
                    self._said[kind] = monotonic()
                    del self._many[kind]


class Feed:
    """Follows a source: one thread reads its lines, the caller's sends lists.

    ``say`` gets lines on trouble, for people.
    """

    def __init__(
        self,
        source: Source,
        reader: LineReader,
        say: Callable[[str], None],
        *,
        every_s: float = 1.0,
        gathered: Gathered | None = None,
    ) -> None:
        self.counts = Counts()
        self.gathered = Gathered() if gathered is None else gathered
        self._source, self._reader, self._every_s = source, reader, every_s
        self._notes = _Notes(say)
        self._ended, self._left, self._error = Event(), Event(), list[BaseException]()
        self._aside: dict[str, float] = {}

    def check(self, for_s: float) -> dict[str, FoundUnit]:
        """What the source says within so many seconds, by unit; nothing is sent."""
        units: dict[str, FoundUnit] = {}

        def take(news: NewsFields) -> None:
            if news["id"] not in units and len(units) >= UNITS:
                raise InputError(f"unit {news['id']!r} is one more than {UNITS:,} units")
            found = units.setdefault(news["id"], FoundUnit())
            found.news += 1
            if "status" in news:
                found.statuses[news["status"]] += 1
            found.last = {**found.last, **news}

        self._start(take, again=False)
        self._ended.wait(for_s)
        self._end()
        return units.copy()

    def follow(self, client: Client, show: Callable[[], None] = lambda: None) -> None:
        """Send lists until the source has ended and all of it is sent.

        While the service is away it is tried again after longer and longer pauses.
        """
        patient = self._source.patient
        self._start(lambda news: self.gathered.take(news, patient), again=self._source.streams)
        try:
            self._send_lists(client, show)
        finally:
            self._left.set()
        self._end()

    def _send_lists(self, client: Client, show: Callable[[], None]) -> None:
        failures = 0
        while True:
            ended = self._ended.wait(self._every_s)  # first: what came until then is sent below
            away = self._send(client, self.gathered.hand_out())
            self._notes.say()
            show()
            if away is None and ended:
                return
            failures = 0 if away is None else failures + 1
            if away is not None:
                sleep(max(self._pause_s(failures), min(away.wait_s, _LONGEST_WISH_S)))

    def _end(self) -> None:
        self._notes.say(everything=True)
        if self._error:
            raise self._error[0]

    def _pause_s(self, failures: int) -> float:
        longest_s = min(_LONGEST_PAUSE_S, self._every_s * 2.0 ** min(failures, 30))
        return random.uniform(0.5, 1.0) * longest_s

    # --- reading -------------------------------------------------------------------

    def _start(self, take: Callable[[NewsFields], None], again: bool) -> None:
        def run() -> None:
            try:
                self._read(take, again)
            except BaseException as error:  # raised where it can be seen
                self._error.append(error)
            finally:
                self._ended.set()

        Thread(target=run, name="feed", daemon=True).start()

    def _read(self, take: Callable[[NewsFields], None], again: bool) -> None:
        """Read to the end, ``again`` and again where asked to."""
        failures = 0
        while True:
            try:
                with self._source.open() as lines:
                    for line in lines:
                        failures = 0
                        self._read_line(line, take)
                broken = "it ended"
            except (NoAnswerError, InputError) as error:
                if not again or (isinstance(error, InputError) and not self.counts.lines):
                    raise
                broken = str(error)
            if not again:
                return
            failures += 1
            self._notes.note("the stream broke off and is opened again", broken)
            if self._left.wait(self._pause_s(failures)):
                return

    def _read_line(self, line: str, take: Callable[[NewsFields], None]) -> None:
        self.counts.lines += 1
        try:
            for news in self._reader.read(line):
                take(news)
        except InputError as error:
            self.counts.unread += 1
            self._notes.note("lines that cannot be read", f"{one_line(line, 60)!r}: {error}")

    # --- sending -------------------------------------------------------------------

    def _send(self, client: Client, items: list[Item]) -> AwayError | None:
        """Send all items, or keep those that are left and return why."""
        items = [item for item in items if item.change or not self._is_aside(item)]
        todo = deque(items[start : start + _LIST] for start in range(0, len(items), _LIST))
        away = None
        while todo and away is None:
            part = todo.popleft()
            try:
                told = client.tell([item.news for item in part])
            except NewsRefusedError as error:
                if len(part) > 1:  # nothing of it was taken: look for the items that are wrong
                    todo.extendleft((part[len(part) // 2 :], part[: len(part) // 2]))
                else:
                    self._refused(part[0], error)
            except AwayError as error:
                todo.appendleft(part)
                self._notes.note("the service cannot be told and is tried again", str(error))
                away = error
            else:
                self._taken(part, told)
        self.gathered.back(item for part in todo for item in part)
        if self.gathered.lost > self.counts.lost:
            many = self.gathered.lost - self.counts.lost
            self._notes.note("changes lost while the service was away", "the oldest", many)
            self.counts.lost = self.gathered.lost
        return away

    def _is_aside(self, item: Item) -> bool:
        """Whether places of a unit that the service does not know rest for a while."""
        aside = monotonic() < self._aside.get(item.news["id"], -math.inf)
        self.counts.refused += aside
        return aside

    def _refused(self, item: Item, error: NewsRefusedError) -> None:
        self.counts.refused += 1
        self._notes.note("news refused by the service", f"unit {item.news['id']}: {error}")
        if not item.change:
            self._aside[item.news["id"]] = monotonic() + _ASIDE_S

    def _taken(self, part: list[Item], told: Told) -> None:
        self.counts.taken += told.taken
        self.counts.ignored += len(told.ignored)
        if told.ignored:
            self._notes.note("news ignored by the service", told.ignored[-1], len(told.ignored))
        for item in part:
            if item.change:
                self._aside.pop(item.news["id"], None)

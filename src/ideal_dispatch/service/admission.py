"""Which calls are let in."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ideal_dispatch.errors import IdealError

RETRY_AFTER_S = 1
_SHARE = 3  # times what is free: what one client may have


class BusyError(IdealError):
    """More calls wait than can be answered in time."""


class StartingError(IdealError):
    """A worker that cannot advise yet; another one may."""


class Admission:
    """Lets calls in while the worker is ``ready`` and places are left.

    A client has at most three times as many places as are left free, so one that storms leaves a
    quarter to others. Lives on one event loop.
    """

    def __init__(self, places: int, ready: Callable[[], bool]) -> None:
        self._places, self._ready = places, ready
        self._held: Counter[str] = Counter()

    @property
    def inside(self) -> int:
        """Calls that are being answered or wait."""
        return self._held.total()

    def check(self, client: str) -> None:
        """Refuse at once where there is no place for this client now."""
        if not self._ready():
            raise StartingError("this worker is starting; ask again in a moment")
        if self._held[client] >= _SHARE * (self._places - self.inside):
            raise BusyError("more calls wait than can be answered in time; ask again in a moment")

    @contextmanager
    def admit(self, client: str) -> Iterator[None]:
        """A place for a call, or the refusal at once."""
        self.check(client)
        self._held[client] += 1
        try:
            yield
        finally:
            self._held[client] -= 1

"""Which calls come in: each has a slot, and a deadline that runs since its first byte."""

import time
from collections import Counter
from collections.abc import Callable

from ideal_dispatch.errors import IdealError

RETRY_AFTER_S = 1
_SHARE = 3  # times what is free: what one holder may have


class BusyError(IdealError):
    """More calls wait than can be answered in time."""


class StartingError(IdealError):
    """A worker that cannot advise now; another one may."""


class Slot:
    """The slot of a holder's call, of one owner at a time; given back once.

    ``began`` is the moment of :func:`time.monotonic` at which the call came.
    """

    def __init__(self, holder: str, began: float, leave: Callable[[str], None] | None) -> None:
        self.holder, self.began, self._leave = holder, began, leave

    def moved(self) -> "Slot":
        """The slot for another owner; nothing is left to give back here."""
        leave, self._leave = self._leave, None
        return Slot(self.holder, self.began, leave)

    def release(self) -> None:
        """Give it back, unless that was done or it was moved."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave(self.holder)


class Admission:
    """Lets calls in while the worker is ``ready`` and slots are left; lives on one event loop.

    Slots are shared: nobody holds more than three times what is left free, so
    one who storms leaves a quarter to others.
    """

    def __init__(self, slots: int, ready: Callable[[], bool]) -> None:
        self._slots, self._ready = slots, ready
        self._held: Counter[str] = Counter()

    @property
    def inside(self) -> int:
        """Calls that are being answered or wait, those given up but still running included."""
        return self._held.total()

    def check(self, holder: str) -> None:
        """Refuse at once where there is no slot for this holder now."""
        if not self._ready():
            raise StartingError("no solver is at work; ask again in a moment")
        if self._held[holder] >= _SHARE * (self._slots - self.inside):
            raise BusyError("more calls wait than can be answered in time; ask again in a moment")

    def admit(self, holder: str, began: float | None = None) -> Slot:
        """A slot for a call that came at that moment, or now; or the refusal at once."""
        self.check(holder)
        self._held[holder] += 1
        return Slot(holder, time.monotonic() if began is None else began, self._leave)

    def _leave(self, holder: str) -> None:
        self._held[holder] -= 1

"""Which calls come in: each with a place, and with a deadline that runs since its first byte."""

import threading
import time
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

from ideal_dispatch.errors import IdealError
from ideal_dispatch.service.solver.engine import Engine, Place

BEGAN = "ideal_dispatch.began"
"""Where in a request's scope the server notes when its first byte came."""

REFUSED = "ideal_dispatch.refused"
"""Where it has a list for the client of a request that is refused for want of a place."""

_ADMITTED = "ideal_dispatch.admitted"


class StartingError(IdealError):
    """A worker that cannot advise yet; another one may."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A place for a call, and the moment of :func:`time.monotonic` at which it came."""

    place: Place
    began: float


class Gate:
    """Lets calls in once the worker is ``warm`` and while the engine has places."""

    def __init__(self, engine: Engine, warm: threading.Event) -> None:
        self._engine, self._warm = engine, warm

    def check(self, holder: str) -> None:
        """The refusal of somebody's call, if there is one, before its body is read."""
        if not self._warm.is_set():
            raise StartingError("the service is still starting; ask again in a moment")
        self._engine.check(holder)

    def admit(self, holder: str, began: float | None = None) -> Admitted:
        """A place for somebody's call that came at that moment, or now."""
        self.check(holder)
        return Admitted(self._engine.admit(holder), time.monotonic() if began is None else began)

    def pass_on(self, scope: MutableMapping[str, Any], holder: str) -> Place:
        """Admit the call of a request; its place, which is given back unless it was moved."""
        admitted = self.admit(holder, scope.get(BEGAN))
        scope[_ADMITTED] = admitted
        return admitted.place

    def admitted(self, scope: MutableMapping[str, Any]) -> Admitted:
        """What :meth:`pass_on` gave to this request."""
        admitted = scope[_ADMITTED]
        assert isinstance(admitted, Admitted)
        return admitted

"""Invented calls, so that a newcomer sees decisions flow."""

import asyncio
import logging
from contextlib import suppress
from typing import Any

from ideal_dispatch.errors import IdealError
from ideal_dispatch.service.http.schemas import RecommendationRequest
from ideal_dispatch.service.state import Service

log = logging.getLogger(__name__)

ACTOR = "simulation"
_FIRST_CALLS, _FIRST_EVERY_S = 40, 6.0


class Simulator:
    """Asks the service about invented calls, one every few seconds."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._left, self._every_s = 0, _FIRST_EVERY_S
        self._number = 0
        self._wake = asyncio.Event()

    def start(self) -> None:
        """Begin to wait; on the embedded city, begin to call, unless a city lives there."""
        if self._service.settings.invents:
            self.ask(_FIRST_CALLS, _FIRST_EVERY_S)
        self._service.run(self._run())

    def ask(self, count: int, every_s: float) -> None:
        """So many calls from now on, in place of what was still to come."""
        self._left, self._every_s = count, every_s
        self._wake.set()

    def status(self) -> dict[str, Any]:
        """What is still to come."""
        return {"running": self._left > 0, "left": self._left, "every_s": self._every_s}

    async def _run(self) -> None:
        solver = self._service.solver
        while True:
            while not self._left:  # whoever stops it wakes it, too
                self._wake.clear()
                await self._wake.wait()
            ready = solver.working > 0 and solver.traffic != "starting"
            if ready:
                self._left -= 1
                try:
                    # first: nobody would give back a slot taken before it
                    request = await self.call()
                    slot = self._service.admission.admit(ACTOR)
                    await self._service.recommender.recommend(
                        request.call(), request.content(), None, ACTOR, slot, simulated=True
                    )
                except IdealError as error:
                    log.warning("simulated call: %s", error)
            self._wake.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_s if ready else 0.5):
                    await self._wake.wait()

    async def call(self) -> RecommendationRequest:
        """The next call."""
        self._number += 1
        invented = await self._service.solver.ask("invented_call", self._number)
        return RecommendationRequest.model_validate(invented)

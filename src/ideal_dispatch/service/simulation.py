"""Invented calls, so that a newcomer sees decisions flow."""

import asyncio
import logging
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import IdealError
from ideal_dispatch.service.schemas import RecommendationRequest
from ideal_dispatch.service.state import Service

log = logging.getLogger(__name__)

ACTOR = "simulation"
_CONTESTED = 1.25  # the second nearest depot takes at most so many times as long
_FIRST_CALLS, _FIRST_EVERY_S = 40, 6.0


class Simulator:
    """Asks the service about calls at places where depots compete, one every few seconds."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._left, self._every_s = 0, _FIRST_EVERY_S
        self._number = 0
        self._rng = np.random.default_rng()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to wait; on the embedded city, begin to call."""
        if self._service.settings.demo:
            self.ask(_FIRST_CALLS, _FIRST_EVERY_S)
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End it."""
        if self._task is not None:
            self._task.cancel()
            (ended,) = await asyncio.gather(self._task, return_exceptions=True)
            if isinstance(ended, Exception):
                log.error("the simulation had died", exc_info=ended)

    def ask(self, count: int, every_s: float) -> None:
        """So many calls from now on, in place of what was still to come."""
        self._left, self._every_s = count, every_s
        self._wake.set()

    def status(self) -> dict[str, Any]:
        """What is still to come."""
        return {"running": self._left > 0, "left": self._left, "every_s": self._every_s}

    async def _run(self) -> None:
        while True:
            while not self._left:  # whoever stops it wakes it, too
                self._wake.clear()
                await self._wake.wait()
            if self._ready:
                self._left -= 1
                try:
                    call = self.call()  # first: nobody would give back a place taken before it
                    admitted = self._service.gate.admit()
                    await self._service.recommender.recommend(
                        call, None, ACTOR, admitted, simulated=True
                    )
                except IdealError as error:
                    log.warning("simulated call: %s", error)
            self._wake.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self._pause_s())

    @property
    def _ready(self) -> bool:
        return self._service.warm.is_set() and self._service.assets.traffic.status != "starting"

    def _pause_s(self) -> float:
        return self._every_s if self._ready else 0.5

    @cached_property
    def _reach_s(self) -> FloatArray:
        """Seconds on empty roads, a row per depot and a column per node."""
        network = self._service.assets.network
        times = network.free_flow_times_s
        return np.array([network.distances(times, one) for one in self._service.assets.depots])

    @cached_property
    def _places(self) -> npt.NDArray[np.intp]:
        """Nodes at which two depots compete, or all that can be reached."""
        nearest = np.sort(self._reach_s, axis=0)
        near = np.isfinite(nearest[1]) & (nearest[0] > 60) & (nearest[1] < _CONTESTED * nearest[0])
        return np.flatnonzero(near if near.any() else np.isfinite(nearest[0]))

    def call(self) -> RecommendationRequest:
        """A call that a CAD might send: mostly with the ambulance of the nearest depot."""
        assets, rng = self._service.assets, self._rng
        network, now = assets.network, datetime.now(UTC)
        node = int(rng.choice(self._places))
        self._number += 1
        depot = assets.depots[int(self._reach_s[:, node].argmin())]
        streets = {network.name[e] for e in np.flatnonzero(network.head == node)} - {""}
        primary = {"depot": depot.name, "unit": f"A{rng.integers(100, 400)}"}
        body: dict[str, Any] = {
            "call_id": f"SIM-{now:%H%M%S}-{self._number:03d}",
            "received_at": now,
            "location": {
                "lon": round(float(network.lon[node]) + float(rng.normal(0, 1e-4)), 6),
                "lat": round(float(network.lat[node]) + float(rng.normal(0, 1e-4)), 6),
                "accuracy_m": float(rng.integers(5, 60)),
            },
            "primary": None if rng.random() < 0.15 else primary,
            "depots": [
                {"name": one.name, "units": int(rng.choice([0, 1, 2, 3], p=[0.06, 0.3, 0.4, 0.24]))}
                for one in assets.depots
            ],
            "note": f"{rng.integers(1, 200)} {min(streets)}" if streets else None,
        }
        return RecommendationRequest.model_validate(body)

"""All that decides, loaded once in a worker: advice, and what is shown of the city."""

import gzip
import json
import logging
import math
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.network import Depot
from ideal_dispatch.network.geojson import streets
from ideal_dispatch.service.clock import moment
from ideal_dispatch.service.deciding.adviser import Adviser
from ideal_dispatch.service.deciding.assets import Assets, load_assets
from ideal_dispatch.service.deciding.starts import NoAdviceError, UnitStarts
from ideal_dispatch.service.messages import Closed, KnownWeather, Picture
from ideal_dispatch.service.requests import RecommendationRequest
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.units import Unit

log = logging.getLogger(__name__)

_PATIENCE_S = 60.0  # of a rehearsal, where nothing is compiled yet
_CONTESTED = 1.25  # the second nearest depot takes at most so many times as long
_PLACES = 50  # that are looked at to find one


class Engine:
    """Advice on one city and what else is asked of it; its parts may be asked from many threads.

    It is ``ready`` once what a call needs is loaded and compiled. ``depots`` are places (lon, lat)
    by name, ``bounds`` west, south, east and north, ``middle`` the mean of all junctions.
    """

    def __init__(self, assets: Assets) -> None:
        self.assets, self.adviser, self.ready = assets, Adviser(assets), False
        self.checksums = assets.checksums
        places = np.column_stack([assets.network.lon, assets.network.lat]).round(6)
        self.depots = {name: places[one.node].tolist() for name, one in assets.depots.items()}
        self.bounds = [*places.min(axis=0).tolist(), *places.max(axis=0).tolist()]
        self.middle = float(places[:, 0].mean()), float(places[:, 1].mean())

    @classmethod
    def load(cls, settings: ServiceSettings) -> "Engine":
        """What the settings name, or one line on what is wrong with them."""
        return cls(load_assets(settings))

    def start(self) -> None:
        """Warm up in the background."""
        threading.Thread(target=self.warm_up, name="warm-up", daemon=True).start()

    def warm_up(self) -> None:
        """Load and compile what a call needs, by advice on an invented call.

        One that fails is logged: a worker that cannot rehearse still says what is wrong.
        """
        from ideal_dispatch.gap.warm_up import warm_up

        now, due = round(time.time() * 1e6), time.monotonic() + _PATIENCE_S
        units = [Unit(f"{name} #1", name, "at_station", now, now, now) for name in self.depots]
        try:
            call = RecommendationRequest.model_validate(self.invented_call(0, now))
            made = self.adviser.advise(call, Picture(now, tuple(units)), KnownWeather(), due)
            if made.decision == "no_advice":
                log.error("the rehearsal gives no advice: %s", made.fields["headline"])
            self.ready = True
            warm_up()  # kernels that only some calls need
        except Exception:
            log.exception("kernels cannot be compiled")
            self.ready = True

    def close(self) -> None:
        """Give up connections."""
        self.assets.traffic.close()

    def road_map(self) -> bytes:
        """The roads for a map, as packed GeoJSON."""
        document = json.dumps(
            streets(self.assets.network), separators=(",", ":"), ensure_ascii=False
        )
        return gzip.compress(document.encode(), 6, mtime=0)

    def cover(
        self, free: Sequence[Unit], closures: Sequence[Closed], now: int
    ) -> dict[str, float | None] | None:
        """How far the next call is from these units: drives to junctions on open roads.

        Half of them take at most ``median_s``, nine of ten at most ``p90_s``, of all junctions that
        a unit could reach if no road were closed; None where closures cut off so many. None where
        there are no units.
        """
        units, starts, times_s = UnitStarts(self.assets, now), list[Depot](), self._usual_times_s
        for unit in free:
            with suppress(NoAdviceError):  # its depot is not known
                starts.append(units.place(unit)[0])
        if not starts:
            return None
        reached = np.isfinite(self.assets.network.distances(times_s, starts))
        drive_s = np.sort(self.assets.roads(closures).distances(times_s, starts)[reached])
        within_s = [float(drive_s[math.ceil(share * drive_s.size) - 1]) for share in (0.5, 0.9)]
        median_s, p90_s = (limit_s if math.isfinite(limit_s) else None for limit_s in within_s)
        return {"median_s": median_s, "p90_s": p90_s}

    @cached_property
    def _usual_times_s(self) -> FloatArray:
        """Times of roads in an average context."""
        model = self.assets.model
        average = np.full(len(model.encoding.columns), np.nan)
        return model.forecast(average, self.assets.network).nominal_times

    def invented_call(self, number: int, now: int) -> dict[str, Any]:
        """A call received now, where depots compete; most name the nearest depot for the primary.

        The number makes its name.
        """
        network, at, rng = self.assets.network, moment(now), np.random.default_rng()
        depots = [depot.node for depot in self.assets.depots.values()]
        for _ in range(_PLACES):
            node = int(rng.integers(network.num_nodes))
            drives_s = network.distances_to(network.free_flow_times_s, node)[depots]
            first_s, second_s = np.sort(drives_s)[:2]
            if first_s > 60.0 and second_s < _CONTESTED * first_s:
                break
        off, house = rng.normal(0, 1e-4, 2), int(rng.integers(1, 200))
        streets = {network.name[e] for e in np.flatnonzero(network.head == node)} - {""}
        nearest = list(self.assets.depots)[int(drives_s.argmin())]
        return {
            "call_id": f"SIM-{at:%H%M%S}-{number:03d}",
            "received_at": at,
            "location": {
                "lon": round(float(network.lon[node] + off[0]), 6),
                "lat": round(float(network.lat[node] + off[1]), 6),
                "accuracy_m": float(rng.integers(5, 60)),
            },
            "primary": None if rng.random() < 0.15 else {"depot": nearest},
            "note": f"{house} {min(streets)}" if streets else None,
        }

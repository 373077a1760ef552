"""The solver: city, model and traffic loaded, prepared, and asked for advice."""

import gc
import gzip
import json
import logging
import math
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.closing import closed_edges
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.service import clock
from ideal_dispatch.service.repeated import Repeated
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.solver.adviser import Adviser
from ideal_dispatch.service.solver.assets import Assets
from ideal_dispatch.service.solver.live_traffic import PREPARE_S
from ideal_dispatch.service.solver.messages import (
    MOST_CLOSED,
    Call,
    CityFacts,
    Closed,
    Cover,
    KnownUnit,
    KnownUnits,
    KnownWeather,
    RoadMap,
    Scene,
    Sent,
)
from ideal_dispatch.service.solver.reassessing import Reassesser

log = logging.getLogger(__name__)

_PATIENCE_S = 60.0  # of a rehearsal, where nothing is compiled yet
_CONTESTED = 1.25  # the second nearest depot takes at most so many times as long


class Solver:
    """Advice on one city, and what else is asked of it from another process.

    ``warm`` is set when it can advise. ``changed`` is called then, and when the traffic's status
    is another one.
    """

    def __init__(
        self, settings: ServiceSettings, assets: Assets, changed: Callable[[], None] = lambda: None
    ) -> None:
        self.assets, self._changed = assets, changed
        self.adviser = Adviser(assets, settings)
        self._starts, self._roads = self.adviser.reader.unit_starts, self.adviser.roads
        self.reassesser = Reassesser(assets, settings, self._starts, self._roads)
        self._invented_calls = InventedCalls(assets.network, assets.depots)
        self.warm = False
        self._traffic_told = "starting"
        self._traffic_problem = ""
        self._preparing = Repeated("traffic", PREPARE_S, self._prepare)

    @cached_property
    def facts(self) -> CityFacts:
        lon, lat = self.assets.network.lon.round(6), self.assets.network.lat.round(6)
        return CityFacts(
            self.assets.name,
            {one.name: (float(lon[one.node]), float(lat[one.node])) for one in self.assets.depots},
            (float(lon.min()), float(lat.min()), float(lon.max()), float(lat.max())),
            (float(self.assets.network.lon.mean()), float(self.assets.network.lat.mean())),
            self.assets.calendar.time_zone,
            self.assets.checksums,
        )

    @property
    def traffic(self) -> str:
        return self.assets.traffic.status

    def start(self) -> None:
        self._preparing.start()

    def method(self, name: str) -> Callable[..., Any]:
        """What answers a question of another process: all that may be asked."""
        if name == "advise":
            return self.adviser.advise
        if name == "reassess":
            return self.reassesser.reassess
        if name not in ("road_map", "model_card", "invented_call", "cover", "closed_edges"):
            raise InputError(f"{name}: nothing that can be asked")
        found: Callable[..., Any] = getattr(self, name)
        return found

    def road_map(self) -> RoadMap:
        """The roads for a map: one line per street, for both of its directions."""
        network = self.assets.network
        seen: dict[tuple[int, int, bytes], dict[str, Any]] = {}
        features = []
        for edge in range(network.num_edges):
            ends = int(network.tail[edge]), int(network.head[edge])
            line = network.polyline(edge)
            twin = seen.get((ends[1], ends[0], line[::-1].tobytes()))
            if twin is not None:
                twin["properties"]["edges"].append(edge)
                continue
            feature = {
                "type": "Feature",
                "properties": {
                    "name": network.name[edge],
                    "road_class": ROAD_CLASSES[network.road_class[edge]],
                    "edges": [edge],
                },
                "geometry": {"type": "LineString", "coordinates": np.round(line, 6).tolist()},
            }
            seen[(*ends, line.tobytes())] = feature
            features.append(feature)
        document = {"type": "FeatureCollection", "features": features}
        plain = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
        return RoadMap(network.checksum, plain, gzip.compress(plain, 6, mtime=0))

    def model_card(self) -> str:
        from ideal_dispatch.forecast.model_directory import model_card

        return model_card(self.assets.model)

    def closed_edges(self, kind: str, drawn: Sequence[Any]) -> list[int]:
        """The edges that a line or a polygon closes, or those named, checked."""
        found = closed_edges(self.assets.network, kind, drawn)
        if len(found) > MOST_CLOSED:
            raise InputError(
                f"{kind}: it closes {len(found):,} edges, at most {MOST_CLOSED:,} are possible; "
                "draw a smaller one, or several"
            )
        return found

    def cover(self, free: Sequence[KnownUnit], closures: tuple[Closed, ...]) -> Cover | None:
        """How far the next call is from these units on open roads; None where there are none."""
        starts = self._starts.everywhere(free)
        if not starts:
            return None
        network, times_s = self._roads.open(closures), self._usual_times_s
        drive_s = network.distances(times_s, starts)
        reached_s = network.opened.distances(times_s, starts) if closures else drive_s
        drive_s = np.sort(drive_s[np.isfinite(reached_s)])
        within_s = [float(drive_s[math.ceil(share * drive_s.size) - 1]) for share in (0.5, 0.9)]
        return Cover(*(limit_s if math.isfinite(limit_s) else None for limit_s in within_s))

    @cached_property
    def _usual_times_s(self) -> FloatArray:
        """Times of roads in an average context."""
        model = self.assets.model
        average = np.full(len(model.encoding.columns), np.nan)
        return model.forecast(average, self.assets.network).nominal_times

    def invented_call(self, number: int) -> dict[str, Any]:
        return self._invented_calls.call(number)

    def close(self) -> None:
        self._preparing.stop(0.1)
        self.assets.traffic.close()

    def _prepare(self) -> None:
        """What takes long: first what a call needs, then traffic, then all the rest."""
        from ideal_dispatch.gap.warm_up import warm_up

        first = not self.warm
        if first:
            if not rehearse(self.adviser):
                warm_up()
            self.warm = True
            self._traffic_told = self.traffic
            self._changed()
            gc.enable()
            log.info("ready for calls")
        before = self.traffic
        self._prepare_traffic()
        self.tell_traffic()
        if before != self.traffic:
            rehearse(self.adviser)
        if first:
            warm_up()
            gc.freeze()  # what was loaded stays: looking through it would hold up calls
            if self.traffic != "ready":  # perhaps a source that was slow while all was loaded
                rehearse(self.adviser)
                self.tell_traffic()

    def tell_traffic(self) -> None:
        """Let the service know the traffic's status, where it is another one."""
        if self.traffic != self._traffic_told:
            self._traffic_told = self.traffic
            self._changed()

    def _prepare_traffic(self) -> None:
        """Its status says that something is wrong, the log what: once, for it is tried often."""
        problem = ""
        try:
            self.assets.traffic.prepare()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            if problem != self._traffic_problem:
                foreseen = isinstance(error, IdealError | OSError)
                log.error("traffic: %s", error, exc_info=None if foreseen else error)
        self._traffic_problem = problem


def rehearse(adviser: Adviser) -> bool:
    """Whether there was an advice from one depot to the next: all that a call needs is loaded.

    Nothing is raised: a worker that cannot rehearse still tells every caller what is wrong.
    """
    try:
        network, (first, second, *_) = adviser.assets.network, adviser.assets.depots
        scene = Scene(float(network.lon[second.node]), float(network.lat[second.node]))
        units = tuple((depot.name, 1) for depot in (first, second))
        call = Call("rehearsal", clock.now(), scene, Sent(first.name), units)
        due = time.monotonic() + _PATIENCE_S
        made = adviser.advise(call, KnownUnits({}, None), KnownWeather(), due)
    except Exception:
        log.exception("the rehearsal failed")
        return False
    return bool(made["decision"] != "no_advice")


class InventedCalls:
    """Requests that a CAD might send, at places where depots compete.

    Most come with the ambulance of the nearest depot.
    """

    def __init__(self, network: RoadNetwork, depots: Sequence[Depot]) -> None:
        self._network, self._depots = network, depots
        self._rng = np.random.default_rng()

    def call(self, number: int) -> dict[str, Any]:
        """A call received now; the number makes its name."""
        network, rng, now = self._network, self._rng, clock.now()
        node = int(rng.choice(self._places))
        depot = self._depots[int(self._reach_s[:, node].argmin())]
        streets = {network.name[e] for e in np.flatnonzero(network.head == node)} - {""}
        primary = {"depot": depot.name, "unit": f"A{rng.integers(100, 400)}"}
        return {
            "call_id": f"SIM-{now:%H%M%S}-{number:03d}",
            "received_at": now,
            "location": {
                "lon": round(float(network.lon[node]) + float(rng.normal(0, 1e-4)), 6),
                "lat": round(float(network.lat[node]) + float(rng.normal(0, 1e-4)), 6),
                "accuracy_m": float(rng.integers(5, 60)),
            },
            "primary": None if rng.random() < 0.15 else primary,
            "depots": [
                {"name": one.name, "units": int(rng.choice([0, 1, 2, 3], p=[0.06, 0.3, 0.4, 0.24]))}
                for one in self._depots
            ],
            "note": f"{rng.integers(1, 200)} {min(streets)}" if streets else None,
        }

    @cached_property
    def _reach_s(self) -> FloatArray:
        """Seconds on empty roads, a row per depot and a column per node."""
        network = self._network
        times_s = network.free_flow_times_s
        return np.array([network.distances(times_s, one) for one in self._depots])

    @cached_property
    def _places(self) -> npt.NDArray[np.intp]:
        """Nodes at which two depots compete, or all that can be reached."""
        nearest = np.sort(self._reach_s, axis=0)
        near = np.isfinite(nearest[1]) & (nearest[0] > 60) & (nearest[1] < _CONTESTED * nearest[0])
        return np.flatnonzero(near if near.any() else np.isfinite(nearest[0]))

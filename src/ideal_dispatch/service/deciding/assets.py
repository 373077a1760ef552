"""What the service works with: city, model, policy and traffic, loaded as the settings say."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import IntArray
from ideal_dispatch.context import Calendar, Context
from ideal_dispatch.dispatch.decision import Policy
from ideal_dispatch.dispatch.policy_tables import FittedParts, advising_policy
from ideal_dispatch.dispatch.threshold import PricedThreshold
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.priced import priced_threshold
from ideal_dispatch.forecast import Forecast, Model
from ideal_dispatch.forecast.model import content_hash
from ideal_dispatch.forecast.model_directory import RESPONSE_TIMES
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.network import Depot, Path, RoadNetwork
from ideal_dispatch.network.depot import DepotNames
from ideal_dispatch.records.territories import region_of
from ideal_dispatch.service.deciding.live_traffic import LiveTraffic, RecordedLive, RouterLive
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.toml_tables import complaints_about
from ideal_dispatch.traffic.recording import RecordedTraffic

_FORECASTS = 4  # kept; with 50,000 edges and 32 dimensions each takes 13 MB


@dataclass(frozen=True, slots=True)
class Closed:
    """Edges that the centre closed, and why; ``reason`` may be empty."""

    id: str
    reason: str
    edges: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Assets:
    """One city's roads and depots, and what advice is made with."""

    settings: ServiceSettings
    name: str
    network: RoadNetwork
    depots: Mapping[str, Depot]
    depot_names: DepotNames
    calendar: Calendar
    model: Model
    responses: ResponseModel
    policy: Policy
    traffic: LiveTraffic
    region: IntArray | None = None

    def roads(self, closures: Iterable[Closed]) -> RoadNetwork:
        """The network without what these closures close."""
        return _closed(self.network, frozenset(edge for one in closures for edge in one.edges))

    @property
    def checksums(self) -> dict[str, str]:
        """Hashes of the contents of all that decides, by part; optional parts where used."""
        depots = self.depots.values()
        places = [(one.name, int(one.node), one.on_road, one.kind) for one in depots]
        found = {
            "model": self.model.checksum,
            "network": self.network.checksum,
            "depots": content_hash(json.dumps(places).encode()),
            "responses": content_hash(json.dumps(asdict(self.responses)).encode()),
        }
        if self.region is not None:
            found["territories"] = content_hash(self.region.tobytes())
        if isinstance(rule := getattr(self.policy, "threshold", None), PricedThreshold):
            tables = rule.prices
            found["fleet"] = content_hash(b"".join(np.asarray(part).tobytes() for part in tables))
        return found


@lru_cache(maxsize=4)  # closures seldom change
def _closed(network: RoadNetwork, edges: frozenset[int]) -> RoadNetwork:
    return network.closing(edges)


def load_assets(settings: ServiceSettings) -> Assets:
    """Read and check everything that the settings name, or say in one line what is wrong."""
    city, file = settings.city, settings.file
    calendar = Calendar(city.time_zone, city.country, city.subdivision or None)
    if settings.demo:
        from ideal_dispatch.cities import TRAINING_DAYS, harbour_city, harbour_traffic

        shown = harbour_city()
        name, network, depots = shown.name, shown.network, shown.depots
    else:
        from ideal_dispatch.network.readers.depot_table import read_depots

        name = city.name or file(city.network).stem
        network = RoadNetwork.load(file(city.network))
        found, elsewhere = read_depots(file(city.depots), network, city.snap_limit_m)
        depots = tuple(found)
        if elsewhere:
            raise InputError(f"{file(city.depots)}: {elsewhere[0]}")
    if len(depots) < 2:
        raise InputError(f"{len(depots)} depots on the network: at least two are needed")
    names = DepotNames((depot.name for depot in depots), city.aliases)
    model = RememberedModel.load(file(settings.model.folder))
    model.check(network)
    named, responses = settings.model.responses, ResponseModel.published()
    fitted = file(named) if named else file(settings.model.folder) / RESPONSE_TIMES
    if named or fitted.exists():
        responses = ResponseModel.load(fitted, model.checksum)
    with complaints_about(settings.path):
        priced = None
        if settings.fleet is not None:
            priced = priced_threshold(
                settings.fleet, network, depots, model=model, responses=responses,
                folder=settings.folder,
            )  # fmt: skip
        parts = FittedParts(model, responses, priced=priced)
        policy = advising_policy({"kind": "ideal", **settings.policy}, parts, "policy")
    match settings.traffic.kind:
        case "forecast":
            traffic = LiveTraffic(model)
        case "recorded" if settings.demo:  # later days are for tests alone
            traffic = RecordedLive(model, harbour_traffic(shown).only(range(TRAINING_DAYS)))
        case "recorded":
            recording = RecordedTraffic.load(file(settings.traffic.file), network, driven=False)
            traffic = RecordedLive(model, recording)
        case _:
            traffic = RouterLive.connect(settings, network, model)
    region = None
    if city.territories:
        region = region_of(file(city.territories), network, depots, file(city.depots))
    by_name = {depot.name: depot for depot in depots}
    return Assets(
        settings, name, network, by_name, names, calendar, model, responses, policy, traffic, region
    )


class RememberedModel(Model):
    """Keeps its newest forecasts: calls share one until the hour or the weather changes."""

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> "RememberedModel":
        model = Model.load(folder)
        return RememberedModel(
            **{one.name: getattr(model, one.name) for one in fields(model) if one.init}
        )

    @cached_property
    def _kept(self) -> dict[tuple[Any, ...], Forecast]:
        return {}

    def forecast(
        self, context: Context | npt.ArrayLike, network: RoadNetwork, path: Path | None = None
    ) -> Forecast:
        """As :meth:`Model.forecast`; kept where the radius does not depend on the path."""
        if self.radius_rule.uses_trip or not isinstance(context, Context):
            return super().forecast(context, network, path)
        row = self.encoding.encode([context])
        key = network.checksum, row.tobytes(), self.seen.other_sources(context.weather)
        found = self._kept.get(key)
        if found is None:
            found = super().forecast(context, network)
            found.embeddings.flags.writeable = False  # many calls share it
            self._kept[key] = found
            for old in list(self._kept)[:-_FORECASTS]:
                self._kept.pop(old, None)
        return found

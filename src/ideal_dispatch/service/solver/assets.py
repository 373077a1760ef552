"""What the service works with: city, model, policy and traffic, loaded as the settings say."""

import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import IntArray
from ideal_dispatch.context import Calendar, Context
from ideal_dispatch.dispatch.decision import Policy
from ideal_dispatch.dispatch.ideal import Ideal
from ideal_dispatch.dispatch.policy_tables import FittedParts, advising_policy
from ideal_dispatch.dispatch.priced_threshold import PricedThreshold
from ideal_dispatch.dispatch.worth import Gains, load_gain
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.fleet.priced import priced_threshold
from ideal_dispatch.forecast import Forecast, Model
from ideal_dispatch.forecast.drift import DriftModel
from ideal_dispatch.forecast.model import content_hash
from ideal_dispatch.network import Depot, Path, RoadNetwork
from ideal_dispatch.records.territories import region_of
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.solver.depot_names import DepotNames
from ideal_dispatch.service.solver.live_traffic import (
    LiveTraffic,
    RecordedLive,
    RouterLive,
    live_router,
)
from ideal_dispatch.service.solver.messages import LONGEST_NAME, unstorable
from ideal_dispatch.toml_tables import complaints_about
from ideal_dispatch.traffic.recording import RecordedTraffic

RUSH_HOURS = ((7, 10), (16, 20))
"""Local hours of the embedded city that are replayed."""

_FORECASTS = 4  # kept; with 50,000 edges and 32 dimensions each takes 13 MB


@dataclass(frozen=True, slots=True, eq=False)
class Assets:
    """One city's roads and depots, and what advice is made with."""

    name: str
    network: RoadNetwork
    depots: tuple[Depot, ...]
    calendar: Calendar
    model: Model
    policy: Policy
    traffic: LiveTraffic
    region: IntArray | None = None

    @property
    def checksums(self) -> dict[str, str]:
        """Hashes of the contents of all that decides, by part; optional parts where used."""
        places = [(one.name, int(one.node), one.on_road, one.kind) for one in self.depots]
        found = {
            "model": self.model.checksum,
            "network": self.network.checksum,
            "depots": content_hash(json.dumps(places).encode()),
        }
        if self.region is not None:
            found["territories"] = content_hash(self.region.tobytes())
        gain, drift = getattr(self.policy, "gain", None), getattr(self.policy, "drift", None)
        if isinstance(gain, Gains):
            found["gain"] = content_hash(json.dumps(asdict(gain)).encode())
        if isinstance(drift, DriftModel):
            found["drift"] = drift.model.checksum
        if isinstance(rule := getattr(self.policy, "threshold", None), PricedThreshold):
            tables = rule.prices.tables
            found["fleet"] = content_hash(b"".join(np.asarray(part).tobytes() for part in tables))
        return found


def load_assets(settings: ServiceSettings, calendar: Calendar | None = None) -> Assets:
    """Read and check everything that the settings name, or say in one line what is wrong.

    ``calendar`` is the city's, where that was made already.
    """
    calendar = calendar or settings.city.calendar()
    name, network, depots, recording = _city(settings)
    if len(depots) < 2:
        raise InputError(f"{len(depots)} depots on the network: at least two are needed")
    for depot in depots:
        _check_name(depot.name)
    DepotNames((depot.name for depot in depots), settings.city.aliases)  # or says what is wrong
    model = RememberedModel.load(settings.file(settings.model.folder))
    model.check(network)
    policy = _policy(settings, model, network, depots)
    match settings.traffic.kind:
        case "forecast":
            traffic = LiveTraffic(network, calendar, model)
        case "recorded":  # the embedded city is worth looking at in its rush hours
            hours = RUSH_HOURS if settings.invents else ()
            traffic = RecordedLive(network, calendar, model, recording, hours)
        case _:
            router = live_router(settings, network, calendar.time_zone)
            traffic = RouterLive(network, calendar, model, router)
    region = None
    if settings.city.territories:
        table = settings.file(settings.city.depots)
        region = region_of(settings.file(settings.city.territories), network, depots, table)
    return Assets(name, network, depots, calendar, model, policy, traffic, region)


def _city(
    settings: ServiceSettings,
) -> tuple[str, RoadNetwork, tuple[Depot, ...], Callable[[], RecordedTraffic]]:
    """Name, roads and depots of the city, and how to load its recorded traffic."""
    if settings.demo:
        from ideal_dispatch.cities import TRAINING_DAYS, harbour_city, harbour_traffic

        shown, days = harbour_city(), range(TRAINING_DAYS)  # later days are for tests alone
        return shown.name, shown.network, shown.depots, lambda: harbour_traffic(shown).only(days)
    from ideal_dispatch.network.readers.depot_table import read_depots

    city = settings.city
    network = RoadNetwork.load(settings.file(city.network))
    depots, elsewhere = read_depots(settings.file(city.depots), network, city.snap_limit_m)
    if elsewhere:
        raise InputError(f"{settings.file(city.depots)}: {elsewhere[0]}")
    name = city.name or settings.file(city.network).stem
    recording = settings.file(settings.traffic.file)
    if settings.traffic.kind == "recorded":
        check_source(recording)
    return name, network, tuple(depots), lambda: RecordedTraffic.load(recording, network)


def _check_name(name: str) -> None:
    """Refuse what no request could name."""
    why = "a NUL or half a character is in it" if unstorable(name) else ""
    if len(name) > LONGEST_NAME:
        why = f"it needs a letter, and at most {LONGEST_NAME} characters"
    if why:
        raise InputError(f"depot {name[:20]!r}: its name cannot be used: {why}")


def _policy(
    settings: ServiceSettings, model: Model, network: RoadNetwork, depots: tuple[Depot, ...]
) -> Policy:
    files, table = settings.model, dict(settings.policy)
    drift = DriftModel.load(settings.file(files.drift)) if files.drift else None
    gain = load_gain(settings.file(files.gain), model) if files.gain else None
    table.setdefault("kind", "ideal")
    with complaints_about(settings.path):
        priced = None
        if settings.fleet is not None:
            priced = priced_threshold(
                settings.fleet, network, depots, model=model, gain=gain, folder=settings.folder
            )
        parts = FittedParts(model, gain, drift, priced=priced)
        policy = advising_policy(table, parts, "policy")
    if isinstance(policy, Ideal) and policy.decide_by != "gain":
        raise InputError(
            f'policy.decide_by {policy.decide_by!r}: the service decides by "gain" alone, for the '
            "desk shows no other score; leave it out"
        )
    return policy


class RememberedModel(Model):
    """Forecasts as the model's own, of which the newest are kept.

    Calls share a context until the hour or the weather changes: of 500 one after
    the other, one forecast was made.
    """

    @cached_property
    def _kept(self) -> OrderedDict[tuple[Any, ...], Forecast]:
        return OrderedDict()

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
            if len(self._kept) > _FORECASTS:
                self._kept.popitem(last=False)
        return found

"""What the service works with: city, model, policy and traffic, loaded as the settings say."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

from ideal_dispatch.arrays import IntArray
from ideal_dispatch.context import Calendar
from ideal_dispatch.dispatch.decision import Policy
from ideal_dispatch.dispatch.expected_gain import GainModel
from ideal_dispatch.dispatch.ideal import Ideal
from ideal_dispatch.dispatch.policy_tables import FittedParts, advising_policy
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.drift import DriftModel
from ideal_dispatch.forecast.model import content_hash
from ideal_dispatch.network import Depot, RoadNetwork
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
from ideal_dispatch.service.solver.remembered_model import RememberedModel
from ideal_dispatch.toml_tables import complaints_about
from ideal_dispatch.traffic.recording import RecordedTraffic

RUSH_HOURS = ((7, 10), (16, 20))
"""Local hours of the embedded city that are replayed."""


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
        places = [(depot.name, int(depot.node)) for depot in self.depots]
        found = {
            "model": self.model.checksum,
            "network": self.network.checksum,
            "depots": content_hash(json.dumps(places).encode()),
        }
        if self.region is not None:
            found["territories"] = content_hash(self.region.tobytes())
        gain, drift = getattr(self.policy, "gain", None), getattr(self.policy, "drift", None)
        if isinstance(gain, GainModel):
            found["gain"] = content_hash(json.dumps(asdict(gain)).encode())
        if isinstance(drift, DriftModel):
            found["drift"] = drift.model.checksum
        return found


def load_assets(settings: ServiceSettings, calendar: Calendar | None = None) -> Assets:
    """Read and check everything that the settings name, or say in one line what is wrong.

    ``calendar`` is the city's, where that was made already.
    """
    calendar = calendar or settings.city.calendar()
    name, network, depots, recording = (_embedded_city if settings.demo else _city)(settings)
    if len(depots) < 2:
        raise InputError(f"{len(depots)} depots on the network: at least two are needed")
    if len({depot.name for depot in depots}) < len(depots):
        raise InputError("depots: every depot needs a name of its own")
    for depot in depots:
        _check_name(depot.name)
    DepotNames((depot.name for depot in depots), settings.city.aliases)  # or says what is wrong
    model = RememberedModel.load(settings.file(settings.model.folder))
    policy = _policy(settings, model)
    model.check(network)
    match settings.traffic.kind:
        case "forecast":
            traffic = LiveTraffic(network, calendar, model)
        case "recorded":  # the embedded city is worth looking at in its rush hours
            hours = RUSH_HOURS if settings.demo else ()
            traffic = RecordedLive(network, calendar, model, recording, hours)
        case _:
            router = live_router(settings, network, calendar.time_zone)
            traffic = RouterLive(network, calendar, model, router)
    region = None
    if settings.city.territories:
        table = settings.file(settings.city.depots)
        region = region_of(settings.file(settings.city.territories), network, depots, table)
    return Assets(name, network, depots, calendar, model, policy, traffic, region)


_City = tuple[str, RoadNetwork, tuple[Depot, ...], Callable[[], RecordedTraffic]]


def _city(settings: ServiceSettings) -> _City:
    """Name, roads and depots of the city that is named, and how to load its recorded traffic."""
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


def _embedded_city(_: ServiceSettings) -> _City:
    """The same for the city that comes with the package; later days are for tests alone."""
    from ideal_dispatch.cities import TRAINING_DAYS, harbour_city, harbour_traffic

    city = harbour_city()
    return (
        city.name, city.network, city.depots,
        lambda: harbour_traffic(city).only(range(TRAINING_DAYS)),
    )  # fmt: skip


def _check_name(name: str) -> None:
    """Refuse what no request could name."""
    why = ""
    if not 1 <= len(name) <= LONGEST_NAME:
        why = f"it needs a letter, and at most {LONGEST_NAME} characters"
    elif unstorable(name):
        why = "a NUL or half a character is in it"
    if why:
        raise InputError(f"depot {name[:20]!r}: its name cannot be used: {why}")


def _policy(settings: ServiceSettings, model: Model) -> Policy:
    files, table = settings.model, dict(settings.policy)
    drift = DriftModel.load(settings.file(files.drift)) if files.drift else None
    gain = GainModel.load(settings.file(files.gain)) if files.gain else None
    table.setdefault("kind", "ideal")
    with complaints_about(settings.path):
        policy = advising_policy(table, FittedParts(model, gain, drift), "policy")
    if isinstance(policy, Ideal) and policy.decide_by != "gain":
        raise InputError(
            f'policy.decide_by {policy.decide_by!r}: the service decides by "gain" alone, for the '
            "desk shows no other score; leave it out"
        )
    return policy

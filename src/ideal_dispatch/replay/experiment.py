"""An experiment: one file that says, before anything is looked at, what is replayed and how."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.cities import depots_of, harbour_city, harbour_traffic
from ideal_dispatch.context import Calendar
from ideal_dispatch.dispatch.decision import Policy
from ideal_dispatch.dispatch.policy_tables import FittedParts, check_policies, policies_from
from ideal_dispatch.dispatch.situation import Incident
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.priced import FleetTable
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.readers.depot_table import read_depots
from ideal_dispatch.plugins import TRAFFIC_SOURCES, check_name, load_plugin
from ideal_dispatch.ranges import Checked, Count, Positive, Whole, ZeroOrMore, check_fields
from ideal_dispatch.records.places import plain_name
from ideal_dispatch.records.territories import region_of
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.incidents import RecordedCalls, sample_incidents, with_units_on_road
from ideal_dispatch.replay.run import run_replay
from ideal_dispatch.replay.simulation import Replay
from ideal_dispatch.toml_tables import built, complaints_about, read_toml, require
from ideal_dispatch.traffic.recorded_router import RecordedRouter, RouterParams
from ideal_dispatch.traffic.recording import RecordedTraffic
from ideal_dispatch.traffic.replayed_traffic import ReplayedTraffic
from ideal_dispatch.traffic.routers import ROUTERS
from ideal_dispatch.traffic.source import TrafficSource

_LEAST_DAYS = 2  # one to learn from and one to stop by


@dataclass(frozen=True, slots=True)
class CityTable:
    """Where the city is; file names are looked for beside the experiment file.

    Of the depots, those named by ``only`` take part, or all on the network.
    ``territories`` are the agency's own; a network of your own has else those of
    the nearest depot at free flow.
    Without a network it is the embedded city, with its simulated days or with
    those of ``traffic``.
    """

    network: str = ""
    depots: str = ""
    traffic: str = ""
    only: tuple[str, ...] = ()
    territories: str = ""

    def __post_init__(self) -> None:
        require(
            bool(self.depots) or not self.network,
            "depots is missing: a network of your own needs it",
        )


@dataclass(frozen=True, slots=True)
class Traffic:
    """Who gives the quotes: without ``source`` the router of the recording does.

    A source of one's own is a registered name or ``"module:Name"``, made with
    ``options``; what really happens on the roads is the recording's all the same.
    """

    source: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Calls(Checked):
    """How calls are drawn, or the ``file`` of recorded ones that are replayed in their place.

    ``per_day`` on every day, at nodes that the second nearest depot reaches in
    at most ``contested`` times the nearest one's free-flow time. Neither kind is in
    the first ``lead_s`` of a stretch, in which the router has seen little, nor in
    its last ``margin_s``, so that drives can be finished. At every drawn call ``on_road``
    units are free at places drawn at random; ``units`` is a file of those that were free on
    the road at the calls of ``file``.
    """

    per_day: int = 120
    contested: float = 2.0
    margin_s: ZeroOrMore = 2400.0
    lead_s: ZeroOrMore = 0.0
    file: str = ""
    on_road: Whole = 0
    units: str = ""

    def __post_init__(self) -> None:
        check_fields(self)
        drawn = not (self.on_road and self.file)
        require(drawn, "on_road is for drawn calls; with a file of calls give units")
        require(
            not self.units or bool(self.file),
            "units belong to the calls of a file, which is not given",
        )


@dataclass(frozen=True, slots=True)
class Past:
    """What an agency would have collected on the training days.

    ``trips_per_day`` records of an ambulance's whole travel time, of which
    ``own_share`` left from the nearest depot.
    """

    trips_per_day: int = 500
    own_share: float = 0.85


@dataclass(frozen=True, slots=True)
class Transfer:
    """A run folder of another experiment whose fitted parts are used."""

    run: str = ""


@dataclass(frozen=True, slots=True)
class Live(Checked):
    """How calls are driven live: see :func:`~ideal_dispatch.replay.live.run_live`.

    ``kind`` is "google", "valhalla" or a source of your own with its ``options``. Google's key
    is in ``key_file``; ``segment`` and ``ranges`` are those of
    :class:`~ideal_dispatch.traffic.google_routes.GoogleParams`, ranges at the call alone.
    ``calls`` are drawn, or all of the calls' file taken, one each ``every_s``. A network of
    your own needs ``time_zone`` and ``country``. ``model`` and ``responses`` are
    fitted parts, where they are not those of a transfer.
    """

    kind: str = ""
    url: str = ""
    key_file: str = ""
    segment: Literal["static_ratio", "stopover", "own_query"] = "static_ratio"
    ranges: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    calls: Count = 100
    every_s: Positive = 300.0
    time_zone: str = ""
    country: str = ""
    model: str = ""
    responses: str = ""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.kind:
            check_name(TRAFFIC_SOURCES, self.kind, ROUTERS, "kind")
        needed = {"google": "key_file", "valhalla": "url"}.get(self.kind)
        if needed and not getattr(self, needed):
            raise InputError(f'{needed} is missing; kind = "{self.kind}" needs it')


@dataclass(frozen=True, slots=True)
class Experiment:
    """The first ``training_days`` are to learn and to choose by, the others to test.

    Of the training days the first ``warm_up_days`` have no calls: they are the
    history that the router remembers. What is learned and then judged on
    training days is cross-fitted: in ``folds`` groups of days, each decided
    with what the other days taught. With a ``transfer`` nothing is fitted, no
    training day is replayed, and thresholds are those of the other run.
    Every ambulance drives in one ``world``.
    ``policies`` are the tables of :func:`policies_from`, ``training`` the
    parameters of training that differ from the defaults and ``paper_training``
    those that differ from Algorithm 1's. With a ``live`` table calls can be driven live, which
    needs no days and no recorded traffic. With a ``fleet`` policies may have the threshold
    "priced". ``path`` and ``digest`` are of the file.
    """

    name: str
    training_days: int = 0
    warm_up_days: int = 0
    seed: int = 0
    folds: int = 4
    world: World = World.EXPERIENCED
    city: CityTable = field(default_factory=CityTable)
    router: RouterParams = field(default_factory=RouterParams)
    traffic: Traffic = field(default_factory=Traffic)
    calls: Calls = field(default_factory=Calls)
    past: Past = field(default_factory=Past)
    policies: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    paper_training: Mapping[str, Any] = field(default_factory=dict)
    transfer: Transfer = field(default_factory=Transfer)
    live: Live = field(default_factory=Live)
    fleet: FleetTable | None = None
    path: str = ""
    folder: Path = Path()
    digest: str = ""

    def __post_init__(self) -> None:
        if self.world not in tuple(World):
            raise InputError(f"world {self.world!r}: choose {' or '.join(World)}")
        object.__setattr__(self, "world", World(self.world))
        if not self.live.kind:
            self.check_recorded()

    def check_recorded(self) -> None:
        """Refuse what cannot be replayed in recorded traffic."""
        if self.city.network and not self.city.traffic:
            raise InputError("[city] traffic is missing: a network of your own needs it")
        if self.transfer.run:
            return
        if not self.training_days:
            raise InputError("training_days is missing: how many days are to learn from?")
        if not 0 <= self.warm_up_days <= self.training_days:
            raise InputError(
                f"warm_up_days {self.warm_up_days} of {self.training_days} training days: they "
                "are the first of them"
            )
        days = len(self.learning_days)
        left = days - -(-days // self.folds) if 2 <= self.folds <= days else 0
        if left < _LEAST_DAYS:  # by the days outside the largest fold
            raise InputError(
                f"folds {self.folds} of {days} training days: at least {_LEAST_DAYS} days must be "
                f"left to learn from beside each fold: give {3 + self.warm_up_days} training_days, "
                f"{self.warm_up_days} of warm-up among them, and 3 folds, or more"
            )

    @property
    def learning_days(self) -> range:
        """The recorded days to learn from, by number: those of training but for the first."""
        return range(self.warm_up_days, self.training_days)

    @property
    def transferred(self) -> Path | None:
        """The run whose fitted parts are used, where it is not this one."""
        return self.folder / self.transfer.run if self.transfer.run else None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Experiment":
        """Read the file, or say in one line what is wrong with it."""
        tables, where = read_toml(path), os.fspath(path)
        if not tables.get("policies"):
            raise InputError(f"{where}: no [policies.NAME] table, so there is nothing to replay")
        digest = hashlib.blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()
        with complaints_about(path):
            check_policies(tables["policies"], fleet="fleet" in tables)
            return built(cls, tables, "", path=where, folder=Path(path).parent, digest=digest)

    def policies_with(self, parts: FittedParts, ground: "Ground") -> tuple[Policy, ...]:
        """The policies with what was fitted, and with the prices of the fleet if there is one."""
        if self.fleet is not None:
            from ideal_dispatch.fleet.priced import priced_threshold

            with complaints_about(self.path):
                priced = priced_threshold(
                    self.fleet, ground.network, ground.depots, model=parts.model,
                    responses=parts.responses, folder=self.folder,
                )  # fmt: skip
            parts = replace(parts, priced=priced)
        return policies_from(self.policies, parts)

    def ground(self, *, live: bool = False) -> "Ground":
        """The city, its depots and its recorded traffic; ``live``, the city without the latter."""
        files, folder = self.city, self.folder
        if files.network:
            network = RoadNetwork.load(folder / files.network)
            depots, region = _depots(folder / files.depots, network, files.only), None
        else:
            city = harbour_city()
            network, depots, region = city.network, city.depots, city.region
        recording = None
        if live and not files.network:
            calendar = city.calendar
        elif live:
            if not self.live.time_zone or not self.live.country:
                raise InputError(
                    "[live] time_zone and country are missing: a network of your own needs them"
                )
            calendar = Calendar(self.live.time_zone, self.live.country)
        else:
            own = bool(files.traffic)
            recording = (
                RecordedTraffic.load(folder / files.traffic, network) if own
                else harbour_traffic(city)
            )  # fmt: skip
            calendar = recording.calendar
        if files.territories:
            table = folder / files.depots if files.network else None
            region = region_of(folder / files.territories, network, depots, table)
        return Ground(network, calendar, depots, region, recording)


def _depots(file: Path, network: RoadNetwork, only: Sequence[str]) -> tuple[Depot, ...]:
    if not only:
        return depots_of(file, network)
    found, elsewhere = read_depots(file, network)
    named = {plain_name(depot.name): depot for depot in found}
    for name in only:
        if plain_name(name) not in named:
            off = [line for line in elsewhere if line.startswith(f"depot {name}:")]
            known = ", ".join(depot.name for depot in found) or "none"
            raise InputError(
                f"city.only: {off[0]}" if off
                else f"city.only {name!r}: no such depot on the network; there are: {known}"
            )  # fmt: skip
    return tuple(named[plain_name(name)] for name in only)


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """Where an experiment takes place: the city, and its recorded traffic unless it is live.

    Without territories, ``region`` has those of the nearest depot.
    """

    network: RoadNetwork
    calendar: Calendar
    depots: tuple[Depot, ...]
    region: IntArray | None = None
    recorded: RecordedTraffic | None = None

    def __post_init__(self) -> None:
        if len(self.depots) < 2:
            raise InputError(f"{len(self.depots)} depots on the network: at least two are needed")
        if self.region is None:
            nearest = self.free_flow_s.argmin(axis=0).astype(np.int32)
            object.__setattr__(self, "region", nearest)

    @property
    def recording(self) -> RecordedTraffic:
        """The recorded traffic."""
        assert self.recorded is not None
        return self.recorded

    @property
    def free_flow_s(self) -> FloatArray:
        """Seconds on empty roads, a row per depot and a column per node."""
        times = self.network.free_flow_times_s
        return np.array([self.network.distances(times, depot) for depot in self.depots])

    def weights(self, calls: Calls) -> FloatArray:
        """One for every node at which two depots compete, else zero."""
        nearest = np.sort(self.free_flow_s, axis=0)
        competing = (nearest[0] > 0.0) & (nearest[1] <= calls.contested * nearest[0])
        if not competing.any():
            raise InputError(
                f"contested {calls.contested:g}: at no node do two depots compete; raise it"
            )
        weights: FloatArray = competing.astype(np.float64)
        return weights

    def traffic(self, experiment: Experiment) -> ReplayedTraffic:
        """The recorded traffic, and the router that the experiment asks."""
        asked = experiment.traffic
        if not asked.source:
            return ReplayedTraffic(self.recording, experiment.router)
        recorded = RecordedRouter(self.recording, experiment.router)
        with complaints_about(experiment.path):
            source = load_plugin(
                TRAFFIC_SOURCES, asked.source, asked.options, "traffic.source",
                TrafficSource,  # type: ignore[type-abstract]
                network=self.network, recorded=recorded, folder=experiment.folder,
                time_zone=self.calendar.time_zone,
            )  # fmt: skip
        return ReplayedTraffic(self.recording, experiment.router, source)

    def dates(self) -> list[str]:
        """The local dates of the recorded days."""
        recording = self.recording
        starts = [recording.stretches[stretches[0]].start for stretches in recording.days]
        return [recording.calendar.local(start).date().isoformat() for start in starts]

    def replay(
        self,
        experiment: Experiment,
        calls: Sequence[Incident],
        policies: Sequence[Policy],
        folder: Path,
        **how: Any,
    ) -> Path:
        """Replay calls in the experiment's traffic; ``how`` as in :func:`run_replay`."""
        traffic, world = self.traffic(experiment), experiment.world
        replay = Replay(
            traffic, self.depots, policies, region=self.region, seed=experiment.seed, world=world
        )
        return run_replay(replay, calls, folder, **how)

    def file_calls(self, experiment: Experiment) -> RecordedCalls | None:
        """The calls of the file, where one is named: those in recorded time, unless it is live."""
        calls, folder = experiment.calls, experiment.folder
        if not calls.file:
            return None
        units = folder / calls.units if calls.units else None
        file = folder / calls.file
        found = RecordedCalls.read(file, self.network, self.depots, self.calendar, units)
        if self.recorded is None:
            return found
        return found.within(self.recorded, calls.margin_s, calls.lead_s)

    def calls(self, experiment: Experiment, days: Sequence[int]) -> tuple[Incident, ...]:
        """The calls of the numbered days."""
        calls, recorded = experiment.calls, self.file_calls(experiment)
        if recorded is not None:
            return recorded.of_days(self.recording, days)
        drawn = sample_incidents(
            self.recording.only(days), self.weights(calls), calls.per_day, experiment.seed,
            calls.margin_s, calls.lead_s,
        )  # fmt: skip
        return with_units_on_road(drawn, self.network, calls.on_road, experiment.seed)

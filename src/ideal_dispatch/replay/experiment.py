"""An experiment: one file that says, before anything is looked at, what is replayed and how."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.cities import harbour_city, harbour_traffic
from ideal_dispatch.dispatch.situation import Incident
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.files import check_source
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.records.depots import read_depot_book
from ideal_dispatch.records.settings import Depots
from ideal_dispatch.records.toml_tables import built
from ideal_dispatch.replay.drive import World
from ideal_dispatch.replay.incidents import sample_incidents
from ideal_dispatch.traffic.recorded import RecordedWorld, RouterParams
from ideal_dispatch.traffic.recording import RecordedTraffic

EMBEDDED = "harbour"


@dataclass(frozen=True, slots=True)
class CityFiles:
    """Where the city is; file names are looked for beside the experiment file.

    Without a network it is the embedded city with its simulated days.
    """

    network: str = ""
    depots: str = ""
    traffic: str = ""


@dataclass(frozen=True, slots=True)
class Calls:
    """How calls are drawn.

    ``per_day`` on every day, at nodes that the second nearest depot reaches in
    at most ``contested`` times the nearest one's free-flow time, and not in the
    last ``margin_s`` of a stretch, so that drives can be finished.
    """

    per_day: int = 120
    contested: float = 2.0
    margin_s: float = 2400.0


@dataclass(frozen=True, slots=True)
class Past:
    """What an agency would have collected on the training days.

    ``trips_per_day`` records of an ambulance's whole travel time, of which
    ``own_share`` left from the nearest depot; and a log of quotes to ``places``
    nodes from every depot, each ``every_s``.
    """

    trips_per_day: int = 500
    own_share: float = 0.85
    places: int = 30
    every_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Experiment:
    """The first ``training_days`` are to learn and to choose by, the others to test.

    What is learned and then judged on training days is cross-fitted: in
    ``folds`` groups of days, each decided with what the other days taught.
    ``policies`` are the tables of :func:`policies_from`, ``training`` the
    parameters of training that differ from the defaults.
    """

    name: str
    training_days: int
    seed: int = 0
    folds: int = 4
    worlds: tuple[str, ...] = ("A", "B")
    city: CityFiles = field(default_factory=CityFiles)
    router: RouterParams = field(default_factory=RouterParams)
    calls: Calls = field(default_factory=Calls)
    past: Past = field(default_factory=Past)
    policies: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()

    def __post_init__(self) -> None:
        if not 2 <= self.folds <= self.training_days:
            raise InputError(
                f"folds {self.folds} of {self.training_days} training days: at least two folds "
                "and a day for each are needed"
            )
        wrong = [name for name in self.worlds if name not in tuple(World)]
        if wrong or not self.worlds:
            raise InputError(f"worlds {list(self.worlds)}: choose of A and B")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Experiment":
        """Read the file, or say in one line what is wrong with it."""
        check_source(path)
        where = os.fspath(path)
        try:
            with open(path, "rb") as file:
                tables = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise FileFormatError(f"{where}: not TOML: {error}") from None
        given = {name: tables.pop(name, {}) for name in ("policies", "training")}
        if not given["policies"]:
            raise InputError(f"{where}: no [policies.NAME] table, so there is nothing to replay")
        try:
            return built(cls, tables, "", **given, folder=Path(path).parent)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None

    def ground(self) -> "Ground":
        """The city, its traffic and its depots."""
        files = self.city
        if not files.network:
            city = harbour_city()
            return Ground(harbour_traffic(city), city.depots, city.region)
        network = RoadNetwork.load(self.folder / files.network)
        book = read_depot_book(self.folder / files.depots, network, Depots())
        recording = RecordedTraffic.load(self.folder / files.traffic, network)
        return Ground(recording, tuple(book.depots))


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """Where an experiment takes place; without territories the nearest depot's are taken."""

    recording: RecordedTraffic
    depots: tuple[Depot, ...]
    region: IntArray | None = None

    def __post_init__(self) -> None:
        if len(self.depots) < 2:
            raise InputError(f"{len(self.depots)} depots on the network: at least two are needed")
        if self.region is None:
            nearest = self.free_flow_s.argmin(axis=0).astype(np.int32)
            object.__setattr__(self, "region", nearest)

    @property
    def network(self) -> RoadNetwork:
        return self.recording.network

    @property
    def free_flow_s(self) -> FloatArray:
        """Seconds on empty roads, a row per depot and a column per node."""
        times = self.network.free_flow_times_s
        return np.array([self.network.distances(times, depot) for depot in self.depots])

    def world(self, experiment: Experiment) -> RecordedWorld:
        return RecordedWorld(self.recording, experiment.router)

    def dates(self) -> list[str]:
        """The local dates of the recorded days."""
        recording = self.recording
        starts = [recording.stretches[stretches[0]].start for stretches in recording.days]
        return [recording.calendar.local(start).date().isoformat() for start in starts]

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

    def calls(self, experiment: Experiment, days: range) -> tuple[Incident, ...]:
        """The calls of the numbered days."""
        calls = experiment.calls
        return sample_incidents(
            self.recording.only(days), self.weights(calls), calls.per_day, experiment.seed,
            calls.margin_s,
        )  # fmt: skip

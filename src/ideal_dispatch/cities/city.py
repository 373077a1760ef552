"""A city: its roads and everything else a dispatcher's desk knows about it."""

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ideal_dispatch.arrays import IntArray, read_only
from ideal_dispatch.context import Calendar, Context
from ideal_dispatch.dispatch.situation import (
    UNTRACED,
    ForecastRouter,
    Incident,
    Readiness,
    Situation,
    Trace,
    observe,
)
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.files import write_file
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.model_directory import RESPONSE_TIMES
from ideal_dispatch.forecast.response_time import ResponseModel
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.network.depot import no_such_depot
from ideal_dispatch.network.readers.depot_table import read_depots
from ideal_dispatch.records.territories import region_of
from ideal_dispatch.traffic.source import TrafficSource


@dataclass(frozen=True, slots=True)
class Hospital:
    """A hospital at a node of the network."""

    name: str
    node: int


@dataclass(frozen=True, eq=False)
class City:
    """A road network with its depots, and what else is known there.

    ``time_zone`` is an IANA name and ``country`` the code of the holiday calendar.
    ``region`` is the agency's static territory, an index into ``depots`` per
    node; ``district`` is an index into ``districts`` per node. Both are None where
    they are not known. ``model_folder`` holds the model of the city's travel times.
    """

    name: str
    network: RoadNetwork
    depots: tuple[Depot, ...]
    time_zone: str
    country: str
    hospitals: tuple[Hospital, ...] = ()
    region: IntArray | None = None
    districts: tuple[str, ...] = ()
    district: IntArray | None = None
    model_folder: Path | None = None

    def __post_init__(self) -> None:
        nodes = self.network.num_nodes
        for column, names in (("region", self.depots), ("district", self.districts)):
            if getattr(self, column) is None:
                continue
            index = read_only(getattr(self, column), np.int32, (nodes,), column)
            if index.min() < 0 or index.max() >= len(names):
                raise InputError(f"{column}: every node needs one of {len(names)} numbers from 0")
            object.__setattr__(self, column, index)
        places: list[Depot | Hospital] = [*self.depots, *self.hospitals]
        for place in places:
            if not 0 <= place.node < nodes:
                raise InputError(f"{place.name}: {place.node} is not a node (0 … {nodes - 1})")

    @classmethod
    def from_files(
        cls,
        network: str | os.PathLike[str],
        depots: str | os.PathLike[str],
        *,
        time_zone: str,
        country: str,
        model: str | os.PathLike[str] | None = None,
        name: str = "",
        territories: str | os.PathLike[str] | None = None,
    ) -> "City":
        """Your city: its .network file, a CSV of depots and, where there is one, a model.

        The CSV has the columns name, lon and lat; a warning names depots off the network.
        ``territories`` are the agency's own, for the policy by region: see
        :func:`~ideal_dispatch.records.territories.region_of`.
        """
        roads = RoadNetwork.load(network)
        there, region = depots_of(depots, roads), None
        if territories is not None:
            region = region_of(territories, roads, there, depots)
        made = cls(name or Path(network).stem, roads, there, time_zone, country, region=region)
        return made if model is None else replace(made, model_folder=Path(model))

    @classmethod
    def load(
        cls, stem: str | os.PathLike[str], model: str | os.PathLike[str] | None = None
    ) -> "City":
        """Read ``stem.network`` and ``stem.json``, as written by :meth:`save`."""
        where = f"{os.fspath(stem)}.json"
        try:
            with open(where, encoding="utf-8") as file:
                sides: dict[str, Any] = json.load(file)
        except FileNotFoundError:
            raise InputError(f"{where}: no such file") from None
        except ValueError as error:
            raise FileFormatError(f"{where}: not a city file ({error})") from None
        return cls(
            **sides
            | {
                "network": RoadNetwork.load(f"{os.fspath(stem)}.network"),
                "depots": tuple(Depot(**depot) for depot in sides["depots"]),
                "hospitals": tuple(Hospital(**hospital) for hospital in sides["hospitals"]),
                "districts": tuple(sides["districts"]),
                "model_folder": None if model is None else Path(model),
            }
        )

    def save(self, stem: str | os.PathLike[str]) -> None:
        """Write ``stem.network`` and ``stem.json``; same city, same bytes."""
        self.network.save(f"{os.fspath(stem)}.network")
        sides = {
            "name": self.name,
            "depots": [_plain_depot(depot) for depot in self.depots],
            "hospitals": [asdict(hospital) for hospital in self.hospitals],
            "region": None if self.region is None else self.region.tolist(),
            "districts": self.districts,
            "district": None if self.district is None else self.district.tolist(),
            "time_zone": self.time_zone,
            "country": self.country,
        }
        write_file(f"{os.fspath(stem)}.json", json.dumps(sides, ensure_ascii=False) + "\n")

    # --- a call -------------------------------------------------------------------

    @cached_property
    def model(self) -> Model | None:
        """The model of the city's travel times, where it has one."""
        return None if self.model_folder is None else Model.load(self.model_folder)

    @cached_property
    def responses(self) -> ResponseModel | None:
        """How much times vary: the response times that were fitted beside the model."""
        file = None if self.model_folder is None else self.model_folder / RESPONSE_TIMES
        if file is None or not file.exists() or self.model is None:
            return None
        return ResponseModel.load(file, self.model.checksum)

    @cached_property
    def calendar(self) -> Calendar:
        """Local time and public holidays."""
        return Calendar(self.time_zone, self.country)

    @cached_property
    def node_districts(self) -> tuple[str, ...]:
        """The name of every node's district; empty where districts are not known."""
        return () if self.district is None else tuple(self.districts[i] for i in self.district)

    def call(
        self,
        *,
        node: int | None = None,
        lon: float | None = None,
        lat: float | None = None,
        at: datetime | None = None,
        units: Mapping[str, int] | None = None,
        on_road: Mapping[str, tuple[float, float]] | None = None,
        kinds: Mapping[str, str] | None = None,
        sent: str | None = None,
        traffic: TrafficSource | None = None,
        context: Context | None = None,
        trace: Trace = UNTRACED,
    ) -> Situation:
        """A call as a dispatcher knows it: at a node, or at the road nearest to ``lon``, ``lat``.

        It comes in ``at`` a moment with its zone, now by default. ``units`` says how
        many ambulances are free at a depot, by its name; two each by default.
        ``on_road`` has the longitude and latitude of free units that are not at a depot,
        ``kinds`` the kind of units by depot or unit, as the log of response times names it.
        ``sent`` names the depot whose ambulance is already on its way. Travel times
        are those of ``traffic``, or of the city's own model. ``context`` replaces
        what the calendar knows, to add weather for instance.
        """
        moment = datetime.now(UTC) if at is None else at
        context = self.calendar.context(moment) if context is None else context
        if traffic is None:
            if self.model is None:
                raise InputError(f"{self.name}: no travel times; give traffic, or a city a model")
            traffic = ForecastRouter(self.model, self.network, context)
        target = self._node(node, lon, lat, trace)
        road = [Depot(name, self.network.snap(*place).node, True)
                for name, place in (on_road or {}).items()]  # fmt: skip
        starts = [*self.depots, *road]
        taken = {depot.name for depot in self.depots} & {unit.name for unit in road}
        if taken:
            raise InputError(f"unit {min(taken)} on the road: a depot has that name; give another")
        free = [2] * len(self.depots) + [int(unit.name != sent) for unit in road]
        for name, count in (units or {}).items():
            if not _is_whole(count) or count < 0:
                raise InputError(f"units of {name}: {count!r}; give a whole number, zero or more")
            free[_station(starts, name)] = count
        for name, kind in (kinds or {}).items():
            number = _station(starts, name)
            starts[number] = replace(starts[number], kind=kind)
        ready = Readiness(
            starts,
            free,
            region=None if self.region is None else int(self.region[target]),
            sent=None if sent is None else _station(starts, sent),
            sent_unit=sent if sent is not None and sent in (on_road or {}) else "",
            ids=[
                (start.name,) if start.on_road and count == 1 else ()
                for start, count in zip(starts, free, strict=True)
            ],
        )
        incident = Incident("call", target, moment)
        return observe(
            traffic, self.network, incident, context, ready, trace=trace, responses=self.responses
        )

    def _node(self, node: int | None, lon: float | None, lat: float | None, trace: Trace) -> int:
        if node is not None:
            if lon is not None or lat is not None:
                raise InputError("node and lon, lat both name the place of the call; give one")
            if not _is_whole(node) or not 0 <= node < self.network.num_nodes:
                raise InputError(
                    f"node {node!r}: not a node of the network (0 … {self.network.num_nodes - 1})"
                )
            return int(node)
        if lon is None and lat is None:
            raise InputError("where is the call? Give node, or lon and lat")
        if lon is None or lat is None:
            raise InputError("lon and lat belong together; give both")
        with trace.step("snapping") as facts:
            snap = self.network.snap(lon, lat)
            facts |= {"node": snap.node, "distance_m": round(snap.distance_m, 1)}
        return snap.node


def _station(starts: list[Depot], name: str) -> int:
    """The number of a depot, or of a unit on the road."""
    names = [start.name for start in starts]
    if name not in names:
        raise no_such_depot(name, names)
    return names.index(name)


def depots_of(file: str | os.PathLike[str], network: RoadNetwork) -> tuple[Depot, ...]:
    """The depots of a CSV that lie on the network; a warning names those that do not."""
    depots, elsewhere = read_depots(file, network)
    if not depots:
        raise InputError(f"{os.fspath(file)}: no depot lies on this network; {elsewhere[0]}")
    if elsewhere:
        warnings.warn(
            f"{os.fspath(file)}: {len(elsewhere)} of {len(depots) + len(elsewhere)} depots left "
            f"out, because they are not on this network: {'; '.join(elsewhere)}",
            stacklevel=3,
        )
    return tuple(depots)


def _plain_depot(depot: Depot) -> dict[str, Any]:
    """A depot as JSON holds it; without default values."""
    values = asdict(depot).items()
    return {key: value for key, value in values if value is not False and value != ""}


def _is_whole(number: object) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)

"""A city: its roads and everything else a dispatcher's desk knows about it."""

import json
import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ideal_dispatch.arrays import IntArray, read_only
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.files import atomic_write
from ideal_dispatch.network import Depot, RoadNetwork


@dataclass(frozen=True, slots=True)
class Hospital:
    """A hospital at a node of the network."""

    name: str
    node: int


@dataclass(frozen=True, slots=True, eq=False)
class City:
    """A road network with its depots, hospitals, territories and districts.

    ``region`` is the agency's static territory, an index into ``depots`` per
    node; ``district`` is an index into ``districts`` per node. ``time_zone`` is
    an IANA name and ``country`` the code of the holiday calendar.
    """

    name: str
    network: RoadNetwork
    depots: tuple[Depot, ...]
    hospitals: tuple[Hospital, ...]
    region: IntArray
    districts: tuple[str, ...]
    district: IntArray
    time_zone: str
    country: str

    def __post_init__(self) -> None:
        nodes = self.network.num_nodes
        for column, names in (("region", self.depots), ("district", self.districts)):
            index = read_only(getattr(self, column), np.int32, (nodes,), column)
            if index.min() < 0 or index.max() >= len(names):
                raise InputError(f"{column}: every node needs one of {len(names)} numbers from 0")
            object.__setattr__(self, column, index)
        places: list[Depot | Hospital] = [*self.depots, *self.hospitals]
        for place in places:
            if not 0 <= place.node < nodes:
                raise InputError(f"{place.name}: {place.node} is not a node (0 … {nodes - 1})")

    @classmethod
    def load(cls, stem: str | os.PathLike[str]) -> "City":
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
            }
        )

    def save(self, stem: str | os.PathLike[str]) -> None:
        """Write ``stem.network`` and ``stem.json``; same city, same bytes."""
        self.network.save(f"{os.fspath(stem)}.network")
        sides = {
            "name": self.name,
            "depots": [asdict(depot) for depot in self.depots],
            "hospitals": [asdict(hospital) for hospital in self.hospitals],
            "region": self.region.tolist(),
            "districts": self.districts,
            "district": self.district.tolist(),
            "time_zone": self.time_zone,
            "country": self.country,
        }
        with atomic_write(f"{os.fspath(stem)}.json") as file:
            file.write(json.dumps(sides, ensure_ascii=False).encode() + b"\n")

"""Tables of places that a city of own files names: depots with units, hospitals, densities."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.city import HOURS
from ideal_dispatch.fleet.inputs.places import snapped
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.geodesy import check_degrees
from ideal_dispatch.network.readers import table_rows
from ideal_dispatch.ranges import Range
from ideal_dispatch.toml_tables import complaints_about

_USUAL = {"units": "1", "from": "0", "until": str(HOURS), "weight": "1"}
_RANGES = {
    "units": Range(0, 1000), "from": Range(0, HOURS), "until": Range(0, HOURS), "weight": Range()
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class PlaceTable:
    """Rows with a place; ``rows`` are what complaints call them."""

    rows: tuple[str, ...]
    names: tuple[str, ...]
    lon: FloatArray
    lat: FloatArray
    numbers: Mapping[str, FloatArray]

    @classmethod
    def read(cls, path: Path, *needed: str) -> "PlaceTable":
        """A CSV with lon, lat and what else is ``needed``.

        It may have name, units, from, until and weight; where a row has none it is one unit,
        all day, of weight 1.
        """
        names = {**table_rows.DEGREES, "name": ("name",), **{name: (name,) for name in _USUAL}}
        columns = ("lon", "lat", *needed)
        where, rows = table_rows.read(path, names, columns, f"{', '.join(columns)} are needed")
        if not rows:
            raise InputError(f"{where}: no place in it")
        mark = table_rows.degrees_mark(rows)
        found: list[list[float]] = []
        for line, row in rows:
            full = _USUAL | row
            values = [
                table_rows.number(where, line, name, full, mark) for name in ("lon", "lat", *_USUAL)
            ]
            with complaints_about(f"{where} line {line}"):
                check_degrees(*values[:2])
                for (name, allowed), value in zip(_RANGES.items(), values[2:], strict=True):
                    allowed.check(value, name)
            found.append(values)
        lon, lat, *others = np.array(found).T
        return cls(
            tuple(f"{where} line {line}" for line, _ in rows),
            tuple(row.get("name", f"line {line}") for line, row in rows),
            lon, lat, dict(zip(_USUAL, others, strict=True)),
        )  # fmt: skip

    def snapped(self, network: RoadNetwork, nodes: IntArray) -> IntArray:
        """The nearest of some nodes to every row."""
        return snapped(network, nodes, self.lon, self.lat, self.rows)

    def stations(self) -> tuple[IntArray, IntArray, FloatArray]:
        """The rows of the stations that have units, the station of every unit, and its shift.

        Rows of the same name are one station, at the place of the first.
        """
        count = self.numbers["units"]
        broken = np.flatnonzero(count != np.rint(count))
        if broken.size:
            raise InputError(f"{self.rows[broken[0]]}: units {count[broken[0]]:g}; a whole number")
        row = np.repeat(np.arange(len(count)), count.astype(np.int64))
        if not row.size:
            raise InputError(f"{self.rows[0]}: no depot has a unit")
        first = np.array([self.names.index(self.names[i]) for i in row])
        stations, units = np.unique(first, return_inverse=True)
        shifts = np.column_stack([self.numbers["from"], self.numbers["until"]])[row]
        return stations.astype(np.int32), units.astype(np.int32), shifts

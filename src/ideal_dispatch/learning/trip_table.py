"""Trips as the columns that plain regressions learn from."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context.encoding import WEEKDAYS
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.geodesy import LocalPlane
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.records import Trips

HOURS_OF_WEEK = 24 * 7
_HARMONICS = 3


@dataclass(frozen=True, slots=True, eq=False)
class TripTable:
    """A row per trip: its free-flow path, its ends and its context.

    ``classes`` is the share of the path's length on each road class, ``ends_m``
    east and north of origin and destination (NaN without coordinates),
    ``contexts`` has the named ``columns``.
    """

    observed_s: FloatArray
    free_flow_s: FloatArray
    length_m: FloatArray
    edges: FloatArray
    classes: FloatArray
    ends_m: FloatArray
    contexts: FloatArray
    columns: tuple[str, ...]

    @classmethod
    def of(cls, network: RoadNetwork, trips: Trips) -> "TripTable":
        """The table of trips on their network."""
        trips.check(network)
        times_s = network.free_flow_times_s
        paths = network.shortest_paths(times_s, trips.origin, trips.destination)
        row = np.repeat(np.arange(len(paths)), [len(path) for path in paths])
        edge = np.concatenate([path.edges for path in paths]) if paths else np.empty(0, np.int32)
        free_flow_s, length_m, edges = (
            np.asarray(np.bincount(row, values, len(paths)), float)
            for values in (times_s[edge], network.length_m[edge], np.ones(row.size))
        )
        classes = np.zeros((len(paths), len(ROAD_CLASSES)))
        np.add.at(classes, (row, network.road_class[edge]), network.length_m[edge])
        plane = LocalPlane(float(network.lat.mean()))
        places = plane.to_metres(np.column_stack([network.lon, network.lat]))
        return cls(
            observed_s=trips.observed_s,
            free_flow_s=free_flow_s,
            length_m=length_m,
            edges=edges,
            classes=classes / np.maximum(length_m, 1.0)[:, None],
            ends_m=np.hstack([places[trips.origin], places[trips.destination]]),
            contexts=trips.contexts,
            columns=trips.encoding.columns,
        )

    def __len__(self) -> int:
        return int(self.observed_s.size)

    def driven(self) -> "TripTable":
        """The rows whose path takes time."""
        return self.select(self.free_flow_s > 0)

    def select(self, rows: npt.NDArray[Any]) -> "TripTable":
        """The rows of a mask, or of numbers."""
        names = (field.name for field in fields(self) if field.name != "columns")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    @property
    def ratio(self) -> FloatArray:
        return self.observed_s / self.free_flow_s

    @property
    def hour(self) -> FloatArray:
        return self.contexts[:, self.columns.index("hour")]

    @property
    def weekday(self) -> FloatArray:
        """The seven columns from Monday on."""
        monday = self.columns.index(WEEKDAYS[0])
        return self.contexts[:, monday : monday + len(WEEKDAYS)]

    @property
    def hour_of_week(self) -> npt.NDArray[np.int64]:
        """Hours since Monday 0:00, −1 where hour or weekday is not known."""
        known = ~np.isnan(self.hour) & (self.weekday.sum(axis=1) == 1.0)
        hours = 24 * np.nan_to_num(self.weekday).argmax(axis=1) + np.nan_to_num(self.hour)
        return np.where(known, hours, -1).astype(np.int64)

    def linear_columns(self) -> FloatArray:
        """Road, context, and the hour's harmonics for all days and for each."""
        angle = 2.0 * np.pi / 24.0 * self.hour[:, None] * np.arange(1, _HARMONICS + 1)
        clock = np.hstack([np.cos(angle), np.sin(angle)])
        by_day = (self.weekday[:, :, None] * clock[:, None, :]).reshape(len(self), -1)
        rest = np.delete(self.contexts, self.columns.index("hour"), axis=1)
        return np.hstack([self._road(), rest, clock, by_day])

    def tree_columns(self, *, located: bool = False) -> FloatArray:
        """Road and context, the weekday as one number that a tree can cut.

        ``located`` adds both ends and the way from one to the other.
        """
        day = np.where(self.hour_of_week < 0, np.nan, self.hour_of_week // 24)
        columns = [self._road(), self.contexts, day[:, None]]
        if located:
            if np.isnan(self.ends_m).any():
                raise InputError("this network has no coordinates; a baseline with location "
                                 "needs them")  # fmt: skip
            columns += [self.ends_m, self.ends_m[:, 2:] - self.ends_m[:, :2]]
        return np.hstack(columns)

    def _road(self) -> FloatArray:
        sizes = np.column_stack([self.free_flow_s, self.length_m, self.edges])
        return np.hstack([np.log(np.maximum(sizes, 1.0)), self.classes])

"""What goes into the networks: edges and contexts as standardised numbers.

Training and dispatch share this file, so that both see the same inputs. A
column that never varied in training is ignored; an unknown
value (NaN) stands at its training mean, and one beyond all that training saw at
the nearest value seen: networks do not extrapolate, and sensors do break.

No input is large. A flag (a column of zeros and ones) has one fixed scale: scaled
by its own spread, a flag that three trips of a thousand have would be an input of
20, and a network's answer to it would be absurd. Other columns end at
:data:`MOST_SPREADS` from their mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import ContextEncoding
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.features import (
    edge_features,
    headings,
    junctions,
    midpoints,
    node_density,
    through_traffic,
)
from ideal_dispatch.network.geodesy import LocalPlane

Features = Literal["attributes", "location"]

FLAG_SCALE = 2.0
"""What a flag is multiplied by: the inverse spread of one that half of all rows have."""
MOST_SPREADS = 4.0
"""No standardised number is larger."""


@dataclass(frozen=True, slots=True)
class Standardisation:
    """(x − mean) · inverse scale, x held within what was seen; zero where x is NaN."""

    mean: FloatArray
    inverse_scale: FloatArray
    least: FloatArray
    greatest: FloatArray

    @classmethod
    def fit(cls, rows: FloatArray) -> "Standardisation":
        """Mean and spread of the known values; a column without spread is ignored.

        Flags are multiplied by :data:`FLAG_SCALE`, whatever their spread.
        """
        known = ~np.isnan(rows)
        count = np.maximum(known.sum(axis=0), 1)
        mean = np.where(known, rows, 0.0).sum(axis=0) / count
        spread = np.sqrt(np.where(known, (rows - mean) ** 2, 0.0).sum(axis=0) / count)
        varies = spread > 1e-9 * np.maximum(np.abs(mean), 1.0)
        flags = (~known | (rows == 0.0) | (rows == 1.0)).all(axis=0)
        inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)
        inverse[flags & varies] = FLAG_SCALE
        filled = np.where(known, rows, mean)
        return cls(mean, inverse, filled.min(axis=0), filled.max(axis=0))

    def rows(self, name: str) -> dict[str, FloatArray]:
        """The four rows as they are stored with a model, under ``name``."""
        return {f"{name}.{row.name}": getattr(self, row.name) for row in fields(self)}

    @classmethod
    def of(cls, weights: Mapping[str, Any], name: str) -> "Standardisation":
        """What :meth:`rows` stored."""
        return cls(*(weights[f"{name}.{row.name}"] for row in fields(cls)))

    def __call__(self, rows: FloatArray) -> FloatArray:
        known = np.where(np.isnan(rows), self.mean, np.clip(rows, self.least, self.greatest))
        standard: FloatArray = (known - self.mean) * self.inverse_scale
        return np.clip(standard, -MOST_SPREADS, MOST_SPREADS)


def edge_inputs(
    network: RoadNetwork,
    features: Features,
    centre: FloatArray,
    frequencies: FloatArray,
    crossings: bool = False,
) -> FloatArray:
    """One raw row per edge, before standardisation.

    "attributes" has the paper's 20 columns, length and speed as logarithms;
    "location" adds the edge's heading, through traffic, density, and waves of
    its place: sine and cosine of ``frequencies`` (2, k), in turns per
    kilometre, around ``centre``. With ``crossings`` both see the junctions at
    the edge's ends.
    """
    attributes = edge_features(network)
    attributes[:, :2] = np.log(attributes[:, :2])
    traffic = through_traffic(network) if crossings or features == "location" else np.empty(0)
    if crossings:
        attributes = np.column_stack([attributes, junctions(network, traffic)])
    if features == "attributes":
        return attributes
    if np.isnan(network.lon).any():
        raise InputError(
            "this network has no coordinates; a location-aware model needs them, "
            "one of attributes alone does not"
        )
    plane = LocalPlane(float(centre[1]))
    kilometres = plane.to_metres(midpoints(network) - centre) / 1000
    phases = 2 * np.pi * kilometres @ frequencies
    east, north = headings(network).T
    heading = [east, north, east**2 - north**2, 2 * east * north]
    busy = [np.log1p(traffic), np.log1p(node_density(network))]
    waves = [np.sin(phases), np.cos(phases)]
    return np.column_stack([attributes, *heading, *busy, kilometres, *waves])


def context_inputs(rows: FloatArray, encoding: ContextEncoding, harmonics: int) -> FloatArray:
    """The encoded contexts with the hour as waves, before standardisation.

    ``harmonics`` pairs of sine and cosine stand for the hour, so that 23 h is
    next to 0 h; with none, the hour stays the paper's single number.
    """
    if not harmonics:
        return rows
    column = encoding.columns.index("hour")
    angle = 2 * np.pi * rows[:, [column]] / 24 * np.arange(1, harmonics + 1)
    return np.column_stack([np.delete(rows, column, axis=1), np.sin(angle), np.cos(angle)])

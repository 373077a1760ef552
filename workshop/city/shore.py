"""The curved shore, and the chart on which the city is planned.

A chart point is (along, inland) in metres: how far along the shore from the
western end, and how far from the water. The chart is flat and easy to plan on;
:func:`to_lonlat` bends it around the bay.
"""

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.network.geodesy import LocalPlane

ORIGIN_LONLAT = np.array([117.2, 21.6])
"""Open sea, so that no real street is near."""

DEGREE_DECIMALS = 6
"""Coordinates are whole microdegrees (0.1 m), so that the last bit of a sine never matters."""

_SHORE_M = np.arange(-1000.0, 8001.0, 10.0)
_BAY = np.radians(20.0) * (_SHORE_M - 3500.0) / 3500.0
_HEADLANDS = np.radians(9.0) * np.sin(2 * np.pi * (_SHORE_M - 2050.0) / 2600.0)
_HEADING = _BAY - _HEADLANDS
_SHORE_XY = np.cumsum(np.column_stack([np.cos(_HEADING), np.sin(_HEADING)]) * 10.0, axis=0)


def to_lonlat(chart: FloatArray) -> FloatArray:
    """Degrees of (k, 2) chart points: along the shore, then inland at right angles to the bay."""
    along, inland = chart[:, 0], chart[:, 1]
    shore = np.column_stack([np.interp(along, _SHORE_M, axis) for axis in _SHORE_XY.T])
    # Only the bay turns the inland direction: headlands would make it cross itself.
    bay = np.interp(along, _SHORE_M, _BAY)
    metres = shore + inland[:, None] * np.column_stack([np.sin(bay), -np.cos(bay)])
    plane = LocalPlane(float(ORIGIN_LONLAT[1]))
    return np.round(ORIGIN_LONLAT + plane.to_degrees(metres), DEGREE_DECIMALS)

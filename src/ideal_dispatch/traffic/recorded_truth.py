"""What the streets of a recorded stretch took, including those without a vehicle.

In a bin without a vehicle on an edge, the truth is interpolated between the bins
before and after it. A street without a vehicle in the whole stretch takes the
median of its road class.
"""

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.network.road_class import ROAD_CLASSES
from ideal_dispatch.traffic.recording import RATIOS, Codes

_EDGES_AT_A_TIME = 1024
_FREE_FLOW = int(np.nanargmin(np.abs(RATIOS - 1.0)))


def filled_times_s(codes: Codes, network: RoadNetwork, ahead: int) -> FloatArray:
    """Seconds of every bin and edge, the mean of that bin and those after it, ``ahead`` in all."""
    filled, usual = np.empty(codes.shape, np.float32), np.log(_usual(codes, network))
    for first in range(0, codes.shape[1], _EDGES_AT_A_TIME):
        part = slice(first, first + _EDGES_AT_A_TIME)
        filled[:, part] = _interpolated(codes[:, part], usual[part])
    ratios = np.exp(filled)
    padded = np.concatenate([ratios, np.repeat(ratios[-1:], ahead - 1, axis=0)])
    sums = np.cumsum(np.concatenate([np.zeros_like(padded[:1]), padded]), axis=0, dtype=float)
    pooled = (sums[ahead:] - sums[:-ahead]) / ahead
    times: FloatArray = (pooled * network.free_flow_times_s).astype(np.float32)
    times.flags.writeable = False
    return times


def _usual(codes: Codes, network: RoadNetwork) -> FloatArray:
    """Median ratio of each edge's road class, for streets without a vehicle."""
    classes = network.road_class.astype(np.int64)
    pairs, size = classes * 256 + codes, len(ROAD_CLASSES)
    counts = np.bincount(pairs.ravel(), minlength=size * 256).reshape(size, 256).astype(float)
    counts[:, 0] = 0.0
    counts[:, _FREE_FLOW] += 1e-9  # a class without a vehicle: free flow
    below = np.cumsum(counts, axis=1) / counts.sum(axis=1, keepdims=True)
    medians: FloatArray = RATIOS[(below >= 0.5).argmax(axis=1)].astype(np.float64)
    return medians[classes]


def _interpolated(codes: Codes, usual: FloatArray) -> FloatArray:
    """Logarithms of the ratios, on a line between the bins seen; ``usual`` where none was."""
    logs = np.log(RATIOS[codes]).astype(np.float64)
    bins = np.arange(len(codes))[:, None]
    before = np.maximum.accumulate(np.where(codes > 0, bins, -1))
    after = np.minimum.accumulate(np.where(codes > 0, bins, len(codes))[::-1])[::-1]
    before, after = (
        np.where(before < 0, after, before),
        np.where(after == len(codes), before, after),
    )
    never = before[0] == len(codes)
    before[:, never] = after[:, never] = 0
    start = np.take_along_axis(logs, before, axis=0)
    rise = np.take_along_axis(logs, after, axis=0) - start
    line = rise / np.maximum(after - before, 1) * (bins - before) + start
    filled: FloatArray = np.where(never, usual, np.where(after == before, start, line))
    return filled

"""Timing that a busy machine disturbs little: contenders take turns, medians count."""

import math
import time
from collections.abc import Callable, Mapping
from statistics import median


def race(
    contenders: Mapping[str, Callable[[], object]], seconds: float = 1.0, most_rounds: int = 60
) -> dict[str, float]:
    """Median seconds per call of each contender over interleaved rounds.

    A round repeats a quick call for about two milliseconds, so that each runs
    with its own data in the cache; each contender gets about ``seconds``.
    """
    repeats, rounds = {}, {}
    for name, call in contenders.items():
        call()
        once = max(_timed(call, 1), 1e-7)
        repeats[name] = max(1, int(2e-3 / once))
        rounds[name] = int(min(most_rounds, max(1.0, seconds / (once * repeats[name]))))
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(max(rounds.values())):
        for name, call in contenders.items():
            if turn < rounds[name]:
                samples[name].append(_timed(call, repeats[name]))
    return {name: median(times) for name, times in samples.items()}


def _timed(call: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def human(seconds: float) -> str:
    """A duration with three digits and its unit; NaN is one that was not measured."""
    if math.isnan(seconds):
        return "not measured"
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"

"""What two units on their way to one call promise, in compiled code.

The same mathematics as :mod:`ideal_dispatch.forecast.response_time`, for one pair at a time. A
response is a triple (mean, own, shared): its mean in seconds where nothing surprises, and the
standard deviations of the logarithm of its own part and of the part that both units share. A
surprise is a pair: its chance, and the spread that it adds to the own part. Symbols as in that
module.
"""

import math

import numpy as np

from ideal_dispatch.compiled import kernel

_NODES = np.array([-math.sqrt(3.0), 0.0, math.sqrt(3.0)])  # Gauss-Hermite, three points
_WEIGHTS = np.array([1.0 / 6.0, 2.0 / 3.0, 1.0 / 6.0])
_STEPS = 16  # of the integral over time, twice as many with surprises: right to 0.5 %
_REACH = 3.5


@kernel(counted=False)
def normal_below(x):  # type: ignore[no-untyped-def]
    """Φ(x)."""
    return 0.5 * math.erfc(-x * 0.7071067811865476)


@kernel(counted=False)
def response(turnout_mean_s, turnout_square, drive_s, spreads):  # type: ignore[no-untyped-def]
    """The response of a unit whose turnout and drive have these means.

    ``turnout_square`` is the turnout's variance; ``spreads`` are drive_spread, slack_s and
    shared.
    """
    drive_spread, slack_s, shared = spreads
    mean = max(turnout_mean_s + drive_s, 1.0)
    square = turnout_square + (drive_spread * drive_s) ** 2 + slack_s**2
    own = math.sqrt(math.log1p(square / mean**2))
    return mean, own, shared * drive_s / mean


@kernel(counted=False)
def remaining(one, elapsed_s):  # type: ignore[no-untyped-def]
    """What is left of a response that has lasted ``elapsed_s`` and is not over."""
    mean, own, shared = one
    if elapsed_s <= 0.0:
        return one
    spread = max(math.sqrt(own**2 + shared**2), 1e-6)
    off = (math.log(mean / elapsed_s) - 0.5 * spread**2) / spread
    still = normal_below(off)
    if still < 1e-9:  # far beyond all that was expected: any moment now
        return max(0.1 * elapsed_s, 1.0), own, shared
    first = mean * normal_below(off + spread) / still
    second = mean**2 * math.exp(spread**2) * normal_below(off + 2.0 * spread) / still
    left = max(first - elapsed_s, 1.0)
    whole = math.sqrt(math.log1p(max(second - first**2, 0.0) / left**2))
    part = whole / spread
    return left, part * own, part * shared


@kernel(counted=False)
def second_first(first, second):  # type: ignore[no-untyped-def]
    """P(T₂ < T₁) where nothing surprises."""
    m1, o1, s1 = first
    m2, o2, s2 = second
    off = math.log(m1 / m2) - 0.5 * (o1**2 + s1**2 - o2**2 - s2**2)
    return normal_below(off / max(math.sqrt(o1**2 + o2**2 + (s1 - s2) ** 2), 1e-6))


@kernel(counted=False)
def risk_at(risk, seconds):  # type: ignore[no-untyped-def]
    """The chance of death if help comes after so many seconds, between the table's entries."""
    if seconds <= 0.0:
        return risk[0]
    whole = int(seconds)
    if whole >= risk.size - 1:
        return risk[-1]
    return risk[whole] + (seconds - whole) * (risk[whole + 1] - risk[whole])


@kernel(counted=False)
def _later(off, own, surprise):  # type: ignore[no-untyped-def]
    """The chance that an own part is above −``off``, whoever surprises."""
    chance, wide = surprise
    usual = normal_below(off / own)
    if chance <= 0.0:
        return usual
    return usual + chance * (normal_below(off / math.sqrt(own**2 + wide**2)) - usual)


@kernel(counted=False)
def pair(first, second, before_s, risk, surprise):  # type: ignore[no-untyped-def]
    """What a second unit saves beside the first, and how long both are on their way.

    ``before_s`` have passed since the call. Returns the fall in the chance of death,
    E[R(T₁) − R(min(T₁, T₂))], and E[min(T₁, T₂)].
    """
    m1, o1, s1 = first
    m2, o2, s2 = second
    w1, w2 = math.sqrt(o1**2 + s1**2), math.sqrt(o2**2 + s2**2)
    c1, c2 = math.log(m1) - 0.5 * w1**2, math.log(m2) - 0.5 * w2**2
    chance, wide = surprise
    steps = _STEPS
    if chance > 0.0:
        steps = 2 * _STEPS
        w1, w2 = math.sqrt(w1**2 + wide**2), math.sqrt(w2**2 + wide**2)
        m1 *= 1.0 + chance * (math.exp(0.5 * wide**2) - 1.0)
    # a second saves only while it can be there and the first need not be
    low, high = c2 - _REACH * w2, c1 + _REACH * w1
    if low >= high:
        return 0.0, m1
    o1, o2 = max(o1, 1e-6), max(o2, 1e-6)
    step = (high - low) / steps
    saved, sooner_s = 0.0, 0.0
    t_before = math.exp(low)
    risk_before = risk_at(risk, before_s + t_before)
    for k in range(steps):
        t = math.exp(low + (k + 1) * step)
        middle = low + (k + 0.5) * step
        only = 0.0  # the chance that the second is there and the first is not
        for n in range(3):
            late = _later(c1 + s1 * _NODES[n] - middle, o1, surprise)
            here = 1.0 - _later(c2 + s2 * _NODES[n] - middle, o2, surprise)
            only += _WEIGHTS[n] * late * here
        risk_here = risk_at(risk, before_s + t)
        saved += (risk_here - risk_before) * only
        sooner_s += (t - t_before) * only
        risk_before, t_before = risk_here, t
    return saved, m1 - sooner_s

"""When a unit is at the address, in seconds from now: one distribution for every answer.

A unit is *waiting* or *rolling*. With U its turnout, D its drive and a the seconds since it was
sent, a waiting unit that has not left arrives in

    T = (U − a) + D, given U > a;        E[T] = E[U − a | U > a] + E[D].

A rolling unit was last seen v seconds of driving ago; D is the drive from that place, and

    T = D − v, given D > v;              E[T] = E[D − v | D > v].

So v + E[T] never falls while time passes, nor does a + E[T] but for surprises, which lengthen
what is left of a turnout, too. The age of a position counts in no other way. A unit that can be
sent now waits with a = 0. Gain and chance of the second unit follow from
the arrivals T₁ and T₂ of both (:class:`~ideal_dispatch.forecast.response_time.ResponsePair`), so

    E[(T₁ − T₂)⁺] ≥ E[T₁] − E[T₂]   and   0 ≤ P(T₂ < T₁) ≤ 1.
"""

import math
from dataclasses import dataclass
from typing import TypedDict, Unpack

from ideal_dispatch.arrays import non_negative
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.response_time import ResponseModel, ResponseTime, mixed

FORGOTTEN = 0.05
"""The share of crews that leave without reporting it."""

_Z90 = 1.2815515655446004  # Φ(z) = 0.9


class UnitTraits(TypedDict, total=False):
    """What :meth:`ResponseModel.of` asks about a unit beside its drive."""

    station: str
    hour: int
    kind: str
    on_road: bool
    quoted: bool


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """Seconds from now until a unit is at the address: a distribution and its expected parts.

    ``turnout_s`` is what is expected to be left of the turnout. The rest of the expectation is
    ``drive_s``, what is done beside the road and the surprises of :class:`ResponseTime` included.
    """

    time: ResponseTime
    turnout_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.turnout_s <= self.expected_s:
            raise InputError(
                f"arrival: a turnout of {self.turnout_s} s is no part of {self.expected_s} s"
            )

    @property
    def expected_s(self) -> float:
        """The expected seconds: both parts together."""
        return float(self.time.mean_s)

    @property
    def drive_s(self) -> float:
        """The expected seconds of the drive that are left."""
        return self.expected_s - self.turnout_s

    @property
    def p90_s(self) -> float:
        """The seconds within which the unit arrives nine times of ten."""
        median_s = float(self.time.median_s)
        parts = [(w, math.hypot(own, self.time.shared)) for w, own in self.time.parts]
        ends = [_Z90 * spread for _, spread in parts]  # each part's own quantile, as a logarithm
        low, high = min(ends), max(ends)
        while high - low > 1e-6:
            middle = 0.5 * (low + high)
            later = sum(w * 0.5 * math.erfc(middle / (s * math.sqrt(2.0))) for w, s in parts)
            low, high = (middle, high) if later > 0.1 else (low, middle)
        return median_s * math.exp(high)

    def to_dict(self) -> dict[str, float]:
        """Both parts, their sum and the 90th percentile to 0.1 s; the parts still add up."""
        expected_s = round(self.expected_s, 1)
        turnout_s = min(round(self.turnout_s, 1), expected_s)
        return {
            "expected_s": expected_s,
            "turnout_s": turnout_s,
            "drive_s": round(expected_s - turnout_s, 1),
            "p90_s": round(self.p90_s, 1),
        }


def waiting(
    model: ResponseModel,
    drive_s: float,
    sent_ago_s: float = 0.0,
    *,
    forgotten: float = FORGOTTEN,
    **traits: Unpack[UnitTraits],
) -> Arrival:
    """A unit that has not reported leaving: the rest of its turnout, then its whole drive.

    It was sent ``sent_ago_s`` ago; 0 where it would be sent now. With a chance of ``forgotten`` a
    crew leaves without reporting it, and only its whole response is known to be longer than
    ``sent_ago_s``: the longer the silence, the more probably it is on its way. Give 0 where the
    unit is known to stand.
    """
    ago_s = non_negative(sent_ago_s, "time since a unit was sent", seconds=True)
    time = model.of(drive_s, waited_s=ago_s, **traits)
    turnout = model.leaving(
        station=traits.get("station", ""), hour=traits.get("hour", -1),
        kind=traits.get("kind", ""), on_road=traits.get("on_road", False),
    )  # fmt: skip
    turnout_s = float(turnout.after(ago_s).mean_s)
    if ago_s > 0.0 and forgotten > 0.0:
        whole, inside = model.of(drive_s, **traits), float(turnout.later_than(ago_s))
        silent = forgotten * float(whole.later_than(ago_s))
        odds = silent + (1.0 - forgotten) * inside
        share = silent / odds if odds > 0.0 else 1.0
        time = mixed(time, whole.after(ago_s), share)
        turnout_s *= 1.0 - share + share * inside
    return Arrival(time, min(turnout_s, float(time.mean_s)))


def rolling(
    model: ResponseModel, drive_s: float, driven_s: float = 0.0, **traits: Unpack[UnitTraits]
) -> Arrival:
    """A unit on its way: ``drive_s`` from where it was seen, of which ``driven_s`` have passed.

    Where the drive is NaN, the whole response without its turnout counts.
    """
    driven_s = non_negative(driven_s, "time that a unit has driven", seconds=True)
    return Arrival(model.of(drive_s, rolling=True, **traits).after(driven_s))

"""How right the prices of a city's units are, and factors that make them right.

Prices are compared with the referee at moments of one year, corrected by a regression, and
compared again at moments of another year, which the regression has not seen.
"""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ideal_dispatch.archive import JsonKind
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch.price import UNCALIBRATED, PriceTables
from ideal_dispatch.experiment.engine import Watch, unwatched
from ideal_dispatch.fleet.city import HOURS, FleetCity
from ideal_dispatch.fleet.prices import Harm, price_tables
from ideal_dispatch.fleet.referee import AbsenceCost, Moment, judged, moments
from ideal_dispatch.fleet.simulation import Simulator
from ideal_dispatch.fleet.units import cost_of, on_duty

HOLDS_S = (360.0, 900.0, 4800.0)
"""Absences that are looked at: until the other unit is there, with an assist, with a patient."""

HARMS: tuple[Harm, ...] = ("deaths", "late")

_FILE = JsonKind(
    "ideal-dispatch price of a unit", 1, "file of prices", "make one with `ideal fleet price`"
)
_DRAWS = 30  # fleets that stand for all that have so many free units


@dataclass(frozen=True, slots=True)
class PriceCheck:
    """Prices of one absence against the referee, over moments that were not learned from.

    All are means over moments; ``referee_error`` is a standard error. ``r2_before`` and
    ``r2_after`` are the squared correlations of prices with the referee's costs, the referee's
    own noise taken out.
    """

    harm: Harm
    hold_s: float
    referee: float
    referee_error: float
    before: float
    after: float
    r2_before: float
    r2_after: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Factors for the prices of a city, by harm, and how right prices are with them.

    ``stations`` are those that have units.
    """

    city: str
    stations: tuple[str, ...]
    calls_per_day: float
    seed: int
    factors: dict[Harm, tuple[float, ...]]
    checks: tuple[PriceCheck, ...]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file that :meth:`load` turns into an equal calibration."""
        _FILE.write(path, asdict(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Calibration":
        """Read a calibration, or say in one line why the file holds none."""
        with _FILE.reading(path) as content:
            factors = {harm: tuple(map(float, content["factors"][harm])) for harm in HARMS}
            for values in factors.values():
                if len(values) != len(UNCALIBRATED) or not np.isfinite(values).all():
                    raise ValueError("factors")
            checks = tuple(PriceCheck(**one) for one in content["checks"])
            stations = tuple(map(str, content["stations"]))
            calls_per_day = float(content["calls_per_day"])
            return cls(content["city"], stations, calls_per_day, content["seed"], factors, checks)


def calibrate(
    city: FleetCity,
    *,
    count: int = 200,
    futures: int = 200,
    seed: int = 0,
    hold_s: Sequence[float] = HOLDS_S,
    watch: Watch = unwatched,
) -> Calibration:
    """Factors from so many moments of a year, checked at as many of another year.

    The cost of every moment is the mean over ``futures`` paired futures. Same seed, same result.
    """
    simulator = Simulator(city)
    seeds = np.random.SeedSequence([seed, 3]).generate_state(4).tolist()
    found: list[tuple[list[Moment], AbsenceCost]] = []
    for k, stage in enumerate(("rollouts to learn from", "rollouts to check by")):
        watch(stage, 0.0)
        at, seen = moments(simulator, count, seeds[2 * k]), partial(watch, stage)
        found.append((at, judged(simulator, at, hold_s, futures, seeds[2 * k + 1], watch=seen)))
    factors: dict[Harm, tuple[float, ...]] = {}
    checks: list[PriceCheck] = []
    for harm in HARMS:
        tables = price_tables(city, harm)

        def priced(at: Sequence[Moment], by: tuple[float, ...], of: PriceTables = tables) -> Any:
            """Prices by moment and hold, as policies are given them."""
            told = of._replace(factors=np.array(by))
            return np.array([
                [cost_of(simulator.world, told, one.state, one.unit, -1, away_s, one.now_s)
                 for away_s in hold_s] for one in at
            ])  # fmt: skip

        (learned, costs), (unseen, truth) = found
        plain = priced(learned, (1.0, 0.0, 0.0, 0.0, 0.0))
        busy = priced(learned, (1.0, 0.0, 0.0, 1.0, 0.0)) - plain
        road = priced(learned, (1.0, 0.0, 0.0, 0.0, 1.0)) - plain
        length = np.log(np.array(hold_s) / 900.0)
        # what each factor multiplies, by moment, hold and factor
        features = np.stack([plain, plain * length, plain * length**2, busy, road], axis=-1)
        factors[harm] = _fitted(features, *costs.of(harm))
        before, after = (priced(unseen, by) for by in (UNCALIBRATED, factors[harm]))
        cost, error = truth.of(harm)
        for k, away_s in enumerate(hold_s):
            noise = float((error[:, k] ** 2).mean())
            checks.append(PriceCheck(
                harm, float(away_s), float(cost[:, k].mean()), float(np.sqrt(noise / len(cost))),
                float(before[:, k].mean()), float(after[:, k].mean()),
                _explained(before[:, k], cost[:, k], noise),
                _explained(after[:, k], cost[:, k], noise),
            ))  # fmt: skip
    stations = tuple(city.station_names[at] for at in np.unique(city.units))
    return Calibration(city.name, stations, city.calls_per_day, seed, factors, tuple(checks))


def _fitted(features: FloatArray, costs: FloatArray, errors: FloatArray) -> tuple[float, ...]:
    """Factors for which mean prices are mean costs, hold by hold, on the road and at home.

    Groups of moments are fitted rather than moments: a price that misses single moments at
    random would be shrunk, and be too low on average.
    """
    from scipy.optimize import lsq_linear

    share = features[:, 0, 3] / np.maximum(features[:, 0, 0], 1e-300)
    group = 2 * (share > np.median(share)) + (features[:, 0, 4] > 0.0)
    rows, wanted = [], []
    for one in np.unique(group):
        inside = group == one
        mean, cost = features[inside].mean(axis=0), costs[inside].mean(axis=0)
        noise = (errors[inside] ** 2).mean(axis=0) / inside.sum()
        spread = costs[inside].var(axis=0) / inside.sum()  # another draw of moments
        scale = np.maximum(np.sqrt(noise + spread), 1e-12)
        rows.append(mean / scale[:, None])
        wanted.append(cost / scale)
    low = np.array([-np.inf, -np.inf, -np.inf, -np.inf, 0.0])
    return tuple(lsq_linear(np.vstack(rows), np.concatenate(wanted), (low, np.inf)).x.tolist())


def _explained(price: FloatArray, cost: FloatArray, noise: float) -> float:
    """The squared correlation; at most 1, and 0 where the costs differ by noise alone."""
    spread = float(cost.var()) - noise
    if spread <= 0.0 or price.var() == 0.0:
        return 0.0
    together = float(((price - price.mean()) * (cost - cost.mean())).mean())
    return min(together**2 / float(price.var()) / spread, 1.0)


def price_grid(
    city: FleetCity,
    harm: Harm,
    factors: npt.ArrayLike,
    free: Sequence[int],
    hours: Sequence[int],
    hold_s: Sequence[float] = HOLDS_S,
    seed: int = 0,
) -> FloatArray:
    """Mean prices by hour, number of free units and hold; NaN where fewer are on duty.

    Which units are free, and which of them is sent, is drawn.
    """
    prices = price_tables(city, harm)._replace(factors=np.array(factors, float))
    rng = np.random.default_rng([seed, 4])
    grid = np.full((len(hours), len(free), len(hold_s)), np.nan)
    for row, hour in enumerate(hours):
        at_s = (hour % HOURS + 0.5) * 3600.0
        duty = [u for u in range(city.num_units) if on_duty(city.shifts, u, at_s)]
        for column, count in enumerate(free):
            if count > len(duty):
                continue
            drawn: list[Any] = []
            for _ in range(_DRAWS):
                stations = city.units[rng.permutation(duty)]
                idle = np.bincount(stations[:count], minlength=len(city.stations))
                busy = [(int(station), None) for station in stations[count:]]
                drawn.append(
                    [prices.cost(idle, busy, int(stations[0]), away_s, hour) for away_s in hold_s]
                )
            grid[row, column] = np.mean(drawn, axis=0)
    return grid

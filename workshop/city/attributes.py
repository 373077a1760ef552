"""Speed limits and lanes as a map of a real city would know them: for most roads, not for all."""

from collections.abc import Sequence

import numpy as np

from ideal_dispatch.arrays import BoolArray, FloatArray
from workshop.city.street import Street

_LIMITS_KMH: dict[str, tuple[float, tuple[int, ...]]] = {
    "motorway": (1.0, (60,)),
    "motorway_link": (1.0, (50,)),
    "trunk": (1.0, (60,)),
    "trunk_link": (1.0, (50,)),
    "primary": (1.0, (50,)),
    "primary_link": (0.8, (50,)),
    "secondary": (0.95, (50,)),
    "secondary_link": (0.8, (50,)),
    "tertiary": (0.85, (50, 50, 40)),
    "tertiary_link": (0.6, (40,)),
    "unclassified": (0.6, (50, 40)),
    "residential": (0.55, (50, 40, 30)),
    "living_street": (1.0, (20,)),
    "service": (0.2, (20,)),
}
"""Share of streets with a posted limit, and the limits to draw from."""

_LANES: dict[str, tuple[float, int, int]] = {
    "motorway": (1.0, 3, 6),
    "motorway_link": (0.9, 1, 2),
    "trunk": (1.0, 2, 4),
    "trunk_link": (0.9, 1, 2),
    "primary": (0.95, 3, 4),
    "primary_link": (0.7, 1, 2),
    "secondary": (0.85, 2, 4),
    "secondary_link": (0.7, 1, 2),
    "tertiary": (0.7, 2, 2),
    "tertiary_link": (0.6, 1, 2),
    "unclassified": (0.5, 1, 2),
    "residential": (0.4, 1, 2),
    "living_street": (0.3, 1, 1),
    "service": (0.1, 1, 1),
}
"""Share of streets with known lanes, lanes where one-way, and where two-way."""


def speed_limits_kmh(streets: Sequence[Street], rng: np.random.Generator) -> FloatArray:
    """The limit of each street, NaN where none is posted; one name, one limit."""
    limits: dict[tuple[str, str], float] = {}
    values = []
    for number, street in enumerate(streets):
        share, choices = _LIMITS_KMH[street.road_class]
        limit = float(rng.choice(choices)) if rng.random() < share else np.nan
        key = street.road_class, street.name or str(number)
        values.append(limits.setdefault(key, limit))
    return np.array(values)


def lane_counts(
    road_class: Sequence[str], oneway: BoolArray, rng: np.random.Generator
) -> FloatArray:
    """Lanes of each piece, both directions together, NaN where unknown."""
    known = rng.random(len(road_class))
    rows = [_LANES[name] for name in road_class]
    return np.array(
        [
            np.nan if draw >= share else float(one if single else both)
            for (share, one, both), single, draw in zip(rows, oneway, known, strict=True)
        ]
    )

"""How much demand a city's streets can carry, found by trial hours in SUMO.

Junctions jam long before lanes are full. A formula of volume over capacity was wrong by a
factor of up to four between cities. So an evening hour is simulated at one demand after
the other.
"""

import hashlib
from datetime import date
from pathlib import Path

from ideal_dispatch.files import write_file
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.traffic.sumo.campaign import engine_of
from ideal_dispatch.traffic.sumo.day_plan import DayPlan
from ideal_dispatch.traffic.sumo.plausibility import hour_breaks
from ideal_dispatch.traffic.sumo.simulation import simulate_day

_FACTORS = tuple(0.25 * 2 ** (step / 5) for step in range(16))  # up to 2, 15 % apart
_HOUR = (17, 18)
_DRY = ((20.0, 0.0, 70.0, 10.0, 1012.0),) * 25


def capacity(network: RoadNetwork, workdir: Path) -> float:
    """The greatest demand factor, from 0.25 to 2, at which an evening hour flows.

    It flows where it keeps the rules of an hour, and is not gridlocked
    (:func:`~ideal_dispatch.traffic.sumo.plausibility.hour_breaks`). The hour is of a dry
    weekday without closures. Demand grows from trial to trial, and the first jam ends them:
    a jam takes long to simulate. Streets that always jam get the least. Same network, demand
    and SUMO, same answer; ``workdir`` keeps it.
    """
    workdir.mkdir(parents=True, exist_ok=True)
    made_of = repr(sorted(engine_of(network).items())).encode()
    known = workdir / f"{hashlib.blake2b(made_of, digest_size=16).hexdigest()}.capacity"
    if known.exists():
        return float(known.read_text())
    found = _FACTORS[0]
    for factor in _FACTORS:
        plan = DayPlan(date(2025, 1, 7), "weekday", "UTC", (_HOUR,), factor, _DRY)
        if any(map(hour_breaks, simulate_day(network, plan, workdir=workdir).hours)):
            break
        found = factor
    write_file(known, f"{found!r}\n")
    return found

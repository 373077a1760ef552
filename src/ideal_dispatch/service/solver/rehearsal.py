"""Advice on a call that never was, so that the first real one finds everything loaded."""

import logging
import time
from datetime import UTC, datetime

from ideal_dispatch.service.solver.adviser import Adviser
from ideal_dispatch.service.solver.call import Call, Scene, Sent
from ideal_dispatch.service.solver.known import KnownUnits, KnownWeather

log = logging.getLogger(__name__)

_PATIENCE_S = 60.0  # where nothing is compiled yet


def rehearse(adviser: Adviser) -> bool:
    """Whether there was an advice from one depot to the next: all that a call needs is loaded.

    Nothing is raised: a worker that cannot rehearse still tells every caller what is wrong.
    """
    try:
        network, (first, second, *_) = adviser.assets.network, adviser.assets.depots
        scene = Scene(float(network.lon[second.node]), float(network.lat[second.node]))
        units = tuple((depot.name, 1) for depot in (first, second))
        call = Call("rehearsal", datetime.now(UTC), scene, Sent(first.name), units)
        until = time.monotonic() + _PATIENCE_S
        made = adviser.advise(call, KnownUnits({}, None), KnownWeather(), until)
    except Exception:
        log.exception("the rehearsal failed")
        return False
    return bool(made["decision"] != "no_advice")

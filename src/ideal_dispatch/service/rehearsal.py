"""Advice on a call that never was, so that the first real one finds everything loaded."""

import logging
import time
from datetime import UTC, datetime

from ideal_dispatch.service.adviser import Adviser
from ideal_dispatch.service.known import KnownUnits, KnownWeather
from ideal_dispatch.service.schemas import RecommendationRequest

log = logging.getLogger(__name__)

_PATIENCE_S = 60.0  # where nothing is compiled yet


def rehearse(adviser: Adviser) -> bool:
    """Whether there was an advice from one depot to the next: all that a call needs is loaded.

    Nothing is raised: a worker that cannot rehearse still tells every caller what is wrong.
    """
    try:
        network, (first, second, *_) = adviser.assets.network, adviser.assets.depots
        place = {"lon": float(network.lon[second.node]), "lat": float(network.lat[second.node])}
        request = RecommendationRequest.model_validate({
            "call_id": "rehearsal", "received_at": datetime.now(UTC), "location": place,
            "depots": [{"name": depot.name, "units": 1} for depot in (first, second)],
            "primary": {"depot": first.name},
        })  # fmt: skip
        until = time.monotonic() + _PATIENCE_S
        made = adviser.advise(request, KnownUnits({}, None), KnownWeather(), until)
    except Exception:
        log.exception("the rehearsal failed")
        return False
    return bool(made["decision"] != "no_advice")

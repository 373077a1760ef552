"""Small recordings that the tests of the plausibility page share."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta

import numpy as np
import numpy.typing as npt

from ideal_dispatch import Calendar, RoadNetwork
from ideal_dispatch.context.calendar import zone
from ideal_dispatch.traffic.recording import RecordedTraffic, Stretch, encode

CALENDAR = Calendar("Asia/Hong_Kong", "HK")


def recording(
    network: RoadNetwork,
    days: Sequence[date],
    ratios: npt.ArrayLike,
    first_hour: int = 17,
) -> RecordedTraffic:
    """Stretches from ``first_hour`` on: ``ratios`` are times over free flow, by day, bin, edge."""
    start = datetime(2023, 1, 1, first_hour, tzinfo=zone("Asia/Hong_Kong"))
    stretches = [
        Stretch(
            start + timedelta(days=(day - start.date()).days),
            encode(np.asarray(one) * network.free_flow_times_s, network),
            np.zeros((5, 5)),
        )
        for day, one in zip(days, np.asarray(ratios, float), strict=True)
    ]
    return RecordedTraffic(network, CALENDAR, 60, tuple(stretches), {"engine": "test"})

"""Arrivals of units as trips that a model learns from."""

from collections import Counter
from datetime import UTC
from typing import TYPE_CHECKING

import numpy as np

from ideal_dispatch.arrays import BoolArray, IntArray
from ideal_dispatch.context import ContextEncoding
from ideal_dispatch.context.calendar import Calendar
from ideal_dispatch.context.weather import WeatherProvider, source_counts
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.ranges import POSITIVE
from ideal_dispatch.records.agency import WeatherSettings
from ideal_dispatch.records.past_weather import readings
from ideal_dispatch.records.places import junctions
from ideal_dispatch.records.trips import RESPONSE, STAMPS, TARGETS, Trips

if TYPE_CHECKING:
    from ideal_dispatch.records.responses import Responses


def trips_of(
    responses: "Responses",
    network: RoadNetwork,
    limit_m: float,
    calendar: Calendar | None = None,
    weather: WeatherProvider | None = None,
    rules: WeatherSettings | None = None,
) -> tuple[Trips, IntArray]:
    """See :meth:`Responses.trips`; ``rules`` say what to do where the weather is not known."""
    POSITIVE.check(limit_m, "limit_m")
    calendar = calendar or responses.calendar
    drive_s = responses.drive_s
    stamped = ~np.isnan(drive_s)
    seconds = np.where(stamped, drive_s, responses.response_s)
    origin = junctions(responses.from_lon, responses.from_lat, network, limit_m)
    destination = junctions(responses.lon, responses.lat, network, limit_m)
    left_out: Counter[str] = Counter()
    usable = np.ones(len(responses), bool)

    def leave_out(rows: BoolArray, why: str) -> None:
        left_out[why] += int((usable & rows).sum())
        usable[rows] = False

    leave_out(~responses.arrived, "never on scene")
    leave_out(responses.remark > 0, "has a remark: its times are not those of a drive from there")
    leave_out(~(seconds > 0), "its stamps give no travel time")
    leave_out(np.isnan(responses.from_lon + responses.from_lat), "start is not known")
    leave_out(origin < 0, f"start is farther than {limit_m:g} m from a road")
    leave_out(np.isnan(responses.lon + responses.lat), "scene is not known")
    leave_out(destination < 0, f"scene is farther than {limit_m:g} m from a road")
    leave_out(origin == destination, "starts and ends at one junction")
    rows = np.flatnonzero(usable).astype(np.int32)
    moments = [at.replace(tzinfo=UTC) for at in responses.at[rows].tolist()]
    told, problems = readings(
        weather, rules or WeatherSettings(), moments, responses.lon[rows], responses.lat[rows]
    )
    contexts = [calendar.context(at, w) for at, w in zip(moments, told, strict=True)]
    encoding = ContextEncoding()
    target = np.where(stamped[rows], TARGETS.index(STAMPS), TARGETS.index(RESPONSE))
    trips = Trips(
        origin=origin[rows],
        destination=destination[rows],
        observed_s=seconds[rows],
        contexts=encoding.encode(contexts),
        encoding=encoding,
        at=responses.at[rows],
        target=target.astype(np.uint8),
        row=responses.row[rows],
        network_checksum=network.checksum,
        provenance={
            **{key: responses.provenance[key] for key in ("source", "source_checksum", "agency")
               if key in responses.provenance},
            "time_zone": responses.time_zone,
            "weather": source_counts(told),
            "responses": len(responses),
            "left_out": {why: count for why, count in left_out.items() if count},
            "notes": problems,
        },
    )  # fmt: skip
    return trips, rows

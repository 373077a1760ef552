"""An agency's records: from files of calls and of units to trips, responses and races."""

from ideal_dispatch.records.responses import Response, Responses
from ideal_dispatch.records.trips import Trip, Trips

__all__ = ["Response", "Responses", "Trip", "Trips"]

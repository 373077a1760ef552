"""An agency's records: from a file of calls to trips a model learns from."""

from ideal_dispatch.records.trips import Trip, Trips

__all__ = ["Trip", "Trips"]

"""What every source of traffic offers: quotes, and in a replay the truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

import numpy as np

from ideal_dispatch.context.context import require_zone
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import Path

TIMES = ("duration_s", "next_segment_s", "optimistic_s", "pessimistic_s", "data_age_s")
"""Numbers of every quote; NaN where the source gives none of the last three."""


@dataclass(frozen=True, slots=True)
class RouteQuote:
    """A router's answer to one question: knowledge, not truth.

    ``path`` is on our own network. ``next_segment_s`` is the predicted time of
    its first edge. ``optimistic_s`` and ``pessimistic_s`` are the router's own
    and need not lie around ``duration_s``; NaN where it gives none.
    ``data_age_s`` is how old its newest data was, NaN where that is not known;
    ``fell_back`` says in words why the engine did not answer as asked, or is empty.
    """

    path: Path
    duration_s: float
    next_segment_s: float
    optimistic_s: float
    pessimistic_s: float
    asked_at: datetime
    data_age_s: float
    fell_back: str = ""

    def __post_init__(self) -> None:
        require_zone(self.asked_at)
        for name in TIMES:
            value, or_nan = getattr(self, name), "" if name in TIMES[:2] else ", or NaN"
            number = isinstance(value, (float, int, np.number))
            if not number or not (0.0 <= value < np.inf or (or_nan and np.isnan(value))):
                raise InputError(
                    f"quote: {name} is {value}; it must be finite and zero or more{or_nan}"
                )


@runtime_checkable
class TrafficSource(Protocol):
    """Anything that can be asked for a route now."""

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """The router's best route and what it promises, at the moment ``at``."""
        ...


@runtime_checkable
class AvoidsEdges(Protocol):
    """A router that can avoid closed roads."""

    def avoiding(self, edges: Sequence[int]) -> TrafficSource:
        """The same router, which keeps off these edges as well as it can."""
        ...


@runtime_checkable
class TellsTruth(Protocol):
    """Traffic that knows what really happened."""

    def realised(self, edge: int, at: datetime) -> float:
        """Seconds that an edge takes if entered at ``at``."""
        ...

"""Recorded traffic under a router that somebody else wrote."""

from datetime import datetime
from typing import Any

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.errors import IdealError, InputError
from ideal_dispatch.traffic.recorded import RecordedWorld
from ideal_dispatch.traffic.source import RouteQuote, TrafficSource

_OFFERS = ("alternative", "router_times", "way_on")


class RoutedWorld:
    """A world whose quotes are those of ``source`` and whose truth is the recording's.

    Other routes, edge times and the quick way on are offered where the source
    offers them (:class:`~ideal_dispatch.dispatch.situation.OffersAlternatives`,
    ``TellsEdgeTimes``, :class:`~ideal_dispatch.replay.drive.Navigator`).
    """

    def __init__(self, recorded: RecordedWorld, source: TrafficSource) -> None:
        self.recorded, self.source = recorded, source
        self.network, self.recording, self.params = (
            recorded.network, recorded.recording, recorded.params,
        )  # fmt: skip
        for name in _OFFERS:
            if hasattr(source, name):
                setattr(self, name, getattr(source, name))

    def __reduce__(self) -> tuple[Any, ...]:
        return RoutedWorld, (self.recorded, self.source)

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """The source's, refused where nobody could drive it."""
        what = f"traffic source {type(self.source).__name__}"
        try:
            quote = self.source.quote(origin, destination, at)
        except IdealError:
            raise
        except Exception as error:
            raise InputError(f"{what}: {type(error).__name__}: {error}") from error
        if not isinstance(quote, RouteQuote):
            raise InputError(f"{what}: quote() gives {quote!r}; a RouteQuote is needed")
        self.network.path(quote.path.edges, quote.path.origin)  # refuses a path of another network
        if (quote.path.origin, quote.path.destination) != (origin, destination):
            raise InputError(f"{what}: asked from {origin} to {destination}, it gives {quote.path}")
        return quote

    def realised(self, edge: int, at: datetime) -> float:
        """Seconds that the edge took for whoever entered it at ``at``, as recorded."""
        return self.recorded.realised(edge, at)

    def realised_times(self, at: datetime) -> FloatArray:
        """Seconds of every edge for whoever enters it at ``at``, as recorded."""
        return self.recorded.realised_times(at)

    def describe(self) -> dict[str, Any]:
        """What a log of quotes should know about their source."""
        return {**self.recorded.describe(), "source": type(self.source).__name__}


ReplayedWorld = RecordedWorld | RoutedWorld
"""What calls can be replayed in."""

"""What all routing services share: quotes on our own network, live or from recorded answers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, ClassVar, Self

import numpy as np

from ideal_dispatch.arrays import whole_number
from ideal_dispatch.context.context import require_zone
from ideal_dispatch.context.weather import utc_now
from ideal_dispatch.errors import InputError, TrafficServiceError, UnreachableError
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.time_bounds import TimeBounds
from ideal_dispatch.ranges import Checked, Positive, Share
from ideal_dispatch.traffic.answers import RecordedAnswers
from ideal_dispatch.traffic.foreign_route import LEAST_SHARE, ForeignRoute, MatchError, laid_on
from ideal_dispatch.traffic.service_client import RequestBudget, ServiceClient


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteParams(Checked):
    """What every quote asks for.

    A route of which less than ``least_share`` can be laid on our network is an
    error. A moment within ``now_within_s`` of the present counts as now.
    """

    least_share: Share = LEAST_SHARE
    now_within_s: Positive = 120.0


class RoutingService:
    """A routing service that quotes on our own network, live or from recorded answers.

    ``usual`` makes the parameters of a source that is given none.
    """

    service: ClassVar[str]
    usual: ClassVar[type[RouteParams]]
    params: RouteParams

    def __init__(
        self,
        network: RoadNetwork,
        client: ServiceClient,
        params: RouteParams | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.network, self.client, self._now = network, client, now
        self.params = params or self.usual()

    @classmethod
    def replayed(
        cls, network: RoadNetwork, answers: RecordedAnswers, params: RouteParams | None = None
    ) -> Self:
        """A source that repeats recorded answers and asks no service."""
        return cls(network, ServiceClient(cls.service, answers=answers), params)

    @property
    def budget(self) -> RequestBudget:
        """How many requests were sent, and may be."""
        return self.client.budget

    def close(self) -> None:
        """Close open connections."""
        self.client.close()

    def describe(self) -> dict[str, Any]:
        """What a recording says about its source; without the key."""
        return {"engine": self.service, "live": self.client.live, **asdict(self.params)}

    def _check(self, origin: int, destination: int, at: datetime) -> None:
        """Refuse what no service can answer: a time without zone, an unknown node."""
        require_zone(at)
        network = self.network
        for node, what in ((origin, "origin"), (destination, "destination")):
            if not 0 <= whole_number(node, what) < network.num_nodes:
                raise InputError(f"{what} {node} is not a node (0 … {network.num_nodes - 1})")
            if not (np.isfinite(network.lon[node]) and np.isfinite(network.lat[node])):
                raise InputError(f"{what} {node} has no coordinates; a router needs them")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Within it a ``ValueError`` says what is wrong with an answer."""
        try:
            yield
        except ValueError as error:
            raise TrafficServiceError(
                f"{self.service}: the answer cannot be used: {error}"
            ) from None

    def _laid(self, route: ForeignRoute, origin: int, destination: int) -> Path:
        """Our path of a route, which can be driven in the route's time."""
        path = laid_on(self.network, route.points, origin, destination, self.params.least_share)
        bounds = TimeBounds().on(self.network, path)
        least_s, greatest_s = float(bounds.least_s.sum()), float(bounds.greatest_s.sum())
        if not least_s <= route.duration_s <= greatest_s:
            length_km = path.length_m(self.network) / 1000
            raise MatchError(
                f"route from node {origin} to node {destination}: {length_km:.1f} km in "
                f"{route.duration_s:.0f} s cannot be driven; it takes {least_s:.0f} s to "
                f"{greatest_s:.0f} s"
            )
        return path

    def _no_way(self, origin: int, destination: int, code: str = "") -> UnreachableError:
        return UnreachableError(
            f"{self.service} finds no way from node {origin} to node {destination}{code}; "
            "check that both lie on roads open to cars"
        )


def joined(notes: Sequence[str]) -> str:
    """Distinct notes in one line, in order."""
    return "; ".join(dict.fromkeys(note for note in notes if note))

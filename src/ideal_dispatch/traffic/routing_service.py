"""What all routing services share: quotes on our own network, live or from a recording."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, Self, TypeVar

from ideal_dispatch.context.weather import utc_now
from ideal_dispatch.errors import InputError, TrafficServiceError, UnreachableError
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.traffic.answers import RecordedAnswers
from ideal_dispatch.traffic.foreign_route import LEAST_SHARE, ForeignRoute, check_duration, laid_on
from ideal_dispatch.traffic.service_client import ServiceClient

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteParams:
    """What every quote asks for.

    A route of which less than ``least_share`` can be laid on our network is an
    error. A moment within ``now_within_s`` of the present counts as now.
    """

    least_share: float = LEAST_SHARE
    now_within_s: float = 120.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.least_share <= 1.0:
            raise InputError(f"least_share {self.least_share}: a share from 0 to 1 is needed")
        if not self.now_within_s > 0:
            raise InputError("now_within_s must be more than zero")


Params = TypeVar("Params", bound=RouteParams)


class RoutingService(Generic[Params]):
    """A routing service that quotes on our own network, live or from recorded answers."""

    service: ClassVar[str]
    network: RoadNetwork
    params: Params

    def __init__(
        self,
        network: RoadNetwork,
        client: ServiceClient,
        params: Params | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.network, self.client, self._now = network, client, now
        self.params = self.usual() if params is None else params

    @classmethod
    def usual(cls) -> Params:
        """The parameters of a source that is given none."""
        raise NotImplementedError

    @classmethod
    def replayed(
        cls, network: RoadNetwork, answers: RecordedAnswers, params: Params | None = None
    ) -> Self:
        """A source that repeats recorded answers and asks no service."""
        return cls(network, ServiceClient(cls.service, answers=answers), params)

    def close(self) -> None:
        """Close open connections."""
        self.client.close()

    def describe(self) -> dict[str, Any]:
        """What a recording says about its source; without the key."""
        return {"engine": self.service, "live": self.client.live, **asdict(self.params)}

    def _read(self, read: Callable[[Any], Read], answer: Any) -> Read:
        """What ``read`` makes of an answer; its ``ValueError`` says what is wrong with it."""
        try:
            return read(answer)
        except ValueError as error:
            raise TrafficServiceError(
                f"{self.service}: the answer cannot be used: {error}"
            ) from None

    def _laid(self, route: ForeignRoute, origin: int, destination: int) -> Path:
        """Our path of a route, which can be driven in the route's time."""
        path = laid_on(self.network, route.points, origin, destination, self.params.least_share)
        check_duration(self.network, path, route.duration_s)
        return path

    def _no_way(self, origin: int, destination: int, code: str = "") -> UnreachableError:
        return UnreachableError(
            f"{self.service} finds no way from node {origin} to node {destination}{code}; "
            "check that both lie on roads open to cars"
        )

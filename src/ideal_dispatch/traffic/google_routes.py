"""Google Routes: live quotes of a commercial router with traffic.

It answers for now or later, never for the past: a past day can only be
replayed from answers recorded while it was the present.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context.weather import utc_now
from ideal_dispatch.errors import InputError, UnreachableError
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.traffic import google_messages as messages
from ideal_dispatch.traffic.answers import Question, RecordedAnswers
from ideal_dispatch.traffic.circuit import TrafficError, TrafficServiceError
from ideal_dispatch.traffic.foreign_route import (
    LEAST_SHARE,
    ForeignRoute,
    check_duration,
    check_question,
    first_edge_s,
    joined,
    laid_on,
)
from ideal_dispatch.traffic.google_messages import TrafficModel
from ideal_dispatch.traffic.service_client import Answering, Replayed, ServiceClient
from ideal_dispatch.traffic.source import RouteQuote

URL = "https://routes.googleapis.com"
SERVICE = "Google Routes"

Read = TypeVar("Read")


class SegmentTime(StrEnum):
    """How the time of the next segment is made, for Google gives none with traffic.

    ``STATIC_RATIO``: times of the steps without traffic, by the leg's ratio of
    time with traffic to time without; no further request. ``STOPOVER``: a
    second route that stops at the segment's end, and the time of its first leg.
    ``OWN_QUERY``: the segment as a route of its own.
    """

    STATIC_RATIO = "static_ratio"
    STOPOVER = "stopover"
    OWN_QUERY = "own_query"


@dataclass(frozen=True, slots=True)
class GoogleParams:
    """What a quote asks for.

    ``ranges`` asks for the optimistic and the pessimistic time too, each a
    request. A route of which less than ``least_share`` can be laid on our
    network is an error. A moment within ``now_within_s`` is now.
    """

    segment: SegmentTime = SegmentTime.STATIC_RATIO
    ranges: bool = True
    least_share: float = LEAST_SHARE
    now_within_s: float = 120.0

    def __post_init__(self) -> None:
        if self.segment not in set(SegmentTime):
            raise InputError(f"segment {self.segment!r}: one of {', '.join(SegmentTime)} is needed")
        object.__setattr__(self, "segment", SegmentTime(self.segment))
        if not 0.0 <= self.least_share <= 1.0:
            raise InputError(f"least_share {self.least_share}: a share from 0 to 1 is needed")
        if not self.now_within_s > 0:
            raise InputError("now_within_s must be more than zero")


class GoogleRoutes:
    """Quotes from Google Routes, on our own network.

    The paths of optimistic and pessimistic time may be other paths. When one of
    the further requests fails, the quote says so in ``fell_back`` and goes
    without; when the first fails, there is no quote. How old Google's data is,
    nobody says: ``data_age_s`` is NaN.
    """

    def __init__(
        self,
        network: RoadNetwork,
        client: Answering,
        params: GoogleParams | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.network, self.client = network, client
        self.params, self._now = params or GoogleParams(), now

    @classmethod
    def connect(
        cls,
        network: RoadNetwork,
        api_key: str,
        rng: np.random.Generator,
        params: GoogleParams | None = None,
        *,
        url: str = URL,
        now: Callable[[], datetime] = utc_now,
        **options: Any,
    ) -> "GoogleRoutes":
        """A live source; ``options`` are those of :class:`ServiceClient`."""
        if not api_key.strip() or not api_key.isascii() or not api_key.isprintable():
            raise InputError("Google Routes: the API key is empty or has odd characters")
        client = ServiceClient(
            SERVICE,
            url,
            rng,
            headers={"X-Goog-Api-Key": api_key.strip()},
            fields_header="X-Goog-FieldMask",
            **options,
        )
        return cls(network, client, params, now)

    @classmethod
    def replayed(
        cls, network: RoadNetwork, answers: RecordedAnswers, params: GoogleParams | None = None
    ) -> "GoogleRoutes":
        """A source that repeats recorded answers and asks nobody."""
        return cls(network, Replayed(SERVICE, answers), params)

    def close(self) -> None:
        """Give up open connections."""
        self.client.close()

    def describe(self) -> dict[str, Any]:
        """What a recording says about its source; without the key."""
        return {"engine": SERVICE, "live": self.client.live, **asdict(self.params)}

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """The fastest route with traffic, its times by the three traffic models."""
        check_question(self.network, origin, destination, at)
        if origin == destination:
            stay = self.network.path([], origin)
            return RouteQuote(stay, 0.0, 0.0, 0.0, 0.0, at, np.nan)
        deadline, ends = self.client.deadline(), (origin, destination)
        best = TrafficModel.BEST_GUESS
        route = self._ask(messages.read_route, ends, best, at, messages.ROUTE_FIELDS, deadline)
        path = laid_on(self.network, route.points, origin, destination, self.params.least_share)
        check_duration(self.network, path, route.duration_s)
        notes = [route.fell_back]
        segment_s = self._next_segment_s(path, route, at, deadline, notes)
        ranges = [np.nan, np.nan]
        if self.params.ranges:
            for i, model in enumerate((TrafficModel.OPTIMISTIC, TrafficModel.PESSIMISTIC)):
                ranges[i] = self._extra(
                    messages.read_duration, ends, model, at, messages.DURATION_FIELDS,
                    deadline, f"no {model.lower()} time", notes,
                )  # fmt: skip
        return RouteQuote(
            path=path,
            duration_s=route.duration_s,
            next_segment_s=segment_s,
            optimistic_s=ranges[0],
            pessimistic_s=ranges[1],
            asked_at=at,
            data_age_s=np.nan,
            fell_back=joined(notes),
        )

    def matrix(
        self,
        origins: Sequence[int],
        destinations: Sequence[int],
        at: datetime,
        model: TrafficModel = TrafficModel.BEST_GUESS,
    ) -> tuple[FloatArray, str]:
        """Seconds from each origin to each destination, infinite without a way.

        The second value says in words where Google fell back. Large matrices
        are asked for in blocks of :data:`~google_messages.MATRIX_LIMIT` elements.
        """
        if not len(origins) or not len(destinations):
            raise InputError("a matrix needs at least one origin and one destination")
        for node in origins:
            check_question(self.network, node, destinations[0], at)
        for node in destinations:
            check_question(self.network, origins[0], node, at)
        times = np.empty((len(origins), len(destinations)))
        notes = []
        departure = self._departure(at)
        columns = min(len(destinations), messages.MATRIX_LIMIT)
        rows = messages.MATRIX_LIMIT // columns
        for top in range(0, len(origins), rows):
            for left in range(0, len(destinations), columns):
                starts, ends = origins[top : top + rows], destinations[left : left + columns]
                body = messages.matrix_request(
                    [messages.place(self.network, node) for node in starts],
                    [messages.place(self.network, node) for node in ends],
                    model,
                    departure,
                )
                question = Question(messages.MATRIX, messages.MATRIX_FIELDS, body, at)
                cost = len(starts) * len(ends)
                answer = self.client.ask(question, self.client.deadline(), cost)
                try:
                    block, note = messages.read_matrix(answer, len(starts), len(ends))
                except ValueError as error:
                    raise _nonsense(error) from None
                times[top : top + rows, left : left + columns] = block
                notes.append(note)
        return times, joined(notes)

    def _next_segment_s(
        self,
        path: Path,
        route: messages.GoogleRoute,
        at: datetime,
        deadline: float,
        notes: list[str],
    ) -> float:
        with_traffic = ForeignRoute(
            route.points, route.duration_s, route.step_m, route.step_static_s * route.traffic_ratio
        )
        by_ratio_s, note = first_edge_s(self.network, path, with_traffic)
        way = self.params.segment
        if way is SegmentTime.STATIC_RATIO or len(path) <= 1:
            notes.append(note)
            return by_ratio_s
        end = int(self.network.head[path.edges[0]])
        if way is SegmentTime.STOPOVER:
            nodes = [path.origin, end, path.destination]
            read, fields = messages.read_first_leg, messages.LEG_FIELDS
        else:
            nodes = [path.origin, end]
            read, fields = messages.read_duration, messages.DURATION_FIELDS
        reason = f"no {way.value} time of the next segment, static_ratio used"
        segment_s = self._extra(
            read, nodes, TrafficModel.BEST_GUESS, at, fields, deadline, reason, notes
        )
        return by_ratio_s if np.isnan(segment_s) else segment_s

    def _extra(
        self,
        read: Callable[[Any], tuple[float, str] | None],
        nodes: Sequence[int],
        model: TrafficModel,
        at: datetime,
        fields: str,
        deadline: float,
        reason: str,
        notes: list[str],
    ) -> float:
        """A further time, or NaN and a note where it is refused, fails or was not recorded."""
        try:
            seconds, note = self._ask(read, nodes, model, at, fields, deadline)
        except (TrafficError, UnreachableError) as error:  # a used-up budget ends the run
            notes.append(f"{reason} ({error})")
            return np.nan
        notes.append(note)
        return seconds

    def _ask(
        self,
        read: Callable[[Any], Read | None],
        nodes: Sequence[int],
        model: TrafficModel,
        at: datetime,
        fields: str,
        deadline: float,
    ) -> Read:
        places = [messages.place(self.network, node) for node in nodes]
        body = messages.route_request(places, model, self._departure(at))
        answer = self.client.ask(Question(messages.ROUTES, fields, body, at), deadline)
        try:
            found = read(answer)
        except ValueError as error:
            raise _nonsense(error) from None
        if found is None:
            raise UnreachableError(
                f"{SERVICE} finds no way from node {nodes[0]} to node {nodes[-1]}; "
                "check that both lie on roads open to cars"
            )
        return found

    def _departure(self, at: datetime) -> datetime | None:
        """None for now: a now that is past on arrival is refused."""
        if not self.client.live:
            return None
        now, near = self._now(), timedelta(seconds=self.params.now_within_s)
        if at < now - near:
            raise InputError(
                f"{SERVICE} cannot be asked about {at.isoformat()}, which is past; "
                "replay answers recorded then"
            )
        return at if at > now + near else None


def _nonsense(error: ValueError) -> TrafficServiceError:
    return TrafficServiceError(f"{SERVICE}: the answer cannot be used: {error}")

"""Google Routes: live quotes of a commercial router with traffic.

It answers for now or later, never for the past: a past day can only be
replayed from answers recorded while it was the present.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import numpy as np

from ideal_dispatch.context.weather import utc_now
from ideal_dispatch.errors import InputError, TrafficError, UnreachableError
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.traffic import google_messages as messages
from ideal_dispatch.traffic.answers import Question
from ideal_dispatch.traffic.foreign_route import (
    ForeignRoute,
    check_question,
    first_edge_s,
    joined,
)
from ideal_dispatch.traffic.google_messages import TrafficModel
from ideal_dispatch.traffic.routing_service import Read, RouteParams, RoutingService
from ideal_dispatch.traffic.service_client import ServiceClient
from ideal_dispatch.traffic.source import RouteQuote

URL = "https://routes.googleapis.com"


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
class GoogleParams(RouteParams):
    """What a quote asks of Google.

    ``ranges`` asks for the optimistic and the pessimistic time too, each a request.
    """

    segment: SegmentTime = SegmentTime.STATIC_RATIO
    ranges: bool = True

    def __post_init__(self) -> None:
        RouteParams.__post_init__(self)
        if self.segment not in set(SegmentTime):
            raise InputError(f"segment {self.segment!r}: one of {', '.join(SegmentTime)} is needed")
        object.__setattr__(self, "segment", SegmentTime(self.segment))


class GoogleRoutes(RoutingService[GoogleParams]):
    """Quotes from Google Routes, on our own network.

    The paths of optimistic and pessimistic time may be other paths. When one of
    the further requests fails, the quote says so in ``fell_back`` and goes
    without. When the first fails, there is no quote. Google does not say how
    old its data is: ``data_age_s`` is NaN.
    """

    service = "Google Routes"
    usual = GoogleParams

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
            cls.service,
            url,
            rng,
            headers={"X-Goog-Api-Key": api_key.strip()},
            fields_header="X-Goog-FieldMask",
            **options,
        )
        return cls(network, client, params, now)

    def quote(self, origin: int, destination: int, at: datetime) -> RouteQuote:
        """The fastest route with traffic, its times by the three traffic models."""
        check_question(self.network, origin, destination, at)
        if origin == destination:
            stay = self.network.path([], origin)
            return RouteQuote(stay, 0.0, 0.0, 0.0, 0.0, at, np.nan)
        deadline, ends = self.client.deadline(), (origin, destination)
        best = TrafficModel.BEST_GUESS
        route, note = self._ask(
            messages.read_route, ends, best, at, messages.ROUTE_FIELDS, deadline
        )
        path = self._laid(route, origin, destination)
        notes = [note]
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

    def _next_segment_s(
        self,
        path: Path,
        route: ForeignRoute,
        at: datetime,
        deadline: float,
        notes: list[str],
    ) -> float:
        by_ratio_s, note = first_edge_s(self.network, path, route)
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
        found = self._read(read, answer)
        if found is None:
            raise self._no_way(nodes[0], nodes[-1])
        return found

    def _departure(self, at: datetime) -> datetime | None:
        """None for now: a now that is past on arrival is refused."""
        if not self.client.live:
            return None
        now, near = self._now(), timedelta(seconds=self.params.now_within_s)
        if at < now - near:
            raise InputError(
                f"{self.service} cannot be asked about {at.isoformat()}, which is past; "
                "replay answers recorded then"
            )
        return at if at > now + near else None

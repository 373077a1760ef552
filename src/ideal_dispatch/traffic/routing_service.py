"""What all routing services share: quotes on our own network, live or from recorded answers.

Recorded answers are files in a folder, one per question, named by a hash of the
question: what was asked, of which endpoint, and the moment. Keys and other
headers do not enter and are not written.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path as FilePath
from typing import Any, ClassVar

import numpy as np

from ideal_dispatch.arrays import whole_number
from ideal_dispatch.context.context import require_zone
from ideal_dispatch.context.weather import utc_now
from ideal_dispatch.errors import (
    FileFormatError,
    InputError,
    TrafficError,
    TrafficServiceError,
    UnreachableError,
)
from ideal_dispatch.files import write_file
from ideal_dispatch.network import Path, RoadNetwork
from ideal_dispatch.network.time_bounds import TimeBounds
from ideal_dispatch.outside_service import (
    HttpAnswer,
    NoAnswerError,
    OutsideService,
    RequestBudget,
    parsed,
    reason,
    refusal,
)
from ideal_dispatch.traffic.foreign_route import LEAST_SHARE, ForeignRoute, laid_on

NOW_WITHIN_S = 120.0
"""A moment so near the present counts as now."""

_SENT_TIMES = ("departureTime", "date_time")  # say the moment asked in a way the clock decides


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of an endpoint: ``body``, and of the answer only ``fields``, if any."""

    endpoint: str
    fields: str
    body: Mapping[str, Any]
    asked_at: datetime

    def as_json(self) -> dict[str, Any]:
        """All that tells one question from another."""
        return {
            "endpoint": self.endpoint,
            "fields": self.fields,
            "body": {k: v for k, v in self.body.items() if k not in _SENT_TIMES},
            "asked_at": self.asked_at.astimezone(UTC).isoformat(),
        }

    @property
    def key(self) -> str:
        """The name of its answer's file."""
        text = json.dumps(self.as_json(), sort_keys=True, allow_nan=False)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A status and the JSON that came with it, or how asking failed in the end."""

    status: int
    answer: Any
    failure: str = ""


class RecordedAnswers:
    """A folder of answers."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = FilePath(folder)
        if not self.folder.is_dir():
            raise InputError(f"{self.folder}: no such folder; create it first")

    def get(self, question: Question) -> StoredAnswer | None:
        """The answer recorded for this question, or None."""
        path = self._path(question)
        try:
            content = json.loads(path.read_bytes())
            asked = content["question"]
            answer = StoredAnswer(content["status"], content["answer"], content["failure"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise FileFormatError(f"{path}: damaged recorded answer; delete it") from None
        if asked != question.as_json():
            raise FileFormatError(f"{path}: answers another question; delete it")
        return answer

    def keep(self, question: Question, answer: StoredAnswer) -> None:
        """Record an answer in place of an earlier one to the same question."""
        content = {"question": question.as_json(), **asdict(answer)}
        text = json.dumps(content, sort_keys=True, allow_nan=False, indent=1)
        write_file(self._path(question), text + "\n")

    def _path(self, question: Question) -> FilePath:
        return self.folder / f"{question.key}.json"


class RefusedError(TrafficError):
    """A service understood a request and refuses it; ``body`` is the JSON it sent."""

    def __init__(self, text: str, body: Any) -> None:
        super().__init__(text)
        self.body = body


class RoutingService:
    """A routing service that quotes on our own network.

    Without a ``url`` it only repeats recorded answers. ``headers`` may hold a key:
    they are in no message, representation or recording, not even where the server
    repeats them. Answers go to ``answers`` where given, and good ones recorded
    there are not asked again. ``options`` are those of :class:`OutsideService`.
    ``usual`` makes the parameters of a source that is given none.
    """

    service: ClassVar[str]
    usual: ClassVar[type[Any]]
    params: Any

    def __init__(
        self,
        network: RoadNetwork,
        params: Any = None,
        *,
        url: str = "",
        headers: Mapping[str, str] | None = None,
        answers: RecordedAnswers | None = None,
        now: Callable[[], datetime] = utc_now,
        **options: Any,
    ) -> None:
        self.network, self.params = network, params or self.usual()
        self.url, self.live = url.rstrip("/"), bool(url)
        self._headers, self._answers, self._now = dict(headers or {}), answers, now
        self._outside = OutsideService(self.service, secrets=self._headers.values(), **options)

    @property
    def budget(self) -> RequestBudget:
        """How many requests were sent, and may be."""
        return self._outside.budget

    def close(self) -> None:
        """Close open connections."""
        self._outside.close()

    def describe(self) -> dict[str, Any]:
        """What a recording says about its source; without the key."""
        rules = {"least_share": LEAST_SHARE, "now_within_s": NOW_WITHIN_S}
        return {"engine": self.service, "live": self.live, **rules, **asdict(self.params)}

    def _ask(self, question: Question, deadline: float) -> Any:
        """The JSON of a good answer.

        :class:`RefusedError` where the service says no, :class:`TrafficServiceError`
        where it says nothing useful until ``deadline``, :class:`TrafficError`
        where answers come from a recording that has none.
        """
        stored = self._answers.get(question) if self._answers is not None else None
        if not self.live and stored is None:
            raise TrafficError(
                f"{self._answers and self._answers.folder}: no recorded answer to this "
                f"{question.endpoint} of {question.asked_at.isoformat()} (key {question.key}); "
                "record it with a live run"
            )
        if stored is None or (self.live and stored.status != 200):
            stored = self._asked(question, deadline)
            if self._answers is not None:
                self._answers.keep(question, stored)
        if stored.failure:
            raise TrafficServiceError(f"{self.service}: {stored.failure}")
        if stored.status != 200:
            raise RefusedError(
                f"{self.service}: refused with HTTP {stored.status}{reason(stored.answer)}; "
                "check the request, the key and the address",
                stored.answer,
            )
        return stored.answer

    def _asked(self, question: Question, deadline: float) -> StoredAnswer:
        headers = {"Content-Type": "application/json", **self._headers}
        if question.fields:
            headers["X-Goog-FieldMask"] = question.fields
        try:
            return self._outside.ask(
                _stored, "POST", f"{self.url}/{question.endpoint}", deadline=deadline,
                headers=headers, content=json.dumps(question.body, allow_nan=False).encode(),
            )  # fmt: skip
        except NoAnswerError as error:
            return StoredAnswer(0, None, str(error))

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
        path = laid_on(self.network, route.points, origin, destination)
        bounds = TimeBounds().on(self.network, path)
        least_s, greatest_s = float(bounds.least_s.sum()), float(bounds.greatest_s.sum())
        if not least_s <= route.duration_s <= greatest_s:
            length_km = path.length_m(self.network) / 1000
            raise TrafficError(
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


def _stored(answer: HttpAnswer) -> StoredAnswer:
    """An answer as it is kept; a refusal may come as anything."""
    good = answer.status == 200
    return StoredAnswer(answer.status, parsed(answer) if good else refusal(answer))

"""Answers on record, and whether they still hold."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ideal_dispatch.errors import IdealError
from ideal_dispatch.service.audit.record import Entry, canonical

PASSING = frozenset((
    "starting", "late", "solver_lost", "not_decided", "internal_error", "call_in_future", "no_unit",
    "last_unit_promised",
))  # fmt: skip
"""Why there was no advice, where there may be one a moment later."""

_AGAIN = re.compile(r"^again-(\d+):")  # callers' keys begin otherwise


class ExpiredError(IdealError):
    """An advice whose time is over."""


class SupersededError(IdealError):
    """An advice that a newer revision for the same call took the place of."""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """An answer on record, the key it was asked with, and a hash of the request.

    ``number`` is its row's, where that is known. A question is answered anew where its answer did
    not stand: such keys have the number of the attempt before the question's own key.
    """

    key: str
    digest: str
    answer: Mapping[str, Any]
    number: int | None = None

    @property
    def attempt(self) -> int:
        """How many answers to the same question there were with this one."""
        again = _AGAIN.match(self.key)
        return int(again[1]) if again else 1

    @property
    def question(self) -> str:
        """The key that the first answer to the same question has."""
        return _AGAIN.sub("", self.key)

    @property
    def next_key(self) -> str:
        """The key of another attempt after this one."""
        return f"again-{self.attempt + 1}:{self.question}"

    def stands(self, now: datetime) -> bool:
        """Whether it is still the answer: not once it expired, nor where its cause may pass."""
        codes = [reason["code"] for reason in self.answer["degraded"]][:1]
        may_pass = PASSING | {"unreachable"} if self.answer.get("closures") else PASSING
        passing = self.answer["decision"] == "no_advice" and not may_pass.isdisjoint(codes)
        return not passing and now < datetime.fromisoformat(self.answer["expires_at"])

    @classmethod
    def of(cls, entry: Entry, number: int | None = None) -> "RecordedAnswer":
        """What a recommendation's entry says."""
        return cls(entry.key or "", entry.body["request_sha256"], entry.body["answer"], number)


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer in memory, as the text on record.

    Python's garbage collector looks at every container, and nobody is answered meanwhile.
    """

    id: str
    key: str
    text: str

    @property
    def answered(self) -> RecordedAnswer:
        """The answer itself."""
        body = json.loads(self.text)
        return RecordedAnswer(self.key, body["request_sha256"], body["answer"])


def digest(request: Mapping[str, Any]) -> str:
    """A hash of a request; the same content, the same hash."""
    return hashlib.sha256(canonical(request).encode()).hexdigest()


def check_holds(
    advice: Mapping[str, Any], of_call: Iterable[Mapping[str, Any]], now: datetime
) -> None:
    """Refuse an advice that expired, or that others ``of_call`` are newer than."""
    newest = max(of_call, key=order, default=advice)
    if order(newest) > order(advice):
        raise SupersededError(
            f"call {advice['call_id']!r} has a newer advice, revision {newest['revision']}; "
            "answer that one"
        )
    if datetime.fromisoformat(advice["expires_at"]) <= now:
        raise ExpiredError(
            f"the advice for call {advice['call_id']!r} expired at {advice['expires_at']}; "
            "let the CAD ask again"
        )


def order(advice: Mapping[str, Any]) -> tuple[str, int, str]:
    """The one asked for later counts, also where its answer came first."""
    return asked_at(advice), advice["revision"], advice["created_at"]


def asked_at(advice: Mapping[str, Any]) -> str:
    """When it was asked for; old ones on record do not say it."""
    moment: str = advice.get("asked_at", advice["created_at"])
    return moment

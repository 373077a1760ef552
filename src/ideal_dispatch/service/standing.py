"""Whether an advice may still be answered: nobody accepts what no longer holds."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ideal_dispatch.errors import IdealError


class ExpiredError(IdealError):
    """An advice whose time is over."""


class SupersededError(IdealError):
    """An advice that a newer revision for the same call took the place of."""


def check_standing(
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

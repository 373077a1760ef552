"""Moments as the API writes them."""

from datetime import UTC, datetime


def moment_text(at: datetime) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

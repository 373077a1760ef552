"""Why a row cannot be used."""

import re
from collections import defaultdict

Reasons = defaultdict[int, list[str]]
"""Position in the table and why that row cannot be used."""

_DETAILS = {
    r" \(it looks like .*\)$": "",
    r"road is [\d.,]+ k?m away": "road is too far away",
    r"has \d+ cells where the header has \d+": "has more or fewer cells than the header",
    r"^depot .* is not in": "its depot is not in",
    r"taken apart into cells: .*": "taken apart into cells",
    r" for [\d]+ to [\d]+, not for \d+": " for other years only",
}
"""What differs from row to row in a reason, and what is said for all of them."""


def general(reason: str) -> str:
    """A reason without what differs from row to row."""
    for pattern, words in _DETAILS.items():
        reason = re.sub(pattern, words, reason)
    return reason

"""What a living city counted: how many calls, what was advised, what became of it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Tally:
    """Numbers of a run. ``refused`` are requests by the code of their refusal."""

    calls: int = 0
    waiting: int = 0
    decisions: Counter[str] = field(default_factory=Counter)
    replies: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    seconds: int = 0
    stood_down: int = 0
    first_by_second: int = 0
    news: int = 0
    ignored: int = 0
    latency_ms: list[float] = field(default_factory=list)

    def rows(self) -> Iterator[tuple[str, str]]:
        """The table: what, and how many."""
        yield "calls", str(self.calls)
        yield "calls that still wait for a unit", str(self.waiting)
        for decision in ("send_second", "primary_only", "no_advice"):
            yield f"advice: {decision}", str(self.decisions[decision])
        for reply, count in sorted(self.replies.items()):
            yield f"replies: {reply}", str(count)
        yield "seconds sent", str(self.seconds)
        yield "seconds stood down", str(self.stood_down)
        yield "first there was the second", str(self.first_by_second)
        yield "news of units taken", str(self.news)
        yield "news of units ignored", str(self.ignored)
        for why, count in sorted(self.refused.items()):
            yield f"refused: {why}", str(count)
        if self.latency_ms:
            for share in (50, 90, 99):
                ms = float(np.percentile(self.latency_ms, share))
                yield f"advice after, {share} % of calls", f"{ms:.0f} ms"

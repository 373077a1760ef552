"""A policy: who goes, and whether a second ambulance is worth it."""

from dataclasses import dataclass

import numpy as np

from ideal_dispatch import Assignment, ConstantThreshold, Decision, Situation, Threshold

CLOSE = ConstantThreshold(-45.0)


@dataclass(frozen=True, slots=True)
class CloseRace:
    """A second ambulance where the two shortest quotes are close, sooner at night.

    The score is minus the lead of the first over the second, in seconds; at
    night ``night_s`` are added.
    """

    night_s: float = 20.0
    threshold: Threshold = CLOSE
    name: str = "close-race"

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        """The primary, the second that was considered, a score and a threshold."""
        station = situation.fastest if situation.sent is None else situation.sent.station
        primary = situation.sent or Assignment(station, situation.quote(station).path)
        primary_s = situation.expected_s(primary.station, primary.path)
        limit_s = self.threshold.seconds(primary_s, situation.free_units)
        others = situation.others(primary.station)  # the shortest quote first
        if not others:
            return Decision(self.name, primary, None, 0.0, limit_s, "no other depot has a unit")
        quote = situation.quote(others[0])
        second = Assignment(others[0], quote.path)
        night = not 6 <= situation.context.at.hour < 22
        score_s = primary_s - quote.duration_s + (self.night_s if night else 0.0)
        reason = f"the second is {quote.duration_s - primary_s:.0f} s behind the first"
        return Decision(self.name, primary, second, score_s, limit_s, reason)

"""Policies that were fitted for each day without that day."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ideal_dispatch.dispatch.decision import Decision, Policy
from ideal_dispatch.dispatch.situation import Situation


@dataclass(frozen=True, slots=True)
class ByDay:
    """One policy by the date of the call."""

    name: str
    policies: Mapping[str, Policy]

    @property
    def role(self) -> str:
        """That of all of them."""
        return str(getattr(next(iter(self.policies.values())), "role", ""))

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        return self.policies[situation.incident.at.date().isoformat()].decide(situation, rng)

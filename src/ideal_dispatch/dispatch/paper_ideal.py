"""IDEAL as printed."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ideal_dispatch.arrays import whole_number
from ideal_dispatch.dispatch.candidate import primary_of
from ideal_dispatch.dispatch.decision import Decision, by_score
from ideal_dispatch.dispatch.scenario_gap import on_path, outlook_of, situation_gap
from ideal_dispatch.dispatch.situation import Situation
from ideal_dispatch.dispatch.threshold import AT_ZERO, Threshold
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast import Model
from ideal_dispatch.gap.optimistic_gap import Method

PREFIX = 5
"""Segments of the second path that are kept to before the router is asked again."""


@dataclass(frozen=True, slots=True)
class PaperIdeal:
    """The policy of [IDEAL] sections 2.2 and 6.1.2.

    The primary z₁ is the router's shortest route, or the ambulance that was
    already sent. Algorithm 2 (DCA) gives the gap over the model's scenario set of
    the context and the second path z₂, of which the first ``prefix`` segments are
    kept to; it may start at the primary's own depot and even be the primary's
    path. The threshold is taken at the model's nominal time of z₁.

    Unlike the paper, more than two depots are asked at once and not in pairs. The
    exact gap is the same; Algorithm 2 may find a smaller one. A depot counts only
    while it has a unit. Another ``method`` shows what a better gap is worth;
    "certified" proves it, or stops after ``time_limit_s`` with the best it has.
    ``form`` says in words which network and radius the model has.
    """

    role: ClassVar[str] = "paper"
    model_form: ClassVar[tuple[str, str]] = ("paper", "paper")
    model: Model
    threshold: Threshold = AT_ZERO
    prefix: int = PREFIX
    method: Method = "dca"
    time_limit_s: float | None = None
    form: str = ""
    name: str = "paper"

    def __post_init__(self) -> None:
        if whole_number(self.prefix, "prefix") < 0:
            raise InputError(f"prefix {self.prefix}: zero segments or more")

    def decide(self, situation: Situation, rng: np.random.Generator) -> Decision:
        primary = primary_of(situation)
        outlook = outlook_of(situation, self.model)
        gap = situation_gap(situation, outlook, primary, rng, self.method, self.time_limit_s)
        second, score_s = None, 0.0
        if gap is not None:
            second = on_path(situation, primary.station, gap.secondary, self.prefix)
            score_s = gap.lower_s
        made = by_score(
            self.name, situation, (primary, second), score_s, self.threshold, "gap",
            primary_s=primary.path.time_s(outlook.scenarios.nominal_times),
        )  # fmt: skip
        return replace(made, primary_by="model", outlook=outlook, gap=gap)

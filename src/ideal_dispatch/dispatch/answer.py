"""What is said about a call: a decision, what is doubtful about it, or why there is no advice.

Processes that answer calls and solve none load this: it imports no numerical module.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ideal_dispatch.dispatch.reasons import Reason, Remark, bounded, doubts, remarks

if TYPE_CHECKING:
    from ideal_dispatch.dispatch.decision import Decision
    from ideal_dispatch.dispatch.threshold import Threshold

Advice = Literal["send_second", "primary_only", "no_advice"]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A decision with what people must know beside it; the API and the command line show it.

    ``refusal`` says why there is no advice, and is None where there is one; a decision
    may still be there to show what was considered. ``threshold`` is the rule in words.
    """

    decision: "Decision | None"
    refusal: Reason | None = None
    reasons: tuple[Reason, ...] = ()
    threshold: str = ""

    @classmethod
    def of(
        cls, decision: "Decision", rule: "Threshold | None", reasons: Iterable[Reason] = ()
    ) -> "Answer":
        """The answer that a decision by a rule gives, with what was doubtful before it."""
        from ideal_dispatch.dispatch.threshold import ConstantThreshold

        words, situation = "", decision.about
        if rule is not None:
            primary, primary_s = decision.primary, decision.primary_s
            if primary_s is None:
                primary_s = situation.expected_s(primary.station, primary.path)
            told = getattr(rule, "words", ConstantThreshold(decision.threshold_s).words)
            words = told(primary_s, situation.free_units)
        return cls(decision, bounded(decision), (*reasons, *doubts(decision)), words)

    @classmethod
    def none(cls, refusal: Reason, reasons: Iterable[Reason] = ()) -> "Answer":
        """No advice, and why."""
        return cls(None, refusal, tuple(reasons))

    @property
    def advice(self) -> Advice:
        """The answer in a word."""
        if self.refusal is not None or self.decision is None:
            return "no_advice"
        return "send_second" if self.decision.send_second else "primary_only"

    @property
    def remarks(self) -> list[Remark]:
        """All reasons as they are shown: first the refusal, then the most serious."""
        first = [] if self.refusal is None else [self.refusal]
        return remarks(first) + remarks(one for one in self.reasons if one not in first)

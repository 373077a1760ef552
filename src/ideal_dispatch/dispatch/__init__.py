"""From what is known at a call to who drives: situations, policies, decisions, answers."""

from typing import TYPE_CHECKING

from ideal_dispatch.lazy import on_first_use

if TYPE_CHECKING:
    from ideal_dispatch.dispatch.answer import Answer
    from ideal_dispatch.dispatch.decision import Decision, Policy
    from ideal_dispatch.dispatch.policies import Ideal, decide
    from ideal_dispatch.dispatch.situation import (
        Assignment,
        Incident,
        Readiness,
        Situation,
        Station,
        observe,
    )

_NAMES = {
    "answer": ("Answer",),
    "decision": ("Decision", "Policy"),
    "policies": ("Ideal", "decide"),
    "situation": ("Assignment", "Incident", "Readiness", "Situation", "Station", "observe"),
}

__all__ = [
    "Answer", "Assignment", "Decision", "Ideal", "Incident", "Policy", "Readiness", "Situation",
    "Station", "decide", "observe",
]  # fmt: skip

# processes that answer calls and solve none load the answer and its reasons alone
__getattr__ = on_first_use(__name__, {name: home for home in _NAMES for name in _NAMES[home]})

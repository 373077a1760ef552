"""When the unit that will not be first is stood down."""

from typing import Literal

Recall = Literal["none", "first arrival", "worth", "live"]
RECALLS: tuple[Recall, ...] = ("none", "first arrival", "worth", "live")
"""Never; when the other one arrives; or as soon as what it may still save is below its price, by
what is known of every unit, or by where both are."""

UNSEEN = RECALLS[:3]
"""Those that need no positions: what is compared unless an experiment says otherwise."""


def check_s(recall: Recall) -> float:
    """The time between two looks at a pair on its way."""
    return 15.0 if recall == "live" else 30.0

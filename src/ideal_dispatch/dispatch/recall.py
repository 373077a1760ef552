"""When the unit that will not be first is stood down."""

from typing import Literal

Recall = Literal["none", "first arrival", "worth"]
RECALLS: tuple[Recall, ...] = ("none", "first arrival", "worth")
"""Never; when the other one arrives; or as soon as what it may still save is below its price."""

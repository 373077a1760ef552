"""Which numbers and words a setting may have, and the one line that refuses any other."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ideal_dispatch.errors import InputError


@dataclass(frozen=True, slots=True)
class Range:
    """The finite numbers from ``least`` to ``most``, or only the ``whole`` ones.

    Both ends count, unless ``above`` leaves out the first and ``below`` the last. ``why``, where
    given, ends the message to who gave a number outside.
    """

    least: float = 0
    most: float = math.inf
    above: bool = False
    below: bool = False
    whole: bool = False
    why: str = ""

    def check(self, value: Any, what: str) -> None:
        """Refuse a value outside, or one that is no number; ``what`` names it in the message."""
        kind: type[Any] = Integral if self.whole else Real
        if isinstance(value, bool) or not isinstance(value, kind):
            words = "a whole number" if self.whole else "a number"
            raise InputError(f"{what} {value!r}: {words} is needed")
        if not -math.inf < value < math.inf:
            raise InputError(f"{what} {value}: a finite number is needed")
        low = value < self.least or (self.above and value == self.least)
        if low or value > self.most or (self.below and value == self.most):
            raise InputError(f"{what} {value}: {self._words} is needed{self.why}")

    @property
    def _words(self) -> str:
        if self.most < math.inf and not self.above and not self.below:
            return f"{self.least} to {self.most}"
        least = f"{'more than' if self.above else 'at least'} {self.least}"
        if self.most < math.inf:
            return f"{least} and {'less than' if self.below else 'at most'} {self.most}"
        return "zero or more" if least == "at least 0" else least


ZERO_OR_MORE = Range()
POSITIVE = Range(above=True)
SHARE = Range(0, 1)
COUNT = Range(1, whole=True)
SEED = Range(0, 2**32 - 1, whole=True)


def check_numbers(settings: object, ranges: Mapping[str, Range], what: str = "") -> None:
    """Refuse the first of the named fields that is outside its range.

    ``what`` stands before the name of the field in the message.
    """
    for name, allowed in ranges.items():
        allowed.check(getattr(settings, name), what + name)


def check_choices(settings: object, what: str = "") -> None:
    """Refuse the first field that has none of the words its annotation lists (``Literal``)."""
    for name, wanted in get_type_hints(type(settings)).items():
        words = get_args(wanted) if get_origin(wanted) is Literal else ()
        value = getattr(settings, name)
        if words and value not in words:
            known = f"{', '.join(words[:-1])} or {words[-1]}"
            raise InputError(f"{what}{name} {value!r}: choose {known}")

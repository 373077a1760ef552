"""Which numbers and words a setting may have, and the one line that refuses any other."""

import math
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from ideal_dispatch.errors import InputError

UNIONS = (UnionType, Union)
"""What Python makes of ``X | None``: the second where X is an ``Annotated`` or a ``Literal``."""


@dataclass(frozen=True, slots=True)
class Range:
    """The finite numbers from ``least`` to ``most``, or only the ``whole`` ones.

    Both ends count, unless ``above`` leaves out the first and ``below`` the last. ``why``, where
    given, ends the message about a number outside.
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
COUNT = Range(1, whole=True)

Positive = Annotated[float, POSITIVE]
ZeroOrMore = Annotated[float, ZERO_OR_MORE]
Share = Annotated[float, Range(0, 1)]
Whole = Annotated[int, Range(whole=True)]
Count = Annotated[int, COUNT]
Seed = Annotated[int, Range(0, 2**32 - 1, whole=True)]


class Checked:
    """Settings that are checked by the annotations of their fields when they are made."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_fields(self)


def check_fields(settings: object, what: str = "") -> None:
    """Refuse the first field that its annotation does not allow.

    ``Annotated`` with a :class:`Range` says which numbers, ``Literal`` which words a field may
    have, and a tuple of them which items. ``what`` stands before the name in the message.
    """
    cls: Any = type(settings)
    for name, wanted in _annotations(cls).items():
        _check(getattr(settings, name), wanted, what + name)


@cache
def _annotations(cls: type[Any]) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _check(value: Any, wanted: Any, what: str) -> None:
    origin, arguments = get_origin(wanted), get_args(wanted)
    if origin in UNIONS and value is not None:
        _check(value, arguments[0], what)
    elif origin is Annotated:
        arguments[1].check(value, what)
    elif origin is tuple:
        for item in value:
            _check(item, arguments[0], what)
    elif origin is Literal and value not in arguments:
        known = f"{', '.join(arguments[:-1])} or {arguments[-1]}"
        raise InputError(f"{what} {value!r}: choose {known}")

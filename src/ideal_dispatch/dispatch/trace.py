"""One decision opened up: what each step made of what it was given, and how long it took."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

Facts = dict[str, Any]
"""What a step tells, by names that end in their unit: plain numbers and texts."""


@dataclass(slots=True, eq=False)
class Step:
    """A step with what it told, its seconds of wall time, and the steps inside it."""

    name: str
    facts: Facts = field(default_factory=dict)
    seconds: float = 0.0
    steps: list["Step"] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """All of it in plain values."""
        inside = {"steps": [step.as_dict() for step in self.steps]} if self.steps else {}
        return {"step": self.name, "seconds": round(self.seconds, 6), **self.facts, **inside}


class Trace:
    """The steps of one decision in the order in which they began.

    It goes along with the :class:`Situation`; whoever does something worth
    knowing wraps it in :meth:`step`. For one thread and one decision.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._inside = [self.steps]

    def step(self, name: str, told: Callable[[], Facts] = dict) -> AbstractContextManager[Facts]:
        """A step that lasts as long as the ``with`` block, which fills in its facts.

        ``told`` gives more of them at its end, and is called only where somebody traces.
        """
        return self._step(name, told)

    @contextmanager
    def _step(self, name: str, told: Callable[[], Facts]) -> Iterator[Facts]:
        step = Step(name)
        self._inside[-1].append(step)
        self._inside.append(step.steps)
        start = time.perf_counter()
        try:
            yield step.facts
        finally:
            step.seconds = time.perf_counter() - start
            self._inside.pop()
        step.facts |= told()


class _Untraced(Trace):
    """Keeps nothing: what decisions that nobody asked about carry along."""

    def step(self, name: str, told: Callable[[], Facts] = dict) -> AbstractContextManager[Facts]:
        return nullcontext({})


UNTRACED: Trace = _Untraced()

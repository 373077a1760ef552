"""Waiting for what another thread or process does."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 180.0

_Found = TypeVar("_Found")


def wait_for(condition: Callable[[], _Found], state: Callable[[], object] = lambda: "") -> _Found:
    """What the condition returns once it is true; ``state`` is shown where it never is."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, state()
        time.sleep(0.02)
    return found

"""Depots: named nodes where ambulances start."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import whole_number


@dataclass(frozen=True, slots=True)
class Depot:
    """An ambulance depot at a node of the network, or a unit that is on the road there.

    ``kind`` is that of its units, as a unit log names kinds; "" where it is not known. A unit
    on the road belongs to the depot ``home``, and has a share ``ahead`` of the ``edge`` that it
    is on to drive to the node. One that is ``rolling`` drives to the call already.
    """

    name: str
    node: int
    on_road: bool = False
    kind: str = ""
    home: str = ""
    edge: int | None = None
    ahead: float = 0.0
    rolling: bool = False

    def __str__(self) -> str:
        return f"depot {self.name} (node {self.node})"


Source = int | Depot
"""A node to start from, with or without a name."""


def as_sources(sources: Source | Sequence[Source]) -> list[Source]:
    """One source or several, as a list."""
    given = sources.tolist() if isinstance(sources, np.ndarray) else sources
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]


def describe(source: Source) -> str:
    """The source as it is named in messages."""
    return str(source) if isinstance(source, Depot) else f"node {source}"


def source_node(source: Source, what: str = "source") -> int:
    """The node of a source."""
    return whole_number(source.node if isinstance(source, Depot) else source, what)

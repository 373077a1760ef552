"""Depots: named nodes where ambulances start, and the names and aliases that people use."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from ideal_dispatch.arrays import whole_number
from ideal_dispatch.errors import InputError
from ideal_dispatch.toml_tables import complaints_about

_NAMED = 5


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
    """The name of the source in messages."""
    return str(source) if isinstance(source, Depot) else f"node {source}"


def source_node(source: Source, what: str = "source") -> int:
    """The node of a source."""
    return whole_number(source.node if isinstance(source, Depot) else source, what)


# --- names ------------------------------------------------------------------------


def listed(names: Iterable[str]) -> str:
    """Names in words; of many the first."""
    given = list(names)
    return f"{', '.join(given[:_NAMED])}{', …' if len(given) > _NAMED else ''}"


def alike(word: str, known: Iterable[str]) -> list[str]:
    """The names that ``word`` may mean; capitals matter only where two differ in nothing else."""
    folded = [one for one in known if one.casefold() == word.casefold()]
    return [word] if word in folded else folded


def no_such_depot(word: str, depots: Iterable[str]) -> InputError:
    """The error for an unknown depot name; it proposes the nearest name."""
    names = list(depots)
    near = get_close_matches(word, names, 1)
    advice = f"did you mean {near[0]}?" if near else f"there are {listed(names)}"
    return InputError(f"depot {word[:40]}: no such depot; {advice}")


class DepotNames:
    """Finds depots by name or alias."""

    def __init__(self, names: Iterable[str], aliases: Mapping[str, str]) -> None:
        self._names = {name: name for name in names}
        for alias, name in aliases.items():
            with complaints_about(f"[city.aliases] {alias}"):
                depot = self.find(name)
                if self._names.setdefault(alias, depot) != depot:
                    raise InputError("another depot has this name; choose another alias")

    def knows(self, word: str) -> bool:
        """Whether exactly one depot is meant."""
        return len(self._meant(word)) == 1

    def find(self, word: str) -> str:
        """The name of the depot that is meant, or an error that names the candidates."""
        meant = self._meant(word)
        if len(meant) > 1:
            raise InputError(f"depot {word!r} may be {' or '.join(meant)}; mind the capitals")
        if not meant:
            raise no_such_depot(word, dict.fromkeys(self._names.values()))
        return meant[0]

    def _meant(self, word: str) -> list[str]:
        return sorted({self._names[one] for one in alike(word, self._names)})

"""Depots by the names and aliases that callers use."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from ideal_dispatch.errors import InputError

_NAMED = 5


def listed(names: Iterable[str]) -> str:
    """Names in words; of many the first."""
    given = list(names)
    return f"{', '.join(given[:_NAMED])}{', …' if len(given) > _NAMED else ''}"


class DepotNames:
    """Finds depots by name or alias; capitals matter only where names differ in nothing else."""

    def __init__(self, names: Iterable[str], aliases: Mapping[str, str]) -> None:
        self._names = list(names)
        self._exact = {name: name for name in self._names}
        for alias, name in aliases.items():
            if name not in self._names:
                raise InputError(f"[city.aliases] {alias}: {self._unknown(name)}")
            if self._exact.setdefault(alias, name) != name:
                raise InputError(
                    f"[city.aliases] {alias}: another depot has this name; choose another alias"
                )
        self._folded: dict[str, set[str]] = {}
        for word, name in self._exact.items():
            self._folded.setdefault(word.casefold(), set()).add(name)

    def knows(self, word: str) -> bool:
        """Whether exactly one depot is meant."""
        return len(self._meant(word)) == 1

    def find(self, word: str) -> str:
        """The name of the depot that is meant, or an error that names the candidates."""
        meant = self._meant(word)
        if not meant:
            raise InputError(self._unknown(word))
        if len(meant) > 1:
            raise InputError(f"depot {word!r} may be {' or '.join(meant)}; mind the capitals")
        return meant[0]

    def _meant(self, word: str) -> list[str]:
        if word in self._exact:
            return [self._exact[word]]
        return sorted(self._folded.get(word.casefold(), ()))

    def _unknown(self, word: str) -> str:
        near = get_close_matches(word, self._names, 1)
        advice = f"did you mean {near[0]}?" if near else f"there are {listed(self._names)}"
        return f"no depot is called {word!r}; {advice}"

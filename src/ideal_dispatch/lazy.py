"""Names of a package that are imported on first use: a small command starts at once."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_first_use(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's ``__getattr__``: ``homes`` says in which of its modules each name is.

    A home such as ``"run:replay"`` says that the name is another one there.
    """

    def found(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, other = homes[name].partition(":")
        return getattr(import_module(f"{package}.{module}"), other or name)

    return found

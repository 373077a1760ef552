"""Plug-in classes: found by a registered name or as ``"module:Name"``, and made.

A package registers its classes as entry points of the groups below. Without
any registration a class is named by its module, which must be on the Python
path or in the working directory. See ``docs/plugins.md``.
"""

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import PurePath
from traceback import extract_tb
from typing import Any, TypeVar

from ideal_dispatch.errors import IdealError, InputError, PluginError
from ideal_dispatch.toml_tables import checked_value, refuse_unknown

POLICIES = "ideal_dispatch.policies"
TRAFFIC_SOURCES = "ideal_dispatch.traffic_sources"
WEATHER = "ideal_dispatch.weather"

_T = TypeVar("_T")


def load_plugin(
    group: str,
    asked: Any,
    options: Mapping[str, Any],
    where: str,
    protocol: type[_T],
    own: Iterable[str] = (),
    **offered: Any,
) -> _T:
    """An object of the class that ``asked`` names: see :func:`find_plugin`, :func:`make_plugin`.

    ``where`` is the key of the file that asks; ``options`` are in the same table.
    """
    table = where.rpartition(".")[0]
    found = find_plugin(group, asked, own, where)
    made = make_plugin(found, options, f"{table}.options", **offered)
    if not isinstance(made, protocol):
        raise InputError(f"{where} {asked!r}: not a {protocol.__name__}; see docs/plugins.md")
    return made


def find_plugin(group: str, asked: Any, own: Iterable[str], where: str) -> Callable[..., Any]:
    """The class or function that ``asked`` names in a group; ``own`` names are ours.

    ``where`` is the key of the file that asks, for the error.
    """
    check_name(group, asked, own, where)
    found = [entry for entry in entry_points(group=group) if entry.name == asked]
    if len(found) > 1:
        packages = " and ".join(entry.dist.name if entry.dist else "?" for entry in found)
        raise InputError(f'{where} {asked!r}: registered by {packages}; name it as "module:Name"')
    made = _imported(found[0].value if found else asked, f"{where} {asked!r}")
    if not callable(made):
        raise InputError(f"{where} {asked!r}: it is no class or function, but {made!r}")
    return made  # type: ignore[no-any-return]


def check_name(group: str, asked: Any, own: Iterable[str], where: str) -> None:
    """Refuse what is neither ours, nor registered in the group, nor a ``"module:Name"``."""
    known = [*own, *sorted({entry.name for entry in entry_points(group=group)})]
    if not isinstance(asked, str) or (asked not in known and ":" not in asked):
        choice = f"choose one of {', '.join(known)}, or name" if known else "name"
        raise InputError(f'{where} {asked!r}: {choice} a class as "module:Name"')


def parameters(made_by: Callable[..., Any]) -> dict[str, bool]:
    """The keyword arguments of a constructor, and whether each must be given."""
    try:
        known = inspect.signature(made_by).parameters
    except ValueError:  # some that are written in C
        name = getattr(made_by, "__qualname__", made_by)
        raise InputError(
            f"{name}: its arguments cannot be inspected; write a class in Python"
        ) from None
    return {
        name: parameter.default is parameter.empty
        for name, parameter in known.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }


def make_plugin(
    made_by: Callable[..., Any], table: Mapping[str, Any], where: str, **offered: Any
) -> Any:
    """An object from the keys of its table, and of what is ``offered`` all that it names.

    Keys are checked by the annotations of the constructor. Every complaint
    names its key, and a fault of foreign code its type.
    """
    known = parameters(made_by)
    given = {name: value for name, value in offered.items() if name in known}
    open_names = [name for name in known if name not in given]
    refuse_unknown(table, open_names, where)
    missing = [name for name in open_names if known[name] and name not in table]
    if missing:
        raise InputError(f"{where}.{missing[0]} is missing")
    try:
        signed = inspect.signature(made_by, eval_str=True).parameters
        hints = {name: parameter.annotation for name, parameter in signed.items()}
    except NameError:  # of what only a type checker imports
        hints = {}
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise InputError(f"[{where}] its annotations cannot be read: {why}") from error
    values = {
        name: checked_value(value, hints.get(name), f"{where}.{name}")
        for name, value in table.items()
    }
    try:
        return made_by(**given, **values)
    except IdealError as error:
        raise InputError(f"[{where}] {error}") from None
    except Exception as error:
        raise InputError(f"[{where}] cannot be made: {type(error).__name__}: {error}") from error


def ask_plugin(
    who: str, method: Callable[..., Any], *question: Any, check: Callable[..., _T]
) -> _T:
    """What ``check`` makes of the answer of a plug-in's method, and of the question.

    An :class:`IdealError` of the method means that it has no answer. Any other
    exception, and an answer that ``check`` refuses, is its bug: a :class:`PluginError`.
    """
    cause: Exception | None = None
    try:
        answer = method(*question)
    except IdealError:
        raise
    except Exception as error:
        cause, wrong = error, f"{type(error).__name__}: {error}"
    else:
        try:
            return check(answer, *question)
        except (InputError, TypeError, ValueError) as error:
            wrong = f"{method.__name__}() gives what cannot be used: {error}"
    raise PluginError(" ".join(f"{who}: {wrong}{place_of(method, cause)}".split())) from cause


def place_of(method: Callable[..., Any], error: Exception | None) -> str:
    """File and line of a plug-in's own code: where it failed, or where the method begins."""
    code = getattr(method, "__code__", None)
    if code is None:
        return ""
    frames = extract_tb(None if error is None else error.__traceback__)
    lines = [one.lineno for one in frames if one.filename == code.co_filename]
    line = lines[-1] if lines else code.co_firstlineno
    return f" ({PurePath(code.co_filename).name}, line {line})"


def _imported(target: str, what: str) -> Any:
    without_extras = target.partition("[")[0]
    module, _, name = (part.strip() for part in without_extras.partition(":"))
    if not module or not name or " " in module:
        raise InputError(f'{what}: {target!r} is not of the form "module:Name"')
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # last, where it hides nothing
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return found
    except ModuleNotFoundError as error:
        if error.name is not None and not f"{module}.".startswith(f"{error.name}."):
            raise InputError(f"{what}: module {module} needs {error.name}; install it") from error
        raise InputError(
            f"{what}: there is no module {error.name}; install its package, or put it on "
            "PYTHONPATH or into the working directory"
        ) from None
    except AttributeError as error:
        raise InputError(f"{what}: {error}") from None
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {error}"
        raise InputError(f"{what}: module {module} fails at import ({why})") from error

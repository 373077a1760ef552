"""TOML files read, and their tables turned into frozen dataclasses, checked by annotation."""

import math
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from ideal_dispatch.errors import FileFormatError, InputError, PluginError
from ideal_dispatch.files import check_source
from ideal_dispatch.ranges import UNIONS

_T = TypeVar("_T")
_PLAIN: Mapping[Any, str] = {str: "a text", bool: "true or false", int: "a whole number"}


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The tables of a file, or one line that says why the file cannot be read."""
    check_source(path)
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{os.fspath(path)}: not TOML: {error}") from None


@contextmanager
def complaints_about(what: str | os.PathLike[str]) -> Iterator[None]:
    """Every complaint begins with the name of the file or its part, where there is one."""
    try:
        yield
    except (InputError, PluginError) as error:
        raise InputError(f"{os.fspath(what)}: {error}" if what else str(error)) from None


def built(cls: type[_T], table: Any, where: str, **given: Any) -> _T:
    """A settings dataclass from a TOML table; every complaint names its key."""
    if not isinstance(table, Mapping):
        raise InputError(f"[{where}] must be a table of keys, not {table!r}")
    known = [f for f in fields(cls) if f.name not in given]  # type: ignore[arg-type]
    refuse_unknown(table, [f.name for f in known], where)
    values = dict(given)
    for item in known:
        key = f"{where}.{item.name}" if where else item.name
        if item.name in table:
            values[item.name] = checked_value(table[item.name], item.type, key)
        elif item.default is MISSING and item.default_factory is MISSING:
            what = f"[{key}]" if is_dataclass(item.type) else key
            raise InputError(f"{what} is missing")
    try:
        return cls(**values)
    except InputError as error:
        raise InputError(f"[{where}] {error}" if where else str(error)) from None


def checked_value(value: Any, wanted: Any, key: str) -> Any:
    """``value`` in the form that the annotation ``wanted`` asks for, or unchanged for any other."""
    if is_dataclass(wanted):
        return built(wanted, value, key)  # type: ignore[arg-type]
    origin, arguments = get_origin(wanted), get_args(wanted)
    if value is None and origin in UNIONS:
        return None
    if origin in (*UNIONS, Annotated):  # the range is checked with the whole
        return checked_value(value, arguments[0], key)
    if origin is Literal:
        known = ", ".join(map(repr, arguments))
        require(value in arguments, f"{key} {value!r}: one of {known} is needed")
        return value
    if origin is tuple:
        items = [value] if isinstance(value, str) else value
        require(isinstance(items, list), f"{key} {value!r}: a list is needed")
        return tuple(checked_value(item, arguments[0], key) for item in items)
    if origin is Mapping:
        require(isinstance(value, Mapping), f"{key} {value!r}: a table of names is needed")
        return {
            name: checked_value(item, arguments[1], f"{key}.{name}") for name, item in value.items()
        }
    if wanted is float:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        require(number and math.isfinite(value), f"{key} {value!r}: a number is needed")
        return float(value)
    if wanted not in _PLAIN:
        return value
    exact = isinstance(value, wanted) and not (wanted is int and isinstance(value, bool))
    require(exact, f"{key} {value!r}: {_PLAIN[wanted]} is needed")
    return value


def refuse_unknown(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """Refuse unknown keys, and name the nearest known one."""
    for name in table:
        if name not in known:
            near = get_close_matches(name, known, 1)
            advice = f"did you mean {near[0]}?" if near else f"known: {', '.join(known) or 'none'}"
            raise InputError(f"{f'{where}.' if where else ''}{name} is not known; {advice}")


def require(condition: bool, message: str) -> None:
    """Raise an :class:`InputError` unless ``condition`` holds."""
    if not condition:
        raise InputError(message)

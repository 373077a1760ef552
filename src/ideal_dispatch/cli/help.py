"""Builds Typer's options from docstrings, which hold the text of every ``--help``.

A command's docstring says what it does, then has a line for each option, then examples.
Values are named by words (FILE, SECONDS) rather than by types.
"""

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_args, get_origin

import typer
from typer.models import CommandFunctionType as Function

from ideal_dispatch.ranges import UNIONS

SPECIAL = "For specialists"
"""Heading of options that few people need, as their ``rich_help_panel``."""

_SHARED = f"""\
Options:
  -o, --output FOLDER  The folder to write to.
  --network FILE  Your city's .network file; the embedded city by default.
  --depots FILE  A .csv of depots, columns name, lon and lat; needed with --network.
  --seed NUMBER  Start of all random draws: another number, another result.
  --jobs NUMBER  Processor cores to use; all of them by default.
  --force  Overwrite what is there already.

{SPECIAL}:
  --cluster HOST:PORT  Work on many machines: the scheduler of a dask cluster.
"""
"""Options of several commands, where they say nothing else."""

_SECTION = rf"\n\n(?=(?:Options|{SPECIAL}|Examples?):\n)"


class CommandLine(typer.Typer):
    """A group of commands, each described by its docstring."""

    def __init__(self, help: str, **settings: Any) -> None:  # noqa: A002
        super().__init__(
            help=help,
            add_completion=False,
            no_args_is_help=True,
            pretty_exceptions_enable=False,
            rich_markup_mode="markdown",
            **settings,
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Function], Function]:
        """Add a function as a command, with what its docstring says.

        The options of the docstring stand under ``Options:`` and ``For specialists:``,
        as in ``-o, --output FILE  The file to write.`` An option belongs to the parameter
        of its name, with or without ``_``, ``_file`` or ``_folder`` at the end. Words
        without a dash describe the other parameters, in their order. A number's limits
        are those of its type, as in :mod:`ideal_dispatch.ranges`. The fields of a dataclass
        are options, too; its docstring may describe them, for several commands at once.
        """
        add = super().command

        def added(function: Function) -> Function:
            run, text, examples = described(function)
            add(name, help=text, epilog=as_code(examples), **settings)(run)
            return function

        return added


def as_code(examples: str) -> str:
    """A heading and the lines below it, as Markdown that keeps the lines."""
    heading, _, lines = examples.partition("\n")
    return f"{heading}\n```text\n{inspect.cleandoc(lines)}\n```"


def _entries(sections: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is said of each option, with its name, and of each argument, without one."""
    for section in sections:
        title, _, body = section.partition(":\n")
        for entry in re.split(r"\n(?=  \S)", body):
            head, _, text = entry.strip().partition("  ")
            names = [word.rstrip(",") for word in head.split() if word.startswith("-")]
            value = [word for word in head.split() if not word.startswith("-")]
            name = re.sub("^-+|/.*", "", names[-1]).replace("-", "_") if names else ""
            about = {
                "param_decls": names,
                "metavar": value[0] if value else "" if names else None,  # a flag takes no value
                "help": " ".join(text.split()),
                "rich_help_panel": SPECIAL if title == SPECIAL else None,
            }
            yield name, about


def described(function: Callable[..., Any]) -> tuple[Callable[..., Any], str, str]:
    """The function with Typer's descriptions of its parameters, its text and its examples."""
    text, *sections, examples = re.split(_SECTION, inspect.getdoc(function) or "")
    groups: dict[str, Any] = {}
    flat: list[inspect.Parameter] = []
    for one in inspect.signature(function).parameters.values():
        if is_dataclass(one.annotation):
            groups[one.name] = one.annotation
            flat += inspect.signature(groups[one.name]).parameters.values()
            sections += re.split(_SECTION, inspect.getdoc(one.annotation) or "")[1:]
        else:
            flat.append(one)
    told = list(_entries(sections))
    own = {name: about for name, about in told if name}
    options = dict(_entries(re.split(_SECTION, _SHARED))) | own
    arguments = [about for name, about in told if not name]
    parameters = []
    for one in flat:
        if one.annotation is not typer.Context:
            name = re.sub("_(file|folder)?$", "", one.name)
            own.pop(name, None)
            if name not in options and not arguments:
                raise TypeError(f"{function.__name__}: its docstring does not describe {one.name}")
            info: Any = typer.Option() if name in options else typer.Argument()
            vars(info).update(options[name] if name in options else arguments.pop(0))
            info.default = ... if one.default is one.empty else one.default
            kind, (info.min, info.max) = _limits(one.annotation)
            one = one.replace(annotation=kind, default=info)
        parameters.append(one.replace(kind=one.KEYWORD_ONLY))
    if own or arguments:
        raise TypeError(f"{function.__name__} has no parameter for {[*own, *arguments]}")

    @wraps(function)
    def run(**told: Any) -> Any:
        for name, group in groups.items():
            names = [field.name for field in fields(group) if field.name in told]
            told[name] = group(**{field: told.pop(field) for field in names})
        return function(**told)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run, text, examples


def _limits(wanted: Any) -> tuple[Any, tuple[float | None, float | None]]:
    """A parameter's type, and the least and the most that its range allows."""
    number = get_args(wanted)[0] if get_origin(wanted) in UNIONS else wanted
    if get_origin(number) is not Annotated:
        return wanted, (None, None)
    kind, limits = get_args(number)
    return kind, (limits.least, limits.most if limits.most < math.inf else None)

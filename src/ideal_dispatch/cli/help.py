"""How ``--help`` reads: for people who do not program, in eighty columns.

A command's docstring is its help: what it does, a line for each option, examples.
On the screen, what must be given comes before what may be, values have words
(FILE, SECONDS) rather than types, and examples stand as they are typed.
"""

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandFunctionType as Function

from ideal_dispatch.ranges import UNIONS

if TYPE_CHECKING:
    from rich.console import RenderableType

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

_GIVEN, _OPTIONAL, _COMMANDS = "You give", "You may give", "Commands"
_SECTION = rf"\n\n(?=(?:Options|{SPECIAL}|Examples?):\n)"
_WIDEST = 100
_HELP = "Show this text and exit."


class _ForPeople:
    """What prints the help of a command or of a group of commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from rich.console import Group

        from ideal_dispatch.cli.terminal import out

        with out.capture() as captured:
            out.print(Group(*_parts(self, ctx)), width=min(out.width, _WIDEST))
        formatter.write("\n".join(line.rstrip() for line in captured.get().splitlines()))


class Command(_ForPeople, TyperCommand):
    """A command with a help for people."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What must be given, then that there is more."""
        arguments, options = [], []
        for one in self.get_params(ctx):
            if one.param_type_name == "argument":
                arguments.append(f"{one.metavar}" if one.required else f"[{one.metavar}]")
            elif one.required:
                options.append(f"{min(one.opts, key=len)} {one.metavar}")
        return [*arguments, *options, "[options]"]


class Commands(_ForPeople, TyperGroup):
    """A group of commands with a help for people, shown where no command is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["COMMAND", "..."]


class CommandLine(typer.Typer):
    """Commands, every one of them with a help for people."""

    def __init__(self, help: str, *, cls: type[TyperGroup] = Commands, **settings: Any) -> None:  # noqa: A002
        super().__init__(
            help=help, cls=cls, add_completion=False, pretty_exceptions_enable=False, **settings
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
            add(name, cls=Command, help=text, epilog=examples, **settings)(run)
            return function

        return added


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
                "metavar": value[0] if value else None,
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


def _parts(command: Any, ctx: Any) -> "Iterator[RenderableType]":
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    usage = " ".join(command.collect_usage_pieces(ctx))
    yield Text.assemble(("Usage: ", "bold"), f"{ctx.command_path} {usage}")
    for paragraph in (command.help or "").strip().split("\n\n"):
        yield Text("\n" + " ".join(paragraph.split()))
    sections = _sections(command, ctx)
    left = max(len(name) for rows in sections.values() for name, _ in rows)
    for title, rows in sections.items():
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="cyan", no_wrap=True, min_width=left)
        grid.add_column()
        for row in rows:
            grid.add_row(*map(Text, row))
        yield Text(f"\n{title}:", style="bold")
        yield Padding(grid, (0, 0, 0, 2))
    yield Text("\n" + (command.epilog or _examples(command, ctx)).strip("\n"))


def _examples(group: Any, ctx: Any) -> str:
    """The first example of every command of a group."""
    commands = [group.get_command(ctx, name) for name in group.list_commands(ctx)]
    first = [re.match(r".*:\n((?:.*\\\n)*.*)", command.epilog) for command in commands]
    return "\n".join(["Examples:", *(found[1] for found in first if found)])


def _sections(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    """Rows of names and texts by heading."""
    sections: dict[str, list[tuple[str, str]]]
    sections = {_COMMANDS: [], _GIVEN: [], _OPTIONAL: [], SPECIAL: []}
    for name in command.list_commands(ctx) if isinstance(command, TyperGroup) else ():
        told = command.get_command(ctx, name).help.split("\n\n")[0]
        sections[_COMMANDS].append((name, " ".join(told.split())))
    for one in command.get_params(ctx):
        title = _GIVEN if one.required else one.rich_help_panel or _OPTIONAL
        sections[title].append((_name(one), _text(one)))
    return {title: rows for title, rows in sections.items() if rows}


def _name(one: Any) -> str:
    if one.param_type_name == "argument":
        return str(one.metavar)
    names = ", ".join(sorted(one.opts, key=len))
    if one.is_flag:
        return " / ".join([names, *one.secondary_opts])
    return f"{names} {one.metavar}"


def _text(one: Any) -> str:
    if one.name == "help":
        return _HELP
    told = one.param_type_name == "argument" or one.is_flag or one.default in (None, [])
    return str(one.help) if told else f"{one.help} [default: {one.default}]"

"""How ``--help`` reads: for people who do not program, in eighty columns.

A command's docstring is its help: what it does, a line for each option, examples.
On the screen, what must be given comes before what may be, values have words
(FILE, SECONDS) rather than types, and examples stand as they are typed.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from functools import wraps
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandFunctionType as Function

if TYPE_CHECKING:
    from rich.console import RenderableType

SPECIAL = "For specialists"
"""Heading of options that few people need, as their ``rich_help_panel``."""

_GIVEN, _OPTIONAL, _COMMANDS = "You give", "You may give", "Commands"
_SECTION = rf"\n\n(?=(?:Options|{SPECIAL}|Examples?):\n)"
_WIDEST = 100
_HELP = "Show this text and exit."


class Command(TyperCommand):
    """A command with a help for people."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return _usage(self.get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(_rendered(self, ctx))


class Commands(TyperGroup):
    """A group of commands with a help for people, shown where no command is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["COMMAND", "..."]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(_rendered(self, ctx))


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
        without a dash describe the other parameters, in their order. What is not
        described there has an :class:`Annotated` type of :mod:`ideal_dispatch.cli.options`.
        """
        add = super().command

        def added(function: Function) -> Function:
            text, *options, examples = re.split(_SECTION, inspect.getdoc(function) or "")
            run = _described(function, options)
            add(name, cls=Command, help=text, epilog=examples, **settings)(run)
            return function

        return added


def _described(function: Callable[..., Any], sections: list[str]) -> Callable[..., Any]:
    """The function with Typer's descriptions of its parameters, from the docstring."""
    options: dict[str, dict[str, Any]] = {}
    arguments: list[dict[str, Any]] = []
    for section in sections:
        title, _, body = section.partition(":\n")
        for entry in re.split(r"\n(?=  \S)", body):
            head, _, text = entry.strip().partition("  ")
            names = [word.rstrip(",") for word in head.split() if word.startswith("-")]
            value = [word for word in head.split() if not word.startswith("-")]
            about = {"param_decls": names, "metavar": "".join(value) or None,
                     "help": " ".join(text.split()),
                     "rich_help_panel": SPECIAL if title == SPECIAL else None}  # fmt: skip
            if names:
                options[re.sub("^-+|/.*", "", names[-1]).replace("-", "_")] = about
            else:
                arguments.append(about)
    parameters = []
    for one in inspect.signature(function).parameters.values():
        known = next(iter(getattr(one.annotation, "__metadata__", ())), None)
        if one.annotation is not typer.Context and not getattr(known, "help", None):
            told = options.pop(re.sub("_(file|folder)?$", "", one.name), None)
            info = copy(known) or (typer.Argument() if told is None else typer.Option())
            vars(info).update(told or arguments.pop(0))
            info.default = ... if one.default is one.empty else one.default
            kind = one.annotation if known is None else one.annotation.__origin__
            one = one.replace(annotation=kind, default=info)
        parameters.append(one.replace(kind=one.KEYWORD_ONLY))
    if options or arguments:
        raise TypeError(f"{function.__name__} has no parameter for {[*options, *arguments]}")

    @wraps(function)
    def run(**told: Any) -> Any:
        return function(**told)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _usage(params: Iterable[Any]) -> list[str]:
    """What must be given, then that there is more."""
    arguments, options = [], []
    for one in params:
        if one.param_type_name == "argument":
            arguments.append(one.metavar if one.required else f"[{one.metavar}]")
        elif one.required:
            options.append(f"{min(one.opts, key=len)} {one.metavar}")
    return [*arguments, *options, "[options]"]


def _rendered(command: Any, ctx: Any) -> str:
    from rich.console import Group

    from ideal_dispatch.cli.terminal import out

    with out.capture() as captured:
        out.print(Group(*_parts(command, ctx)), width=min(out.width, _WIDEST))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


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
    if command.epilog:
        yield Text("\n" + command.epilog.strip("\n"))


def _sections(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    """Rows of names and texts by heading."""
    sections: dict[str, list[tuple[str, str]]] = {}
    if isinstance(command, TyperGroup):
        names = command.list_commands(ctx)
        inner: list[Any] = [command.get_command(ctx, name) for name in names]
        sections[_COMMANDS] = [
            (name, " ".join((one.help or "").split("\n\n")[0].split()))
            for name, one in zip(names, inner, strict=True)
        ]
    sections |= {_GIVEN: [], _OPTIONAL: [], SPECIAL: []}
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

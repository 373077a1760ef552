"""The ``ideal`` command and its one way of saying that something went wrong."""

import sys
import warnings
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ideal_dispatch.cli.help import CommandLine, as_code
from ideal_dispatch.cli.terminal import err, warn
from ideal_dispatch.errors import IdealError, in_one_line


class _Commands(TyperGroup):
    """Lists commands in the order of use and reports an interruption in one line."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(130) from None

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order in which they are used."""
        return sorted(super().list_commands(ctx), key=_ORDER.index)


_ORDER = (
    "demo", "network", "records", "train", "model", "decide", "traffic", "replay", "report",
    "races", "backtest", "fleet", "serve", "simulate", "audit", "bench",
)  # fmt: skip
"""Every command or group of commands: a module of that name has it."""

_WORDS = """\
Is a second ambulance worth sending to a call, and from where?

- depot: where ambulances wait for calls
- router: a service that promises travel times, such as Google's
- model: what was learned from past trips: the time each road takes at some hour and
  weather, and how far that may be off
- policy: a rule that decides who drives to a call, and whether two do
- threshold: the seconds a second ambulance must be worth to be sent
- replay: calls driven again under several policies, in the same traffic
- embedded city: Port Almery, a fictional city that comes with this program; the default
  of every command
"""

_EXAMPLES = """\
Examples:
  ideal demo            # the whole story in two minutes
  ideal serve           # the dispatcher's desk, with simulated calls
  ideal serve --simulate  # a simulated city, an hour in a minute
  ideal records --help  # what a group of commands does
"""

app = CommandLine(
    _WORDS,
    cls=_Commands,
    name="ideal",
    epilog=as_code(_EXAMPLES),
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(value: bool) -> None:
    if value:
        from ideal_dispatch import __version__

        typer.echo(f"ideal-dispatch {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; bad input ends in one clear line and exit code 2."""
    if sys.flags.optimize > 1:
        sys.exit("ideal: its help is in docstrings, which -OO removes; run Python without it")
    for name in _ORDER:
        module = import_module(f"ideal_dispatch.cli.{name}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command()(getattr(module, name))
    warnings.showwarning = lambda message, *_: warn(str(message))
    try:
        app()
    except (IdealError, OSError) as error:
        err.print("[bold red]error:[/]", end=" ")
        err.print(in_one_line(error), markup=False, soft_wrap=True)
        sys.exit(2)

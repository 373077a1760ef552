"""The ``ideal`` command and its one way of saying that something went wrong."""

import sys
import warnings
from importlib import import_module
from typing import Annotated, Any

import typer

from ideal_dispatch.cli.help import CommandLine, Commands
from ideal_dispatch.cli.terminal import err, warn
from ideal_dispatch.errors import IdealError, in_one_line


class _Commands(Commands):
    """Commands that say so when they are interrupted, rather than just end."""

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

_EPILOG = """\
Words:
  depot          where ambulances wait for calls
  router         a service that promises travel times, such as Google's
  model          what was learned from past trips: how long every road takes
                 at some hour and weather, and how far that may be off
  policy         a rule that says who drives to a call, and when two do
  threshold      the seconds a second ambulance must be worth to be sent
  replay         calls driven again under several policies, in the same traffic
  embedded city  Port Almery, a made-up city that comes with this program; used
                 by every command that is given no city of yours

Examples:
  ideal demo            # see it work from beginning to end
  ideal serve           # open the dispatcher's desk, with simulated calls
  ideal serve --simulate  # the same city alive: an hour in a minute
  ideal records --help  # read what a command does and needs
"""

app = CommandLine(
    "Is a second ambulance worth sending to a call, and from where?",
    cls=_Commands,
    name="ideal",
    epilog=_EPILOG,
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

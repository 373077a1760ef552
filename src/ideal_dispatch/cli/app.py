"""The ``ideal`` command and its one way of saying that something went wrong."""

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ideal_dispatch.errors import IdealError


class _Commands(TyperGroup):
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
    "serve", "audit", "bench",
)  # fmt: skip


app = typer.Typer(
    cls=_Commands,
    name="ideal",
    help="Selective dual dispatch of ambulances: is a second one worth sending, and from where?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
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
            "--version", callback=_show_version, is_eager=True, help="Print the version, and end."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; bad input ends in one clear line and exit code 2."""
    from ideal_dispatch.cli import (
        audit,
        bench,
        decide,
        demo,
        model,
        network,
        records,
        replay,
        report,
        serve,
        traffic,
        train,
    )

    app.command()(demo.demo)
    app.add_typer(network.app, name="network")
    app.add_typer(records.app, name="records")
    app.command(epilog=train.EPILOG)(train.train)
    app.add_typer(model.app, name="model")
    app.command(epilog=decide.EPILOG)(decide.decide)
    app.add_typer(traffic.app, name="traffic")
    app.command(epilog=replay.EPILOG)(replay.replay)
    app.command(epilog=report.EPILOG)(report.report)
    app.command(epilog=serve.EPILOG)(serve.serve)
    app.add_typer(audit.app, name="audit")
    app.command(epilog=bench.EPILOG)(bench.bench)
    try:
        app()
    except IdealError as error:
        sys.exit(_complain(str(error)))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(_complain(f"{where}{error.strerror or error}"))


def _complain(line: str) -> int:
    from rich.markup import escape

    from ideal_dispatch.cli.terminal import err

    err.print(f"[bold red]error:[/] {escape(line)}", soft_wrap=True)
    return 2

"""Options of commands that share their work among cores and machines."""

from typing import Annotated

import typer

from ideal_dispatch.cli.help import SPECIAL

CoresOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="NUMBER", help="Processor cores to use; all of them by default."),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        rich_help_panel=SPECIAL,
        help="Work on many machines: the scheduler of a dask cluster.",
    ),
]

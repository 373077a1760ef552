"""What every command shares: where to print, how to show progress."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from ideal_dispatch.network.build import Progress

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


@contextmanager
def stages(what: str) -> Iterator["Progress"]:
    """A spinner that names the current stage; silent in a pipe."""
    if not err.is_terminal:
        yield lambda stage: None
        return
    with err.status(f"{what} …") as status:
        yield lambda stage: status.update(f"{what}: {stage} …")


def print_facts(
    title: str, rows: Mapping[str, str], justify: Literal["left", "right"] = "right"
) -> None:
    """Print a heading and a two-column table of names and values."""
    out.print(title, style="bold", markup=False)
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(justify=justify, overflow="fold")
    for name, value in rows.items():
        table.add_row(Text(name), Text(value))
    out.print(table)
    out.print()

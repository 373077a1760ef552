"""What every command shares: where to print, how to show progress."""

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from ideal_dispatch.network.readers.build import Progress
    from ideal_dispatch.report import Report

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


@contextmanager
def bars(lines: bool = False) -> Iterator[Callable[[str, float, str], None]]:
    """A bar per stage with a remark and the time left; in a pipe silent, or ``lines`` of stages.

    What it yields takes the stage, the share done and the remark.
    """
    if not err.is_terminal:
        begun: set[str] = set()

        def line(stage: str, done: float, remark: str) -> None:
            if lines and stage not in begun:
                begun.add(stage)
                err.print(stage, markup=False, soft_wrap=True)

        yield line
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=28),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        TextColumn("[dim]{task.fields[remark]}"),
        console=err,
        speed_estimate_period=3600.0,  # a step may take minutes
    )
    tasks: dict[str, Any] = {}

    def show(stage: str, done: float, remark: str) -> None:
        if stage not in tasks:
            tasks[stage] = progress.add_task(stage, total=1.0, remark="")
        progress.update(tasks[stage], completed=done, remark=remark)

    with progress:
        yield show


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], bold: Collection[int] = (0,)
) -> None:
    """Print a table: the first column left, the others right; ``bold`` rows stand out.

    Where it is too wide for the terminal, the header takes two lines.
    """
    wide = sum(max(map(len, column)) + 2 for column in zip(header, *rows, strict=True))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for index, name in enumerate(header):
        shown = name.replace(" ", "\n", 1) if wide > out.width else name
        table.add_column(shown, justify="right" if index else "left", overflow="fold")
    for index, row in enumerate(rows):
        table.add_row(*map(Text, row), style="bold" if index in bold else None)
    out.print(table)
    out.print()


def print_report(report: "Report", *tables: str) -> None:
    """Print the headline numbers of a report and some of its tables; warn of its caveats."""
    out.print(report.title, style="bold", markup=False)
    out.print(report.about, markup=False)
    numbers = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for label, value in report.numbers:
        numbers.add_row(Text(value), Text(label, style="dim"))
    out.print(numbers)
    out.print()
    for name in tables:
        if (table := report.tables.get(name)) is not None:
            out.print(table.title, style="bold", markup=False)
            print_table(table.header, table.text_rows(), table.bold)
    for line in report.caveats:
        warn(line)


def say(line: str) -> None:
    """Print one line as it is, however long."""
    out.print(line, markup=False, soft_wrap=True)


def warn(line: str, word: str = "warning") -> None:
    """Print one line that should not be missed, on stderr."""
    err.print(f"[yellow]{word}:[/]", end=" ")
    err.print(line, markup=False, soft_wrap=True)


def print_next(*words: object) -> None:
    """Print the command that comes next, in one piece to copy."""
    out.print("next:", style="bold", end=" ")
    say(shlex.join(map(str, words)))


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

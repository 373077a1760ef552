"""``ideal bench``: measure here what the benchmark page says, and write its rows."""

import platform
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ideal_dispatch.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

EPILOG = """\
Examples:
  ideal bench shortest_paths
  ideal bench shortest_paths gap --write
  ideal bench --write --page /tmp/benchmarks.md
"""

KEPT = 2
"""Earlier measurements of a benchmark that stay on the page."""

_PEERS = (
    "numpy", "scipy", "numba", "networkx", "igraph", "rustworkx", "cvxpy", "scs", "torch", "pyepo",
    "leuvenmapmatching", "uvicorn", "fastapi",
)  # fmt: skip
_MEASURED = "**Measured "
_EARLIER = ("<details markdown>", "<summary>Earlier</summary>", "</details>")


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help="Which benchmarks; all of them by default."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write the tables to the benchmark page.")
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Another page than docs/benchmarks.md to write to."),
    ] = None,
    list_only: Annotated[
        bool, typer.Option("--list", help="Print the names of the benchmarks, and end.")
    ] = False,
) -> None:
    """Measure how fast this program is here, beside others; for its developers.

    Works in a clone of the project with the packages of `make bench`. All
    benchmarks take an hour and want a quiet machine. On the page a benchmark's
    newest tables replace those before, of which the last two stay.
    """
    from ideal_dispatch.cli.terminal import out
    from ideal_dispatch.files import check_source

    root = checkout()
    known = _benchmarks(root)
    if list_only:
        out.print("\n".join(known), markup=False)
        return
    chosen = list(dict.fromkeys(names or known))
    for name in chosen:
        if name not in known:
            raise InputError(f"no benchmark {name!r}; there are: {', '.join(known)}")
    if page is not None and not write:
        raise InputError("--page says where to write: add --write")
    target = root / "docs" / "benchmarks.md" if page is None else page
    if write:
        check_source(target)
    for name in chosen:
        heading = conditions(root)
        tables = measured(known[name])
        if write and not any(not isinstance(one, str) for one in tables):
            raise InputError(f"benchmark {name}: it printed no table, so nothing is written")
        if write:
            write_part(target, name, "\n\n".join([heading, *map(markdown, tables)]))
            out.print(f"wrote {name} to {target}", markup=False, soft_wrap=True)


def checkout() -> Path:
    """The clone that this package is installed from: benchmarks are not part of the package."""
    root = Path(__file__).resolve().parents[3]
    if not (root / "benchmarks" / "__main__.py").is_file():
        raise InputError(
            "ideal bench: works in a clone of the project, installed from there; "
            "get one and run `make bench`"
        )
    return root


def _benchmarks(root: Path) -> dict[str, Callable[[Any], None]]:
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))  # and stays: processes that a benchmark starts look there
    try:
        found: dict[str, Callable[[Any], None]] = import_module("benchmarks.__main__").BENCHMARKS
    except ModuleNotFoundError as error:
        raise InputError(
            f"ideal bench: {error.name} is not installed; `make bench` installs what it needs"
        ) from None
    return found


def measured(benchmark: Callable[[Any], None]) -> "list[Table | str]":
    """The tables and lines that a benchmark prints, while it prints them; no names of files."""
    from rich.console import Console
    from rich.table import Table
    from threadpoolctl import threadpool_limits

    printed: list[Table | str] = []

    class Keeping(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            printed.extend(one for one in objects if isinstance(one, Table))
            printed.extend(str(one) for one in objects if _is_finding(one))
            super().print(*objects, **options)

    with threadpool_limits(1):  # as the page says, also without the environment of `make bench`
        benchmark(Keeping(width=140))
    return printed


def _is_finding(printed: object) -> bool:
    return isinstance(printed, str) and not printed.startswith("wrote ")


def conditions(root: Path) -> str:
    """When, on which commit and machine, and with which versions of its peers."""
    versions = [f"Python {platform.python_version()}"]
    for name in _PEERS:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    load = Path("/proc/loadavg")
    busy = f", load {load.read_text().split()[0]} at the start" if load.is_file() else ""
    today = datetime.now(UTC).date().isoformat()
    return (
        f"{_MEASURED}{today}** at commit {_commit(root)}, on {_machine()}{busy}; "
        f"{', '.join(versions)}."
    )


def _commit(root: Path) -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        commit, changed = git("rev-parse", "--short=12", "HEAD"), git("status", "--porcelain")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"`{commit}`{' with changes' if changed else ''}"


def _machine() -> str:
    from os import cpu_count

    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.+)", info.read_text()) if info.is_file() else None
    name = found[1].strip() if found else platform.processor() or platform.machine()
    return f"{name}, {cpu_count()} cores"


def markdown(printed: "Table | str") -> str:
    """A table as Markdown, its title in italics; a line as it is."""
    if isinstance(printed, str):
        return printed
    from rich.text import Text

    def cell(value: object) -> str:
        plain = value.plain if isinstance(value, Text) else Text.from_markup(str(value)).plain
        return " ".join(plain.split()).replace("|", "\\|")

    header = [cell(column.header) for column in printed.columns]
    rules = ["---:" if column.justify == "right" else "---" for column in printed.columns]
    rows = zip(*([cell(one) for one in column.cells] for column in printed.columns), strict=True)
    lines = [f"| {' | '.join(row)} |" for row in (header, rules, *rows)]
    title = f"*{cell(printed.title)}*\n\n" if printed.title else ""
    return title + "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Part:
    """What stands between the marks of a benchmark on a page, newest first."""

    name: str
    sets: Sequence[str] = ()

    @property
    def begin(self) -> str:
        return f"<!-- bench {self.name}: begin -->"

    @property
    def end(self) -> str:
        return f"<!-- bench {self.name}: end -->"

    @classmethod
    def read(cls, name: str, text: str) -> "Part":
        """The measurements within ``text``, the middle of a part."""
        for word in _EARLIER:
            text = text.replace(word, "")
        sets = [_MEASURED + one.strip() for one in text.split(_MEASURED)[1:]]
        return cls(name, tuple(sets))

    def __str__(self) -> str:
        newest, *earlier = self.sets
        lines = [self.begin, newest]
        if earlier:
            lines += [*_EARLIER[:2], *earlier, _EARLIER[2]]
        return "\n\n".join([*lines, self.end])


def write_part(page: Path, name: str, newest: str) -> None:
    """Put a measurement on the page: between its marks, or at the end where it has none."""
    from ideal_dispatch.files import atomic_write

    text = page.read_text(encoding="utf-8")
    part = Part(name)
    before, found, rest = text.partition(part.begin)
    inside, ended, after = rest.partition(part.end)
    if found and not ended:
        raise InputError(f"{page}: {part.begin} has no {part.end}; add it where the tables end")
    if not found:
        before, after = text.rstrip("\n") + "\n\n", "\n"
    earlier = Part.read(name, inside).sets[:KEPT]
    with atomic_write(page) as file:
        file.write(f"{before}{Part(name, (newest, *earlier))}{after}".encode())

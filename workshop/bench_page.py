"""Put measurements on the benchmark page: ``python -m workshop.bench_page shortest_paths gap``.

A benchmark's newest tables replace those before, of which the last two stay.
"""

import argparse
import platform
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from os import cpu_count
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.table import ROOT, WIDTH, Benchmark, benchmark, chosen, run
from ideal_dispatch.errors import InputError
from ideal_dispatch.files import atomic_write, check_source

KEPT = 2
"""Earlier measurements of a benchmark that stay on the page."""

_PEERS = (
    "numpy", "scipy", "numba", "networkx", "igraph", "rustworkx", "simpy", "cvxpy", "scs", "torch",
    "pyepo", "leuvenmapmatching", "uvicorn", "fastapi",
)  # fmt: skip
_MEASURED = "**Measured "
_EARLIER = ("<details markdown>", "<summary>Earlier</summary>", "</details>")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the benchmarks named, or all, and write each as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", help="which benchmarks; all of them by default")
    parser.add_argument("--page", type=Path, help="another page than docs/benchmarks.md")
    given = parser.parse_args(arguments)
    page = given.page or ROOT / "docs" / "benchmarks.md"
    check_source(page)
    for name in chosen(given.names):
        heading = conditions(ROOT)
        printed = measured(benchmark(name))
        if not any(isinstance(one, Table) for one in printed):
            raise InputError(f"benchmark {name}: it printed no table, so nothing is written")
        write_part(page, name, "\n\n".join([heading, *map(markdown, printed)]))
        print(f"wrote {name} to {page}")


def measured(made: Benchmark) -> list[Table | str]:
    """The tables and lines that a benchmark prints, while it prints them; no names of files."""
    printed: list[Table | str] = []

    class Keeping(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            printed.extend(one for one in objects if isinstance(one, Table))
            printed.extend(str(one) for one in objects if _is_finding(one))
            super().print(*objects, **options)

    run(made, Keeping(width=WIDTH))
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
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.+)", info.read_text()) if info.is_file() else None
    name = found[1].strip() if found else platform.processor() or platform.machine()
    return f"{name}, {cpu_count()} cores"


def markdown(printed: Table | str) -> str:
    """A table as Markdown, its title in italics; a line as it is."""
    if isinstance(printed, str):
        return printed

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


if __name__ == "__main__":
    main()

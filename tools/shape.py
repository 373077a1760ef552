"""Measure the shape of the package: `python tools/shape.py [CHECKOUT ...]`.

Prints one column for each checkout (this one where none is named), so that a change
can be shown before and after:

    git worktree add ../before COMMIT
    python tools/shape.py ../before .

Lines are physical lines, beside the budget of their room. Complexity is McCabe's, as ruff counts
it. Import edges are between modules of the package. Docs written by hand are README.md and the
pages of docs/ without generated pages ("*Made by `COMMAND`" under the title) and generated parts
(between `<!-- x: begin -->` and `<!-- x: end -->`).
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

PACKAGE = "ideal_dispatch"
ROOMS = {
    ("network", "context"): 4_400,
    ("records",): 3_100,
    ("scenarios", "gap"): 3_500,
    ("learning", "forecast"): 4_400,
    ("traffic",): 2_700,
    ("dispatch",): 2_900,
    ("replay", "fleet", "experiment", "player"): 5_500,
    ("evaluation",): 3_600,
    ("service",): 6_500,
    ("cli",): 2_400,
}
"""Lines of Python that folders of the package may have together."""

REST, ALL = 1_500, 40_500
DESK, TESTS, TOOLS, DOCS, WORDS = 3_300, 30_000, 9_000, 3_000, 45_000
_GENERATED_PART = re.compile(r"<!-- ([^:]+): begin -->.*?<!-- \1: end -->", re.DOTALL)
_GENERATED_PAGE = re.compile(r"# .*\n\n\*Made by `")


def measure(checkout: Path) -> dict[str, str]:
    """Every figure of a checkout, by its name."""
    package = checkout / "src" / PACKAGE
    modules = _python(package)
    all_lines = _lines(modules)
    figures = {}
    rest = all_lines
    for folders, budget in ROOMS.items():
        lines = _lines(path for folder in folders for path in _python(package / folder))
        figures[", ".join(folders)] = _beside(lines, budget)
        rest -= lines
    complexity = _complexity(package)
    pages = [_by_hand(page) for page in _pages(checkout)]
    tools = (
        path for name in ("workshop", "benchmarks", "tools") for path in _python(checkout / name)
    )
    scripts = (package / "service" / "desk" / "static").rglob("*.js")
    desk = (path for path in scripts if "libraries" not in path.parts)
    return figures | {
        "the rest": _beside(rest, REST),
        "all": _beside(all_lines, ALL),
        "the desk's JavaScript": _beside(_lines(desk), DESK),
        "tests": _beside(_lines(_python(checkout / "tests")), TESTS),
        "workshop, benchmarks, tools": _beside(_lines(tools), TOOLS),
        "docs written by hand": _beside(sum(len(page.splitlines()) for page in pages), DOCS),
        "their words": _beside(sum(len(page.split()) for page in pages), WORDS),
        "modules": f"{len(modules):,}",
        "import edges": f"{_import_edges(checkout):,}",
        "functions": f"{len(complexity):,}",
        "mean complexity": f"{sum(complexity) / len(complexity):.2f}",
        "worst complexity": f"{max(complexity)}",
    }


def _beside(found: int, budget: int) -> str:
    return f"{found:,} of {budget:,}{' !' if found > budget else ''}"


def _python(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.py") if "__pycache__" not in path.parts]


def _lines(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def _complexity(package: Path) -> list[int]:
    """That of every function: the N of ruff's "(N > 0)"."""
    done = subprocess.run(
        [Path(sys.executable).parent / "ruff", "check", "--isolated", "--select", "C901",
         "--config", "lint.mccabe.max-complexity=0", "--output-format=json", package],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = [re.search(r"\((\d+) >", one["message"]) for one in json.loads(done.stdout)]
    return [int(one[1]) for one in found if one]


def _import_edges(checkout: Path) -> int:
    """Counted in another process: this one can import only one package of that name."""
    count = f"import grimp; print(grimp.build_graph({PACKAGE!r}, cache_dir=None).count_imports())"
    done = subprocess.run(
        [sys.executable, "-c", count],
        env={"PYTHONPATH": str(checkout / "src")}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(done.stdout)


def _pages(checkout: Path) -> list[Path]:
    return [checkout / "README.md", *sorted((checkout / "docs").rglob("*.md"))]


def _by_hand(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    return "" if _GENERATED_PAGE.match(text) else _GENERATED_PART.sub("", text)


def main() -> None:
    """Print the figures of all checkouts side by side."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    here = [Path(__file__).parents[1]]
    parser.add_argument("checkouts", metavar="CHECKOUT", nargs="*", type=Path, default=here)
    checkouts = parser.parse_args().checkouts
    columns = [measure(checkout.resolve()) for checkout in checkouts]
    table = Table("lines, and their budget", box=None, pad_edge=False)
    for checkout in checkouts:
        table.add_column(str(checkout), justify="right")
    for name in columns[0]:
        table.add_row(name, *(column[name] for column in columns))
    Console(width=None if sys.stdout.isatty() else 120).print(table)


if __name__ == "__main__":
    main()

"""Measure the shape of the package: `python tools/shape.py [CHECKOUT ...]`.

Prints one column for each checkout (this one where none is named), so that a change
can be shown before and after:

    git worktree add ../before COMMIT
    python tools/shape.py ../before .

Lines are physical lines of Python. Complexity is McCabe's, as ruff counts it. Import
edges are between modules of the package. A real call is followed from the socket to its
answer (tools/call_path.py), where a checkout can tell. Docs written by hand are README.md and the
pages of docs/ without generated pages ("*Made by `COMMAND`" under the title) and generated
parts (between `<!-- x: begin -->` and `<!-- x: end -->`).
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

PACKAGE = "ideal_dispatch"
MOST_PARAMETERS = 8
_GENERATED_PART = re.compile(r"<!-- ([^:]+): begin -->.*?<!-- \1: end -->", re.DOTALL)
_GENERATED_PAGE = re.compile(r"# .*\n\n\*Made by `")


def measure(checkout: Path) -> dict[str, str]:
    """Every figure of a checkout, by its name."""
    package = checkout / "src" / PACKAGE
    modules = [path for path in package.rglob("*.py") if "__pycache__" not in path.parts]
    folders = {path.parent for path in modules}
    flat = {folder: len(list(folder.glob("*.py"))) for folder in folders}
    widest = max(flat, key=lambda folder: flat[folder])
    complexity = _numbers(package, "C901", "lint.mccabe.max-complexity=0")
    parameters = _numbers(package, "PLR0913", f"lint.pylint.max-args={MOST_PARAMETERS}")
    return {
        "modules": f"{len(modules):,}",
        "lines": f"{sum(map(_lines, modules)):,}",
        "most modules in a folder": f"{flat[widest]} ({widest.relative_to(package.parent)})",
        "modules over 300 lines": f"{sum(_lines(path) > 300 for path in modules):,}",
        "import edges": f"{_import_edges(checkout):,}",
        "functions": f"{len(complexity):,}",
        "mean complexity": f"{sum(complexity) / len(complexity):.2f}",
        "worst complexity": f"{max(complexity)}",
        f"functions with more than {MOST_PARAMETERS} parameters": f"{len(parameters)}",
        "most parameters": f"{max(parameters, default=0) or f'at most {MOST_PARAMETERS}'}",
        "functions between socket and answer": _call_path(checkout),
        "lines of docs written by hand": f"{sum(map(_lines_by_hand, _pages(checkout))):,}",
    }


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def _numbers(package: Path, rule: str, limit: str) -> list[int]:
    """The numbers that ruff complains of: the N of every "(N > limit)"."""
    command = ["ruff", "check", "--isolated", "--select", rule, "--config", limit]
    done = subprocess.run(
        [Path(sys.executable).parent / command[0], *command[1:], "--output-format=json", package],
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


def _call_path(checkout: Path) -> str:
    """How many of our functions a call passes; every version that can tell has its own script."""
    if not (checkout / "tools" / "call_path.py").exists():
        return "not counted"
    done = subprocess.run(
        [sys.executable, "tools/call_path.py"],
        cwd=checkout, env={**os.environ, "PYTHONPATH": str(checkout / "src")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return str(len(done.stdout.splitlines()))


def _pages(checkout: Path) -> list[Path]:
    return [checkout / "README.md", *sorted((checkout / "docs").rglob("*.md"))]


def _lines_by_hand(page: Path) -> int:
    text = page.read_text()
    if _GENERATED_PAGE.match(text):
        return 0
    return len(_GENERATED_PART.sub("", text).splitlines())


def main() -> None:
    """Print the figures of all checkouts side by side."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    here = [Path(__file__).parents[1]]
    parser.add_argument("checkouts", metavar="CHECKOUT", nargs="*", type=Path, default=here)
    checkouts = parser.parse_args().checkouts
    columns = [measure(checkout.resolve()) for checkout in checkouts]
    table = Table("figure", box=None, pad_edge=False)
    for checkout in checkouts:
        table.add_column(str(checkout), justify="right")
    for name in columns[0]:
        table.add_row(name, *(column[name] for column in columns))
    Console(width=None if sys.stdout.isatty() else 120).print(table)


if __name__ == "__main__":
    main()

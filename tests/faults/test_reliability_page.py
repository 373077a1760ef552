"""docs/reliability.md names tests that exist, and leaves out no file of them."""

import ast
import re
from pathlib import Path

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "reliability.md").read_text()


def named() -> set[tuple[Path, str]]:
    """Files and tests of the page; a name without a file is of the file before it."""
    found, file = set(), Path()
    for path, test in re.findall(r"`([\w/.]*)::(test_\w+)`", PAGE):
        if path:
            file = ROOT / path if "/" in path else ROOT / "tests" / "faults" / path
        found.add((file, test))
    return found


def functions_of(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {node.name for node in functions if node.name.startswith("test_")}


def test_every_test_of_the_page_exists() -> None:
    assert len(named()) > 80
    assert [(file.name, test) for file, test in named() if test not in functions_of(file)] == []


def test_every_file_of_faults_is_on_the_page() -> None:
    files = set(Path(__file__).parent.glob("test_*.py")) - {Path(__file__)}
    assert {file.name for file in files - {file for file, _ in named()}} == set()


def test_no_row_of_the_page_admits_a_loss() -> None:
    """The last column of the tables that count rows is 0, or says that none was at stake."""
    counting = re.findall(r"^\| fault \|.*\| rows lost \|\n(?:\|.*\n)+", PAGE, re.M)
    assert len(counting) == 5
    cells = [row.split("|")[-2].strip() for table in counting for row in table.splitlines()[2:]]
    assert set(cells) == {"0", "–"}
    assert cells.count("0") >= 12

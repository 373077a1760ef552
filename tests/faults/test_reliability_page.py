"""docs/reliability.md names files of tests that exist, and leaves out no file of faults."""

import re
from pathlib import Path

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "reliability.md").read_text()
FAULTS = Path(__file__).parent


def named() -> set[Path]:
    """The files of tests in the page's tables; a name without a folder is a file of faults."""
    rows = "\n".join(line for line in PAGE.splitlines() if line.startswith("|"))
    paths = re.findall(r"`([\w/]*test_\w+\.py)`", rows)
    return {ROOT / path if "/" in path else FAULTS / path for path in paths}


def test_every_file_of_the_page_exists() -> None:
    assert len(named()) > 30
    assert [file.name for file in named() if not file.exists()] == []


def test_every_file_of_faults_is_on_the_page() -> None:
    files = set(FAULTS.glob("test_*.py")) - {Path(__file__)}
    assert {file.name for file in files - named()} == set()


def test_no_row_of_the_page_admits_a_loss() -> None:
    """The last column of the tables that count rows is 0, or says that none was at stake."""
    counting = re.findall(r"^\| fault \|.*\| rows lost \|\n(?:\|.*\n)+", PAGE, re.M)
    assert len(counting) == 5
    cells = [row.split("|")[-2].strip() for table in counting for row in table.splitlines()[2:]]
    assert set(cells) == {"0", "–"}
    assert cells.count("0") >= 12

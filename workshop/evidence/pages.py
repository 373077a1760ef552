"""Tables of the evidence pages: as Markdown, and as the CSV files beside the pages."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from ideal_dispatch.files import write_file
from ideal_dispatch.report import Table

FOLDER = Path("docs/evidence")


def csv_rows(keys: Sequence[str], table: Table) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table without the keys' names, each row with ``keys`` in front."""
    header, *rows = csv.reader(io.StringIO(table.csv()))
    return header, [[*keys, *row] for row in rows]


def write_csv(file: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    write_file(file, text.getvalue())


def read_csv(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def markdown(table: Table) -> str:
    """A table as a page of the documentation has it, its title above."""
    heads = table.arrowed
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    for number, cells in enumerate(table.text_rows()):
        if number in table.bold:
            cells = [f"**{cells[0]}**", *cells[1:]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([f"*{table.title}.*", "", *lines])


def shown(*tables: Table) -> list[str]:
    """Tables, each with its note below it where it has one."""
    return [text for table in tables for text in (markdown(table), table.note) if text]

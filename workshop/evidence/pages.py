"""Tables of the evidence pages as Markdown."""

from pathlib import Path

from ideal_dispatch.report import Table

FOLDER = Path("docs/evidence")


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

"""Evidence pages: one page for each experiment, and all of its tables as CSV.

A page shows the main tables. The CSV files hold every table of every
experiment, one file for each kind, with the experiment in the first column.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ideal_dispatch.evaluation.strategies import AS_SET
from ideal_dispatch.evaluation.table import Table
from ideal_dispatch.files import write_file
from ideal_dispatch.replay.drive import World

FOLDER = Path("docs/evidence")
ARRIVAL = "Driving time of the first ambulance to arrive"
KEYS = ("experiment", "days", "world")
WORLDS = (World.EXPERIENCED, World.INSTANTANEOUS)
"""In the order of telling: what really happens first, then the paper's convention."""

KINDS = {
    "saved": "seconds saved against interval-selective: every policy, every volume",
    "arrival": "driving times of the first ambulance: every policy and control",
    "second": "where the second ambulance drives, and how often it is first",
    "which_second": "what any road for the second saves over another depot's alone",
    "gap": "what a proved gap changes against Algorithm 2's",
    "regret": "regret against the paper's candidate set",
    "benchmarks": "regret against all drives, and against hindsight",
    "beating": "the least volume that beats the strongest baseline, as in the paper's Figure 4",
    "training": "seconds saved on the training days, by which choices were made",
    "paper_regret": "the paper's table of regrets beside ours",
    "paper_tests": "the paper's Wilcoxon tests beside ours",
}

PRINTED = ("beating", "paper_regret", "paper_tests")
"""Kinds that are shown on a page beside what the paper prints."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A table of an experiment: its kind, the days and the world it is of."""

    kind: str
    days: str
    world: str
    table: Table


@dataclass(frozen=True, slots=True)
class ExperimentPage:
    """All that is said of one experiment.

    ``made`` names the command and the version; ``words`` are paragraphs;
    ``test`` and ``learned`` have a sentence for each world.
    """

    stem: str
    name: str
    made: str
    words: Sequence[str]
    test: Mapping[World, str]
    learned: Mapping[World, str]
    tables: Sequence[Kept]

    def markdown(self) -> str:
        blocks = [f"# {self.name}", f"*{self.made}*", *self.words]
        for world in (one for one in WORLDS if one in self.test):
            blocks += [f"## {world.words[0].upper()}{world.words[1:]}", self.test[world]]
            saved = next((k.table for k in self._of(world) if k.kind == "saved"), None)
            if saved is not None:
                blocks += shown(by_volume(saved))
            arrival = next(k.table for k in self._of(world) if k.kind == "arrival")
            blocks += shown(replace(arrival, title=ARRIVAL))
            blocks += [self.learned[world]] if world in self.learned else []
        printed = [one.table for one in self.tables if one.kind in PRINTED]
        if printed:
            blocks.append("## The paper's tables beside ours")
            blocks += shown(*printed)
        kinds = {one.kind for one in self.tables}
        lines = [f"- [{k}.csv]({k}.csv): {words}" for k, words in KINDS.items() if k in kinds]
        return "\n\n".join([*blocks, "## All tables, as CSV", "\n".join(lines)]) + "\n"

    def _of(self, world: str) -> list[Kept]:
        return [one for one in self.tables if one.world == world]

    def write(self, folder: Path) -> None:
        """Write the page, and put its tables into the CSV files in place of its earlier ones."""
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / f"{self.stem}.md", self.markdown())
        for kind in KINDS:
            rows = [
                ([self.name, one.days, one.world], one.table)
                for one in self.tables
                if one.kind == kind
            ]
            if rows:
                _replace_rows(folder / f"{kind}.csv", self.name, rows)


def by_volume(saved: Table) -> Table:
    """A row for each policy of a table of differences: its seconds at the same volumes."""
    found: dict[str, list[object]] = {}
    targets: dict[str, None] = {}
    for name, target, *_, matched in saved.rows:
        if target == AS_SET:
            continue
        found.setdefault(str(name), []).append(matched)
        targets[str(target)] = None
    matched_column = saved.columns[-1]
    bold = {str(saved.rows[number][0]) for number in saved.bold}
    return Table(
        f"{saved.name}-by-volume",
        "Seconds saved per call against interval-selective, with as many second ambulances",
        (saved.columns[0], *(replace(matched_column, name=target) for target in targets)),
        tuple((name, *cells) for name, cells in found.items()),  # type: ignore[arg-type]
        frozenset(number for number, name in enumerate(found) if name in bold),
        "Mean with Student's 95 % interval over the days' means; above zero throughout, the "
        "policy is better beyond chance. Volumes are matched on these very days.",
    )


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


def _replace_rows(file: Path, name: str, tables: Sequence[tuple[Sequence[str], Table]]) -> None:
    """Replace the rows of one experiment; the order of the experiments stays."""
    before = [list(row.values()) for row in read_csv(file)] if file.exists() else []
    order = list(dict.fromkeys([*(row[0] for row in before), name]))
    rows = [row for row in before if row[0] != name]
    header: list[str] = []
    for keys, table in tables:
        header, more = csv_rows(keys, table)
        rows += more
    rows.sort(key=lambda row: order.index(row[0]))
    write_csv(file, [*KEYS, *header], rows)


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

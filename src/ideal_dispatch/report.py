"""Reports: headline numbers, tables, figures and text on one page, tables beside it as CSV.

A report is plain data that a function of its subject returns. One template renders all of them:
the page needs no network and no script, every text is escaped, and the same contents give the
same bytes.
"""

import csv
import io
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ideal_dispatch.errors import InputError
from ideal_dispatch.files import safe_cell, write_file
from ideal_dispatch.frames import DataFrame, pandas
from ideal_dispatch.pages import figure_bytes, figure_url, render

if TYPE_CHECKING:
    import matplotlib.figure as drawn

PAGE = "report.html"


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the ends of its 95 % interval; NaN ends where the data allow no interval."""

    mean: float
    low: float = float("nan")
    high: float = float("nan")


Cell = str | float | int | Interval | None


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and how its numbers are written.

    ``percent`` multiplies by a hundred; ``signed`` writes a plus; ``arrow`` points to where
    better numbers are.
    """

    name: str
    decimals: int = 1
    signed: bool = False
    percent: bool = False
    arrow: str = ""
    scientific: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts and numbers under columns; ``bold`` rows are ours.

    ``name`` is the stem of its file, ``title`` its caption, ``note`` what a reader must know to
    read it.
    """

    kind: ClassVar[str] = "table"

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    bold: frozenset[int] = frozenset()
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise InputError(
                    f"table {self.name}: a row of {len(row)} cells, "
                    f"there are {len(self.columns)} columns"
                )

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame with the columns and numbers of :meth:`csv`."""
        return pandas().read_csv(io.StringIO(self.csv()))

    @property
    def header(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def arrowed(self) -> list[str]:
        """The header with arrows to where better numbers are."""
        return [f"{column.name} {column.arrow}".strip() for column in self.columns]

    def text_rows(self) -> list[list[str]]:
        """The cells as people read them."""
        return [
            [_text(cell, column) for cell, column in zip(row, self.columns, strict=True)]
            for row in self.rows
        ]

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers alone; a page sets them right."""
        return [
            all(not isinstance(row[place], str) for row in self.rows)
            for place in range(len(self.columns))
        ]

    def csv(self) -> str:
        """Plain numbers as headed; an interval takes three columns."""
        columns: list[list[str]] = []
        for place, column in enumerate(self.columns):
            cells = [row[place] for row in self.rows]
            columns.append([column.name, *(_plain(cell, column) for cell in cells)])
            if any(isinstance(cell, Interval) for cell in cells):
                for end in ("low", "high"):
                    ends = [getattr(cell, end, None) for cell in cells]
                    columns.append([f"{column.name} {end}", *(_plain(one, column) for one in ends)])
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(zip(*columns, strict=True))
        return out.getvalue()


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A chart or a map; ``title`` says what it shows, ``caption`` how to read it."""

    kind: ClassVar[str] = "figure"

    name: str
    title: str
    figure: "drawn.Figure"
    caption: str = ""

    @property
    def url(self) -> str:
        return figure_url(self.figure)


Part = str | tuple[str, ...] | Table | Figure
"""A paragraph, a list of points, a table or a figure."""


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """Parts under a heading; a ``folded`` one shows its heading until it is opened."""

    title: str
    parts: tuple[Part, ...]
    folded: bool = False

    @classmethod
    def of(cls, title: str, *parts: Part | None, folded: bool = False) -> "Section":
        """A section of the parts that have something to show."""
        shown = (one for one in parts if one and not (isinstance(one, Table) and not one.rows))
        return cls(title, tuple(shown), folded)


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """A page of results: ``numbers`` are the headlines, each a label and its value.

    ``about`` says in a line what was examined, ``caveats`` are reasons to be careful.
    """

    title: str
    about: str
    numbers: Sequence[tuple[str, str]]
    caveats: Sequence[str]
    sections: Sequence[Section]

    def parts(self) -> Iterator[Part]:
        """All parts in the order of the page."""
        for section in self.sections:
            yield from section.parts

    @property
    def tables(self) -> dict[str, Table]:
        """All tables by name."""
        return {part.name: part for part in self.parts() if isinstance(part, Table)}

    @property
    def figures(self) -> dict[str, Figure]:
        """All figures by name."""
        return {part.name: part for part in self.parts() if isinstance(part, Figure)}

    def html(self) -> str:
        """The page, which needs no other file."""
        sections = [section for section in self.sections if section.parts]
        return render("report.html", report=self, sections=sections)

    def save(
        self,
        folder: str | os.PathLike[str],
        page: str = PAGE,
        others: Mapping[str, str | bytes] | None = None,
    ) -> list[Path]:
        """Write the page, tables as CSV, figures as PNG and ``others``; gives the files.

        Everything is rendered before the first file is written, and the page is written last:
        where the page is, the report is complete.
        """
        where, files = Path(folder), dict(others or {})
        files |= {f"tables/{name}.csv": table.csv() for name, table in self.tables.items()}
        files |= {
            f"figures/{name}.png": figure_bytes(one.figure, "png")
            for name, one in self.figures.items()
        }
        files[page] = self.html()
        for name, content in files.items():
            (where / name).parent.mkdir(parents=True, exist_ok=True)
            write_file(where / name, content)
        return [where / name for name in files]


def counted(name: str, title: str, what: str, of: str, numbers: Mapping[str, int]) -> Table:
    """A row for each reason and how often it applies."""
    return Table(name, title, (Column(what), Column(of)), tuple(numbers.items()))


def rows_csv(columns: Mapping[str, Any]) -> str:
    """Columns of equal length as CSV, safe to open: unknown numbers are empty, formulas defused."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    rows = zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True)
    writer.writerows([_csv_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _csv_cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:g}" if abs(value) >= 1e-4 else "0"
    return safe_cell(value)


def file_name(name: str) -> str:
    """A name as part of a file's: what is no letter, number or one of ``-_.`` becomes ``-``."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)


def clock(seconds: float) -> str:
    """Minutes and seconds, as 4:07."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


def _text(cell: Cell, column: Column) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, Interval):
        if math.isnan(cell.low):
            return _number(cell.mean, column)
        low, high = _number(cell.low, column), _number(cell.high, column)
        return f"{_number(cell.mean, column)} [{low}, {high}]"
    if cell is None or math.isnan(cell):
        return "–"
    return _number(cell, column)


def _number(value: float, column: Column) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if column.scientific and value <= 0.0:
        return "<1e−300"
    if column.scientific:
        return f"{value:.3f}" if value >= 0.001 else f"{value:.1e}".replace("-", "−")
    shown = 100 * value if column.percent else value
    rounded = round(shown, column.decimals) + 0.0  # no −0.0
    sign = "+" if column.signed else ""
    return f"{rounded:{sign}.{column.decimals}f}".replace("-", "−")


def _plain(cell: Cell, column: Column) -> str:
    """A cell for programs; of an interval its mean."""
    if isinstance(cell, Interval):
        cell = cell.mean
    if cell is None or isinstance(cell, str):
        return cell or ""
    if isinstance(cell, int):
        return str(cell)
    return "" if math.isnan(cell) else f"{100 * cell if column.percent else cell:.6g}"

"""A table for the terminal, for spreadsheets, for papers and for pages."""

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

from ideal_dispatch.errors import InputError
from ideal_dispatch.evaluation.metrics import Interval
from ideal_dispatch.files import write_file
from ideal_dispatch.frames import DataFrame, pandas

Cell = str | float | int | Interval | None

_LATEX = str.maketrans(
    {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
     "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
     "≠": r"$\neq$", "−": "$-$", "…": r"\ldots{}", "<": "$<$", ">": "$>$"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and how its numbers are written.

    ``percent`` multiplies by a hundred; ``signed`` writes a plus; ``arrow``
    points to where better numbers are; ``latex`` is the heading in LaTeX where
    it is not the same.
    """

    name: str
    decimals: int = 1
    signed: bool = False
    percent: bool = False
    arrow: str = ""
    latex: str = ""
    scientific: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts and numbers under columns; ``bold`` rows are ours.

    ``name`` is the stem of its files, ``title`` its caption, ``note`` what a
    reader must know to read it.
    """

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

    def latex(self) -> str:
        """A floating table in the paper's form (package booktabs)."""
        heads = [
            (column.latex or column.name.translate(_LATEX)) + _ARROWS.get(column.arrow, "")
            for column in self.columns
        ]
        lines = [
            r"\begin{table}[h]", r"\centering", r"\small", r"\setlength{\tabcolsep}{3pt}",
            rf"\caption{{{f'{self.title}. {self.note}'.strip().translate(_LATEX)}}}",
            rf"\label{{tab:{self.name}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}",
            r"\toprule", " & ".join(heads) + r" \\", r"\midrule",
        ]  # fmt: skip
        for number, row in enumerate(self.rows):
            cells = [_latex(cell, column) for cell, column in zip(row, self.columns, strict=True)]
            if number in self.bold:
                cells[0] = rf"\textbf{{{cells[0]}}}"
            lines.append(" & ".join(cells) + r" \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])

    def save(self, folder: Path) -> list[Path]:
        """Write ``name.csv`` and ``name.tex`` into an existing folder; gives the files."""
        files = {folder / f"{self.name}.csv": self.csv(), folder / f"{self.name}.tex": self.latex()}
        for path, content in files.items():
            write_file(path, content)
        return list(files)


_ARROWS = {"↓": r" $\downarrow$", "↑": r" $\uparrow$"}


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


def _latex(cell: Cell, column: Column) -> str:
    if column.scientific and isinstance(cell, float) and 0.0 < cell < 0.001:
        digits, _, power = f"{cell:.1e}".partition("e")
        return rf"${digits}\times 10^{{{int(power)}}}$"
    return _text(cell, column).translate(_LATEX).replace("–", "--")


def _plain(cell: Cell, column: Column) -> str:
    """A cell for programs; of an interval its mean."""
    if isinstance(cell, Interval):
        cell = cell.mean
    if cell is None or isinstance(cell, str):
        return cell or ""
    if isinstance(cell, int):
        return str(cell)
    return "" if math.isnan(cell) else f"{100 * cell if column.percent else cell:.6g}"


def file_name(name: str) -> str:
    """A name as part of a file's: what is no letter, number or one of ``-_.`` becomes ``-``."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)

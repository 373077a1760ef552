"""The files of JEMSS, a simulator of ambulances in Julia: its tables and its expressions.

A file holds several tables. Each has a line with its name, a line with its columns and its
rows, and ends with a blank line. Lines may have too few cells, or empty ones at the end.
Numbers may be written as Julia expressions, such as ``12/60/24`` days. They are read as
arithmetic; nothing is ever executed.
"""

import ast
import csv
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from ideal_dispatch.arrays import FloatArray, IntArray, first_where
from ideal_dispatch.errors import FileFormatError
from ideal_dispatch.files import check_source

_OPERATIONS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv
}  # fmt: skip
_LONGEST = 500  # characters of an expression; Python's own parser has no limit of depth


@dataclass(frozen=True, slots=True)
class JemssTable:
    """One table of a file; ``where`` names it in complaints."""

    where: str
    columns: Mapping[str, tuple[str, ...]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def texts(self, name: str) -> tuple[str, ...]:
        """A column as it is written."""
        if name not in self.columns:
            known = ", ".join(self.columns)
            raise FileFormatError(f"{self.where}: no column {name}; it has {known}")
        return self.columns[name]

    def numbers(self, name: str) -> FloatArray:
        """A column of numbers."""
        cells = self.texts(name)
        try:
            values = np.array(cells, np.float64)
        except ValueError:
            values = np.array([_float(cell) for cell in cells])
        bad = first_where(~np.isfinite(values))
        if bad is not None:
            raise FileFormatError(
                f"{self.where}, row {bad + 1}: {name} is {cells[bad]!r}; a number is needed"
            )
        return values

    def indices(self, name: str, count: int) -> IntArray:
        """A column of numbers from 1 to ``count``, counted from 0."""
        values = self.numbers(name)
        bad = first_where((values != np.rint(values)) | (values < 1) | (values > count))
        if bad is not None:
            raise FileFormatError(
                f"{self.where}, row {bad + 1}: {name} is {values[bad]:g}; a whole number from 1 "
                f"to {count} is needed"
            )
        return (values - 1).astype(np.int32)


def read_tables(path: Path, *needed: str) -> dict[str, JemssTable]:
    """The tables of a file by name; those that are ``needed`` are there."""
    check_source(path)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return tables_of(file, str(path), *needed)
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(f"{path}: not a CSV file of JEMSS: {error}") from None


def tables_of(lines: Iterable[str], where: str, *needed: str) -> dict[str, JemssTable]:
    """The tables of some lines."""
    rows = csv.reader(lines)
    tables: dict[str, JemssTable] = {}
    for row in rows:
        if not any(row):
            continue
        name, header = row[0], next(rows, [])
        body = list(_until_blank(rows))
        columns = {
            title: tuple(cells[i] if i < len(cells) else "" for cells in body)
            for i, title in enumerate(header)
            if title
        }
        tables[name] = JemssTable(f"{where}, table {name}", columns)
    for name in needed:
        if name not in tables:
            found = ", ".join(tables) or "none"
            raise FileFormatError(f"{where}: no table {name}; tables found: {found}")
    return tables


def _until_blank(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    for row in rows:
        if not any(row):
            return
        yield row


# --- numbers and distributions, as JEMSS writes them ------------------------------------------


def distribution(text: str, where: str, kinds: Sequence[str]) -> tuple[str, tuple[float, ...]]:
    """The name and the numbers of ``Exponential(12/60/24)`` and the like, of one of ``kinds``."""
    call = _parsed(text, where)
    advice = f"{' or '.join(kinds)} is read"
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.keywords):
        raise FileFormatError(f"{where}: {text!r} is no distribution; {advice}")
    if call.func.id not in kinds:
        raise FileFormatError(f"{where}: {call.func.id} is not known here; {advice}")
    given = [
        item for one in call.args for item in (one.elts if isinstance(one, ast.List) else [one])
    ]
    if not given:
        raise FileFormatError(f"{where}: {text} has no numbers")
    values = tuple(_value(item, where) for item in given)
    if not np.isfinite(values).all():
        raise FileFormatError(f"{where}: {_short(text)} has a number that is too large")
    return call.func.id, values


def generated_calls(path: Path) -> dict[str, str]:
    """What a file ``gen_config.xml`` says of the calls: its distributions by name, as text."""
    check_source(path)
    try:
        root = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, ValueError, LookupError) as error:  # also of its encoding
        raise FileFormatError(f"{path}: not XML: {error}") from None
    return {item.tag: (item.text or "").strip() for item in root.iterfind(".//callDistributions/*")}


def _parsed(text: str, where: str) -> ast.expr:
    try:
        if len(text) > _LONGEST:
            raise ValueError
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FileFormatError(
            f"{where}: {_short(text)!r} is not understood; numbers are read"
        ) from None


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"


def _value(node: ast.expr, where: str) -> float:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _float(str(node.value))  # a whole number that is too large becomes infinite
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, where)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = _value(node.left, where), _value(node.right, where)
        try:
            return float(_OPERATIONS[type(node.op)](left, right))
        except ZeroDivisionError:
            raise FileFormatError(f"{where}: {ast.unparse(node)} divides by zero") from None
    raise FileFormatError(
        f"{where}: {ast.unparse(node)} is not read; numbers with + - * / and brackets are"
    )


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan

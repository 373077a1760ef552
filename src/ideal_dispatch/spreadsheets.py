"""Tables as people save them: CSV with any usual delimiter and encoding, and Excel workbooks."""

import codecs
import csv
import gzip
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import chain, count, islice
from typing import IO, Any

import numpy as np

from ideal_dispatch.errors import FileFormatError, InputError, MissingExtraError
from ideal_dispatch.files import check_source
from ideal_dispatch.frames import pandas

Row = tuple[int, list[str] | str]
"""A row's number, the first being 1, and its cells; or why it cannot be taken apart."""

_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip
_SAMPLE_ROWS = 50
_FOREIGN = re.compile(r"[^\x00-\x7f€„…‘’“”–—\xa0§°«»¡¿´A-Za-zÀ-ÖØ-öø-ÿŒœŠšŽžŸªº]|[^\W\d_a-zA-Z]{3}")
"""What Western text (cp1252) never holds: other signs, or three accented letters in a row."""
_DECIMAL = re.compile(r"[+-]?\d*[.,]\d+")
_NAMED_DELIMITER = re.compile(r"sep=([,;\t|])[,;\t|]*", re.IGNORECASE)
"""The line that Excel writes above a header to name the delimiter; some pad it with delimiters."""
_WORKBOOKS = (".xlsx", ".xlsm")


def open_table(
    source: Any, *, delimiter: str = "", encoding: str = "", sheet: str = ""
) -> tuple[str, str, Iterator[Row]]:
    """What to call a table, how it is written, and its rows, of which the first names the columns.

    It is a file or a pandas DataFrame. Of a file's form what is given is taken, the rest is
    found by looking at it. Blank rows are left out.
    """
    if not isinstance(source, (str, os.PathLike)):
        if not hasattr(source, "itertuples"):
            kind = type(source).__name__
            raise InputError(f"a file or a pandas DataFrame is needed, not {kind}")
        header = [str(name).strip() for name in source.columns]
        return "DataFrame", "pandas", chain([(1, header)], _frame_rows(source, 2))
    check_source(source)
    where = os.fspath(source)
    if where.lower().endswith(_WORKBOOKS):
        return where, *_read_workbook(where, sheet)
    if where.lower().endswith(".xls"):
        raise FileFormatError(f"{where}: the old Excel form is not read; save it as .xlsx or .csv")
    found = encoding or _encoding(where)
    if codecs.lookup(found).name == "utf-8":
        found = "utf-8-sig"  # the mark at the start is no part of the first name
    mark = delimiter or _delimiter(where, found)
    guess = "" if encoding or found != "cp1252" else " (a guess: it is not UTF-8)"
    form = f"{_DELIMITERS.get(mark, repr(mark))}, {found.removesuffix('-sig')}{guess}"
    return where, f"CSV divided by {form}", _csv_rows(where, mark, found)


def column_places(header: Sequence[str]) -> dict[str, int]:
    """Where each column stands, by its plain name; of two with one name the first."""
    return {plain_column(cell): place for place, cell in reversed(list(enumerate(header)))}


def plain_column(name: str) -> str:
    """The form in which columns are compared: lower case, one underscore for any spaces."""
    return "_".join(name.split()).lower()


def _frame_rows(frame: Any, first: int) -> Iterator[Row]:
    for row, values in enumerate(frame.itertuples(index=False), first):
        cells = list(map(_cell, values))
        if any(cells):
            yield row, cells


def decimal_mark(cells: Iterable[str], otherwise: str = ".") -> str:
    """What divides the decimals of most of these numbers; ``otherwise`` where they do not say."""
    marks = Counter("," if "," in cell else "." for cell in cells if _DECIMAL.fullmatch(cell))
    if marks[","] == marks["."]:
        return otherwise
    return "," if marks[","] > marks["."] else "."


def number(text: str, mark: str = ".") -> float:
    """The number a cell holds, or a ValueError; the other mark is refused, not guessed at."""
    if mark == ".":
        return float(text)
    if "." in text:
        raise ValueError("a point in a number with decimal commas")
    return float(text.replace(",", "."))


def _csv_rows(where: str, delimiter: str, encoding: str) -> Iterator[Row]:
    with _text(where, encoding) as text:
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        last = 0
        for row in count(1):
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                if "end of data" in str(error) and reader.line_num - last > 1:
                    raise FileFormatError(
                        f"{where}: a quotation mark opened in row {row} (line {last + 1}) is "
                        "never closed; close it, or the rows after it are lost"
                    ) from None
                yield row, f"cannot be taken apart into cells: {error}"
            else:
                names_it = row == 1 and _NAMED_DELIMITER.fullmatch(delimiter.join(cells))
                if not names_it and any(map(str.strip, cells)):
                    yield row, cells
            last = reader.line_num


def _encoding(where: str) -> str:
    """UTF-8 or what the file's mark says, else cp1252 where all of it could be Western text."""
    with opened(where) as file:
        start = file.read(3)
    for mark, encoding in _MARKS.items():
        if start.startswith(mark):
            return encoding
    try:
        with _text(where, "utf-8") as text:
            for _ in text:
                pass
        return "utf-8"
    except FileFormatError:
        with suppress(FileFormatError), _text(where, "cp1252") as text:
            if not any(_FOREIGN.search(line) for line in text):
                return "cp1252"
        raise


def _delimiter(where: str, encoding: str) -> str:
    """The mark that gives the header, or else most rows, the most cells of one count.

    Of equals it is not the comma, which may divide decimals. Excel's first line names it.
    """
    with _text(where, encoding) as text:
        lines = [line for line in islice(text, _SAMPLE_ROWS) if line.strip()]
    named = _NAMED_DELIMITER.fullmatch(lines[0].strip("\r\n")) if lines else None
    if named:
        return named[1]
    scores: dict[str, float] = {}
    for mark in _DELIMITERS:
        try:
            widths = [len(cells) for cells in csv.reader(lines, delimiter=mark)]
        except csv.Error:  # reported where the row is read
            widths = []
        if not widths:
            continue
        width, rows = Counter(widths).most_common(1)[0]
        if width > 1:
            scores[mark] = width * rows / len(widths) + (1000 if widths[0] == width else 0)
    return max(scores, key=lambda mark: (scores[mark], mark != ","), default=",")


def opened(where: str, mode: str = "rb", **how: str) -> Any:
    """The file, unpacked where it is a gzip."""
    with open(where, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(where, mode, **how) if zipped else open(where, mode, **how)  # type: ignore[call-overload]


@contextmanager
def _text(where: str, encoding: str) -> Iterator[IO[str]]:
    """The file as text; what goes wrong in reading it is one line."""
    try:
        with opened(where, "rt", encoding=encoding, newline="") as text:
            yield text
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise FileFormatError(
            f"{where}{_undecodable(where, encoding)}: byte 0x{byte:02x} is not "
            f"{encoding.removesuffix('-sig')}; save the file as UTF-8, or name its encoding in the "
            'settings of records, such as input.encoding = "big5hkscs"'
        ) from None
    except UnicodeError as error:
        raise FileFormatError(f"{where}: not {encoding} text ({error})") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FileFormatError(f"{where}: not a whole gzip file ({error})") from None


def _undecodable(where: str, encoding: str) -> str:
    """The first line that cannot be decoded, where lines can be split before decoding."""
    with opened(where) as file:
        for row, line in enumerate(file, 1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError:
                return f" line {row}"
    return ""


def _read_workbook(where: str, sheet: str) -> tuple[str, Iterator[Row]]:
    try:
        book = pandas().ExcelFile(where, engine="openpyxl")
    except ImportError:
        raise MissingExtraError("reading Excel files", "records") from None
    except Exception as error:  # its readers raise whatever they meet
        raise FileFormatError(f"{where}: not a readable Excel workbook ({error})") from None
    with book:
        if sheet and sheet not in book.sheet_names:
            names = ", ".join(map(repr, book.sheet_names))
            raise InputError(f"{where}: no sheet {sheet!r}; it has {names}")
        sheet = sheet or str(book.sheet_names[0])
        frame = pandas().read_excel(book, sheet, header=None, dtype=object, keep_default_na=False)
    return f"Excel, sheet {sheet!r}", _frame_rows(frame, 1)


def _cell(cell: Any) -> str:
    if pandas().isna(cell) is True:
        return ""
    if isinstance(cell, datetime):
        return cell.isoformat(" ")
    if isinstance(cell, (float, np.floating)) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()

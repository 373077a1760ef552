"""Files: one line when they cannot be used, and writes that leave the old file whole."""

import csv
import io
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ideal_dispatch.errors import InputError

_FORMULA = re.compile(r"\s*[=+\-@\t\r\n|＝＋－＠]")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?", re.IGNORECASE)


def check_source(*paths: str | os.PathLike[str] | None) -> None:
    """Refuse a path that is not a file; those that were not given are passed over."""
    for path in paths:
        if path is not None and not os.path.isfile(path):
            found = "is a folder, not a file" if os.path.isdir(path) else "no such file"
            raise InputError(f"{os.fspath(path)}: {found}")


def check_target(path: str | os.PathLike[str], option: str = "") -> None:
    """Refuse a path, given by a command's ``option``, that no file can be written to.

    It is best called before long work.
    """
    target = Path(path)
    named = f"{option} {target}".lstrip()
    if target.is_dir():
        raise InputError(f"{named}: is a folder; name a file in it")
    if not target.parent.is_dir():
        raise InputError(f"{named}: the folder {target.parent} does not exist; create it first")


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path`` and rename it there on success."""
    check_target(path)
    target = Path(path)
    temporary = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            error.filename = str(target)  # the name the user knows
        raise


def write_file(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a whole file, text as UTF-8, or leave what was there untouched."""
    with atomic_write(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def safe_cell(value: object) -> str:
    """A value as text, with an apostrophe before what a spreadsheet would take for a formula."""
    text = "" if value is None else str(value)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def write_csv(
    path: str | os.PathLike[str],
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    encoding: str = "utf-8",
) -> None:
    """Write a table with its header, or leave what was there untouched."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_file(path, text.getvalue().encode(encoding))

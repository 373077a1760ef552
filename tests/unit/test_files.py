import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideal_dispatch.errors import InputError
from ideal_dispatch.files import atomic_write, check_source, safe_cell, write_csv


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "x") as file:
            file.write(b"1")
            os.umask(0o077)  # another thread, in the middle of the write
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_errors_name_the_file_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder; name a file in it"):
        atomic_write(tmp_path).__enter__()
    with pytest.raises(OSError, match="File name too long") as caught:  # noqa: SIM117
        with atomic_write(tmp_path / ("x" * 300)) as file:
            file.write(b"1")
    assert caught.value.filename == str(tmp_path / ("x" * 300))
    with pytest.raises(OSError, match="No space left") as caught:  # noqa: SIM117
        with atomic_write(tmp_path / "y"):
            raise OSError(28, "No space left on device")
    assert caught.value.filename == str(tmp_path / "y")
    assert list(tmp_path.iterdir()) == []


def test_sources_are_files(tmp_path: Path) -> None:
    for path, message in ((tmp_path, "is a folder, not a file"), (tmp_path / "x", "no such file")):
        with pytest.raises(InputError, match=message):
            check_source(path)


def test_tables_are_written_whole_in_their_encoding(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_csv(path, ["name", "floor"], [["Ana, Bo", 3], ["地下", ""]], "big5hkscs")
    assert path.read_bytes().decode("big5hkscs") == 'name,floor\n"Ana, Bo",3\n地下,\n'
    with pytest.raises(UnicodeEncodeError):
        write_csv(path, ["name"], [["地下"]], "ascii")
    assert path.read_bytes().decode("big5hkscs").endswith("地下,\n"), "the old table stays"
    assert [one.name for one in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.parametrize(
    ("cell", "safe"),
    [
        ("=1+1", "'=1+1"), ("+cmd", "'+cmd"), ("-x", "'-x"), ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"), ("  =1", "'  =1"), ("\n-1", "'\n-1"), ("|calc", "'|calc"),
        ("＝1", "'＝1"), ("-1+2", "'-1+2"), ("-12.5", "-12.5"), ("+3", "+3"), ("-1e-3", "-1e-3"),
        (-2.5, "-2.5"), ("West", "West"), ("", ""), (None, ""), ("a=b", "a=b"),
    ],
)  # fmt: skip
def test_formulas_are_defused(cell: object, safe: str) -> None:
    assert safe_cell(cell) == safe


@given(st.text())
def test_no_cell_starts_as_a_formula(text: str) -> None:
    safe = safe_cell(text)
    assert safe in (text, f"'{text}")
    assert safe.strip()[:1] not in tuple("=@|＝＋－＠")
    if safe.strip()[:1] in ("+", "-"):
        float(safe)

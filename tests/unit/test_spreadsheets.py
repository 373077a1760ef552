"""Tables as people save them, down to what Excel adds and what its readers take away."""

from pathlib import Path

import pytest

from ideal_dispatch import spreadsheets

ROWS = [["id", "lon", "lat"], ["A", "7,01", "43,5"]]


def _table(file: Path) -> list[spreadsheets.Row]:
    return list(spreadsheets.open_table(file)[2])


def test_words_for_nothing_stay_words_in_a_workbook(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    words = ["NA", "N/A", "None", "null", "nan"]
    frame = pd.DataFrame({"name": [*words, None], "beds": [1, 2, 3, 4, 5, 6]})
    frame.to_excel(tmp_path / "depots.xlsx", index=False)
    assert [cells[0] for _, cells in _table(tmp_path / "depots.xlsx")] == ["name", *words, ""]


@pytest.mark.parametrize("line", ["sep=;", "SEP=;", "sep=;;;"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_line_that_tells_the_delimiter_is_no_header(
    tmp_path: Path, line: str, encoding: str
) -> None:
    text = "\r\n".join([line, *(";".join(cells) for cells in ROWS)])
    (tmp_path / "nodes.csv").write_bytes(text.encode(encoding))
    assert _table(tmp_path / "nodes.csv") == [(2, ROWS[0]), (3, ROWS[1])]
    _, _, given = spreadsheets.open_table(tmp_path / "nodes.csv", delimiter=";")
    assert next(given) == (2, ROWS[0])


def test_the_told_delimiter_counts_more_than_the_widths(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("sep=|\na,b,c|d\n1,2,3|4\n")
    assert _table(tmp_path / "x.csv") == [(2, ["a,b,c", "d"]), (3, ["1,2,3", "4"])]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_commas_within_the_cells_do_not_divide_them(tmp_path: Path, delimiter: str) -> None:
    rows = [["id", "lon,deg", "lat,deg"], *ROWS[1:]]
    (tmp_path / "x.csv").write_text("\n".join(delimiter.join(cells) for cells in rows))
    assert [cells for _, cells in _table(tmp_path / "x.csv")] == rows

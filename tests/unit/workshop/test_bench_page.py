"""The benchmark page: what a benchmark prints, with what was measured before."""

import re
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.table import ROOT
from workshop import bench_page

PAGE = "# Benchmarks\n\nBy hand.\n\n<!-- bench few: begin -->\n<!-- bench few: end -->\n\nEnd.\n"


def few(console: Console) -> None:
    table = Table(title="Few | things")
    table.add_column("what")
    table.add_column("[bold]ours[/]", justify="right")
    table.add_row("a | b", "1.0×")
    console.print(table)
    console.print("two cores")
    console.print("wrote out/bench/few.png")


def page_of(folder: Path, text: str = PAGE) -> Path:
    page = folder / "benchmarks.md"
    page.write_text(text)
    return page


def measure(page: Path, day: int, name: str = "few") -> None:
    newest = "\n\n".join(map(bench_page.markdown, bench_page.measured(few)))
    bench_page.write_part(page, name, f"**Measured 2026-01-{day:02}** at commit `abc`.\n\n{newest}")


def test_what_is_printed_becomes_markdown() -> None:
    table, line = bench_page.measured(few)
    assert bench_page.markdown(table).splitlines() == [
        "*Few \\| things*", "", "| what | ours |", "| --- | ---: |", "| a \\| b | 1.0× |",
    ]  # fmt: skip
    assert bench_page.markdown(line) == "two cores"


def test_the_newest_is_first_and_two_earlier_ones_stay(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    for day in range(1, 6):
        measure(page, day)
    text = page.read_text()
    assert re.findall(r"2026-01-0\d", text) == ["2026-01-05", "2026-01-04", "2026-01-03"]
    newest, _, earlier = text.partition("<details markdown>")
    assert "2026-01-05" in newest
    assert earlier.count("| a \\| b | 1.0× |") == 2
    assert text.startswith("# Benchmarks\n\nBy hand.\n\n<!-- bench few: begin -->\n")
    assert text.endswith("<!-- bench few: end -->\n\nEnd.\n")
    assert (text.count("begin"), text.count("<details"), text.count("</details>")) == (1, 1, 1)


def test_a_page_without_marks_gets_them_at_its_end(tmp_path: Path) -> None:
    page = page_of(tmp_path, "# Benchmarks\n")
    measure(page, 1)
    measure(page, 2, "others")
    text = page.read_text()
    assert text.startswith("# Benchmarks\n\n<!-- bench few: begin -->\n\n**Measured 2026-01-01**")
    assert text.index("bench few: end") < text.index("bench others: begin")
    assert text.endswith("<!-- bench others: end -->\n")


def test_the_conditions_name_day_commit_machine_and_peers() -> None:
    said = bench_page.conditions(ROOT)
    assert re.match(r"\*\*Measured \d{4}-\d\d-\d\d\*\* at commit `[0-9a-f]{12}`", said)
    assert re.search(r"\d+ cores.*; Python 3\.\d+.*numpy 2\..*networkx 3\.", said)
    assert "commit unknown" in bench_page.conditions(Path("/"))

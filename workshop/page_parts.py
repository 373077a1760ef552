"""Parts of a page that a command writes: what stands between two marks."""

from pathlib import Path

from ideal_dispatch.files import write_file


def replace_part(page: Path, mark: str, text: str) -> None:
    """Put ``text`` between the marks of a page."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    if not found or end not in rest:
        raise SystemExit(f"{page} has no marks {begin} … {end}; add them where the part belongs")
    write_file(page, f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}")

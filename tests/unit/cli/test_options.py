"""One rule for all commands that write: what is there stays unless --force is given."""

from pathlib import Path

import pytest
from rich.console import Console

from ideal_dispatch.cli import terminal
from ideal_dispatch.cli.options import check_file, check_folder
from ideal_dispatch.errors import InputError


def test_files(tmp_path: Path) -> None:
    there, new = tmp_path / "there", tmp_path / "new"
    there.touch()
    check_file(new, force=False)
    check_file(there, force=True)
    with pytest.raises(InputError, match="^-o .*there: is there already; add --force to overwrite"):
        check_file(there, force=False)
    for force in (False, True):
        with pytest.raises(InputError, match="there would be overwritten; choose another name"):
            check_file(there, force, [None, tmp_path / "." / "there"])
    with pytest.raises(InputError, match="^-o .*: is a folder; name a file in it"):
        check_file(tmp_path, force=True)
    with pytest.raises(InputError, match="^--map .*: the folder .*no does not exist; create it"):
        check_file(tmp_path / "no" / "x", force=False, option="--map")


def test_folders(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    check_folder(tmp_path, ("b", "c"), force=False)
    check_folder(tmp_path, ("a",), force=True)
    check_folder(tmp_path / "new" / "deep", ("a",), force=False)
    with pytest.raises(InputError, match="^-o .*: holds a already; add --force to overwrite it"):
        check_folder(tmp_path, ("b", "a"), force=False)
    with pytest.raises(InputError, match="a would be overwritten; choose another folder"):
        check_folder(tmp_path, ("a",), True, [tmp_path / "a"])
    with pytest.raises(InputError, match="is a file; name a folder"):
        check_folder(tmp_path / "a", ("b",), force=True)
    with pytest.raises(InputError, match="/a cannot be written to; choose another folder"):
        check_folder(tmp_path / "a" / "deep", ("b",), force=True)


def test_a_table_keeps_its_names_in_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "out", Console(width=80))
    header = ["strategy", "reached %", "mean s ↓", "P90 s ↓", "P95 s ↓", "<8 min ↑", "<12 min ↑"]
    terminal.print_table(header, [["long-policies, as set", *["+412.33"] * 6]])
    said = capsys.readouterr().out.splitlines()
    assert said[2].split() == ["long-policies,", "as", "set", *["+412.33"] * 6]

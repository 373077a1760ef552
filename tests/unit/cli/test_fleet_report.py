"""`ideal fleet report` on a small fleet."""

from pathlib import Path

import pytest

from ideal_dispatch.cli import fleet
from ideal_dispatch.cli.help import described
from ideal_dispatch.errors import InputError
from ideal_dispatch.fleet.run import run_fleet
from tests.unit.fleet.small_runs import SmallExperiment

report, _, _ = described(fleet.report)


def test_a_run_becomes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_fleet(SmallExperiment(years=1, days=2, log=False), tmp_path / "run")
    report(run=run)
    told = capsys.readouterr()
    assert told.out == f"wrote {run / 'fleet.html'}\n"
    assert "warning: 1 simulated year is few" in told.err
    text = (run / "fleet.html").read_text()
    assert "Smallville" in text
    assert "everything is invented" in text, "what was assumed"
    report(run=run)  # its own page is written anew
    mine = tmp_path / "mine.html"
    mine.write_text("years of work")
    with pytest.raises(InputError, match=r"mine.html: is there already; add --force to overwrite"):
        report(run=run, output=mine)
    assert mine.read_text() == "years of work"
    report(run=run, output=mine, force=True)
    assert mine.read_bytes() == (run / "fleet.html").read_bytes()


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no fleet simulation there, manifest.json is missing"):
        report(run=tmp_path)

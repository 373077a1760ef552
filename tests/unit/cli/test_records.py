import json
import shutil
from pathlib import Path

import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.records import Responses, Trips
from ideal_dispatch.records.report import FILES
from tests.conftest import ROOT
from tests.unit.cli.test_network_command import ideal

PREPARE = (
    "records", "prepare", "agency/records.csv", "--network", "agency/city.network",
    "--depots", "agency/depots.csv", "--config", "agency/agency.toml", "-o",
)  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the samples of `examples/data`."""
    folder = tmp_path_factory.mktemp("town")
    shutil.copytree(ROOT / "examples" / "data", folder / "agency")
    return folder


def test_from_the_sample_records_to_trips(place: Path) -> None:
    done = ideal(*PREPARE, "out/deep", cwd=place)
    for text in ("Exclusion rules", "Preparation by depot", "Words that were not understood",
                 "depot '=HYPERLINK(0)'", '"=HYPERLINK(0)" = ""', "[depots.aliases]",
                 "the same call and unit as in an earlier row", "wrote trips.trips"):  # fmt: skip
        assert text in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stderr == ""
    facts = json.loads((place / "out/deep/report.json").read_text())
    trips = Trips.load(place / "out/deep/trips.trips")
    assert len(trips) == facts["trips"]
    assert facts["rows"] == 1500 == facts["trips"] + facts["quarantined"] + facts["excluded"]
    assert sorted(path.name for path in (place / "out/deep").iterdir()) == sorted(FILES)
    again = ideal(*PREPARE, "out/deep", cwd=place, code=2)
    assert "holds trips.trips already; add --force to overwrite it" in again.stderr
    before = {name: (place / "out/deep" / name).read_bytes() for name in FILES}
    ideal(*PREPARE, "out/deep", "--force", cwd=place)
    assert before == {name: (place / "out/deep" / name).read_bytes() for name in FILES}


def test_nothing_usable_is_an_error_with_a_report(place: Path, tmp_path: Path) -> None:
    header, row = (place / "agency/records.csv").read_text().splitlines()[:2]
    (tmp_path / "bad.csv").write_text(f"{header}\n{row}\n".replace("117.", "17."))
    arguments = [str(tmp_path / "bad.csv") if "records.csv" in a else a for a in PREPARE]
    done = ideal(*arguments, str(tmp_path / "out"), cwd=place, code=2)
    assert "no usable trip remains; see" in done.stderr
    assert done.stderr.count("\n") == 1
    assert (tmp_path / "out/quarantine.csv").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("agency/records.csv", "none.csv"), "error: none.csv: no such file"),
        (("agency/records.csv", "agency"), "error: agency: is a folder, not a file"),
        (("agency/city.network", "agency/agency.toml"), "agency.toml: not a network file"),
        (("agency/agency.toml", "agency/depots.csv"), "depots.csv: not TOML"),
        (("agency/depots.csv", "agency/agency.toml"), "lng, x); name, lon and lat are"),
        (("agency/records.csv", "agency/city.network"), "is not utf-8; save the file"),
    ],
)
def test_bad_input_is_one_line_on_stderr(
    place: Path, tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    arguments = [change[1] if argument == change[0] else argument for argument in PREPARE]
    done = ideal(*arguments, str(tmp_path / "x"), cwd=place, code=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_the_output_is_a_folder_of_its_own(place: Path) -> None:
    done = ideal(*PREPARE, "agency/records.csv", cwd=place, code=2)
    assert "-o agency/records.csv: is a file; name a folder" in done.stderr


def test_inputs_are_never_overwritten(place: Path) -> None:
    (place / "report.json").write_bytes((place / "agency/records.csv").read_bytes())
    arguments = ["report.json" if a == "agency/records.csv" else a for a in PREPARE]
    done = ideal(*arguments, ".", "--force", cwd=place, code=2)
    assert "report.json would be overwritten; choose another folder" in done.stderr


RESPONSES = (
    "records", "responses", "log/unit_log.csv", "--config", "log/log.toml",
    "--stations", "log/depots.csv", "--network", "log/city.network", "-o",
)  # fmt: skip


@pytest.fixture(scope="module")
def log_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    shutil.copytree(ROOT / "examples" / "data", folder / "log")
    (folder / "log" / "unit_log.toml").rename(folder / "log" / "log.toml")
    return folder


def test_from_the_sample_log_to_responses(log_place: Path) -> None:
    done = ideal(*RESPONSES, "city.responses", cwd=log_place)
    for text in ("units on calls", "trips on the network", "recalled", "incident is missing",
                 "wrote city.responses, city.html, city.json, city.left_out.csv"):  # fmt: skip
        assert text in done.stdout
    assert "warning: 3 rows: turnout is negative" in done.stderr
    facts = json.loads((log_place / "city.json").read_text())
    found = Responses.load(log_place / "city.responses")
    assert len(found) == facts["responses"] > 150
    assert len(found.races()) == facts["races"] > 20
    again = ideal(*RESPONSES, "city.responses", cwd=log_place, code=2)
    assert "-o city.responses: is there already; add --force to overwrite it" in again.stderr
    ideal(*RESPONSES, "city.responses", "--force", cwd=log_place)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("log/none.csv",), "error: log/none.csv: no such file"),
        (("log/unit_log.csv",), "how is the log written? give a mapping, or a format of london"),
        (("log/unit_log.csv", "--format", "paris"), "format 'paris' is not known; one of london"),
        (("log/unit_log.csv", "--format", "datasf"), "no column 'Call Number' for incident"),
        (("log/unit_log.csv", "--format", "nemsis"), "[agency] is missing"),
        (("log/unit_log.csv", "--config", "leak.toml"), "column 'Arrival Order'"),
    ],
)
def test_logs_that_cannot_be_read(
    log_place: Path, arguments: tuple[str, ...], message: str
) -> None:
    settings = (log_place / "log/log.toml").read_text()
    leak = settings.replace('kind = "Type"', 'kind = "Arrival Order"')
    (log_place / "leak.toml").write_text(leak)
    done = ideal("records", "responses", *arguments, "-o", "x.responses", cwd=log_place, code=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (log_place / "x.responses").exists()


def test_insisting_on_the_order_of_arrival(log_place: Path, tmp_path: Path) -> None:
    settings = (log_place / "log/log.toml").read_text()
    (tmp_path / "leak.toml").write_text(settings.replace('"Type"', '"Arrival Order"'))
    told = [str(tmp_path / "leak.toml") if "log.toml" in word else word for word in RESPONSES]
    ideal(*told, str(tmp_path / "x.responses"), "--insist", cwd=log_place)
    assert set(Responses.load(tmp_path / "x.responses").kind) == {"", "1", "2"}


def test_no_usable_row_is_an_error_with_a_report(log_place: Path, tmp_path: Path) -> None:
    header = (log_place / "log/unit_log.csv").read_text().splitlines()[0]
    (tmp_path / "empty.csv").write_text(f"{header}\n{',' * header.count(',')}x\n")
    told = [str(tmp_path / "empty.csv") if "unit_log" in word else word for word in RESPONSES]
    done = ideal(*told, str(tmp_path / "x.responses"), cwd=log_place, code=2)
    assert "no usable row; see" in done.stderr
    assert (tmp_path / "x.html").exists()


def test_trips_of_a_log(log_place: Path, tmp_path: Path) -> None:
    trips = tmp_path / "x.trips"
    told = [*RESPONSES, str(tmp_path / "x.responses"), "--trips", str(trips)]
    done = ideal(*told, cwd=log_place)
    assert f"next: ideal train {trips} --network log/city.network" in done.stdout
    made = Trips.load(trips)
    assert len(made) == json.loads((tmp_path / "x.json").read_text())["trips"]["trips"] > 100
    made.check(RoadNetwork.load(log_place / "log/city.network"))
    page = ideal(*RESPONSES, "x.html", cwd=log_place, code=2)
    assert "-o x.html: name a file that ends in .responses" in page.stderr
    bare = [word for word in told if "network" not in word]
    again = ideal(*bare, cwd=log_place, code=2)
    assert "--trips needs --network: on which roads?" in again.stderr

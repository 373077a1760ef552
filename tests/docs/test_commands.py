"""Every command of the README and of the pages, run in the order in which a reader meets it.

A page begins with the files it speaks of, at the scale of a small town. What is
said otherwise than on the page is in ``OTHERS``; what would change the machine
is in ``ADMINISTRATION``, and only the pages for administrators have it.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pytest

from ideal_dispatch import Calendar, RoadNetwork
from ideal_dispatch.cities import HARBOUR_MODEL, harbour_city
from ideal_dispatch.network.readers import read_network
from ideal_dispatch.traffic.synthetic import SyntheticParams, synthetic_traffic
from tests.conftest import ROOT
from tests.docs.pages import PAGES, fences
from tests.docs.town import write_town
from tests.docs.workplace import Workplace
from tests.postgres import Postgres
from tests.service_town import Town
from tests.service_town import town as town
from tests.unit.traffic.small import recording

pytest.importorskip("torch", reason="the train extra is not installed")

ADMINISTRATION = (
    "python3 -m venv ", "ln ", "useradd ", "createuser ", "psql ", "systemctl ",
    "/opt/ideal-dispatch/1/bin/pip ", "/opt/ideal-dispatch/2/bin/pip ",
)  # fmt: skip
FOR_ADMINISTRATORS = {"deployment.md", "operations.md"}
QUICK = {"CONTRIBUTING.md", "networks.md", "quick_start.md", "dispatch.md"}
OTHERS = {
    "your_city.md": {
        "network city.network -o model": "network city.network -o model --epochs 2",
        "per_day = 60": "per_day = 10",
        "trips_per_day = 200": "trips_per_day = 40",
        "[policies.router]": "[training]\nepochs = 1\n\n[policies.router]",
    },
    "records.md": {},
    "README.md": {
        "ideal train": "ideal train --epochs 2",
        "--years 2": "--years 1",
    },
    "fleet.md": {
        "--years 2": "--years 1",
        "years = 20": "years = 1\ndays = 3",
    },
    "learning.md": {"ideal train": "ideal train --epochs 2"},
    "responses.md": {},
    "your_unit_log.md": {"ideal train": "ideal train --epochs 2"},
}
EXPERIMENT = """
training_days = 3
folds = 3
world = "experienced"
[city]
network = "../town.network"
depots = "../town.csv"
traffic = "../town.traffic"
[calls]
per_day = 10
contested = 3.0
margin_s = 1800
[past]
trips_per_day = 40
places = 3
every_s = 900
[training]
epochs = 1
[policies.router]
kind = "router"
[policies.ideal]
kind = "ideal"
method = "multistart"
"""


def commands(page: Path) -> list[str]:
    return [command for fence in fences(page) for command in fence.commands]


def run(page: Path, workplace: Workplace) -> None:
    """Write the files that a page shows, and run its commands."""
    for fence in fences(page):
        if fence.file:
            workplace.write(fence.file, fence.text)
        for command in fence.commands:
            if not command.startswith(ADMINISTRATION):
                workplace.run(command)


# --- what pages begin with ---------------------------------------------------


def shipped_model(folder: Path) -> None:
    shutil.copytree(HARBOUR_MODEL, folder / "model")


def city_traffic(folder: Path) -> None:
    city = harbour_city()
    params = SyntheticParams(days=1, first=date(2023, 5, 8), hours=((8, 9),))
    calendar = Calendar(city.time_zone, city.country)
    synthetic_traffic(city.network, calendar, params).save(folder / "city.traffic")


def centre(folder: Path) -> None:
    """The configuration of a centre, and what it names in a folder of its own."""
    city, files = harbour_city(), folder / "centre"
    files.mkdir()
    city.network.save(files / "city.network")
    rows = [f"{one.name},{city.network.lon[one.node]},{city.network.lat[one.node]}"
            for one in city.depots]  # fmt: skip
    (files / "depots.csv").write_text("\n".join(["name,lon,lat", *rows]))
    shutil.copytree(HARBOUR_MODEL, files / "model")
    (folder / "centre.toml").write_text(
        '[city]\nnetwork = "centre/city.network"\ndepots = "centre/depots.csv"\n'
        'time_zone = "Asia/Hong_Kong"\ncountry = "HK"\n[model]\nfolder = "centre/model"\n'
        '[audit]\nurl = "sqlite:///audit.db"\n'
        f'[[tokens]]\nname = "CAD"\nrole = "cad"\nsha256 = "{"0" * 63}1"\n'
    )


def experiments(folder: Path, grid: RoadNetwork) -> None:
    grid.save(folder / "town.network")
    recording(grid, days=4).save(folder / "town.traffic")
    rows = [f"{name},{grid.lon[node]},{grid.lat[node]}" for name, node in (("W", 0), ("E", 119))]
    (folder / "town.csv").write_text("\n".join(["name,lon,lat", *rows]))
    (folder / "experiments").mkdir()
    for name in ("port_almery", "nw_hk_island", "sha_tin"):
        carried = '[transfer]\nrun = "../out/nw_hk_island"\n' if name == "sha_tin" else ""
        text = f'name = "{name}"\n{EXPERIMENT}{carried}'
        (folder / "experiments" / f"{name}.toml").write_text(text)
    (folder / "out").mkdir(exist_ok=True)


def trips(folder: Path) -> None:
    """A network, and trips of three collections on it."""
    write_town(folder)
    read_network(folder / "city.osm.pbf").save(folder / "city.network")
    shutil.copy(folder / "city.network", folder / "town.network")
    your_city = {fence.file: fence.text for fence in fences(ROOT / "docs" / "your_city.md")}
    (folder / "agency.toml").write_text(your_city["agency.toml"])
    given = "--network city.network --depots depots.csv --config agency.toml"
    for source, name in (("records", "out"), ("newer", "newer")):
        Workplace(folder).run(f"ideal records prepare {source}.csv {given} -o {name}")
    shutil.copy(folder / "newer" / "trips.trips", folder / "local.trips")


# --- the pages -----------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(QUICK))
def test_commands_of_a_short_page(name: str, tmp_path: Path) -> None:
    makers: dict[str, list[Callable[[Path], None]]] = {
        "networks.md": [write_town],
        "dispatch.md": [shipped_model, city_traffic],
    }
    for make in makers.get(name, []):
        make(tmp_path)
    run(page_named(name), Workplace(tmp_path))


@pytest.mark.slow
def test_commands_of_your_own_city(tmp_path: Path) -> None:
    write_town(tmp_path)
    workplace = Workplace(tmp_path, OTHERS["your_city.md"])
    workplace.write("experiment.toml", (ROOT / "examples" / "experiment.toml").read_text())
    run(page_named("your_city.md"), workplace)
    assert (tmp_path / "run" / "experienced" / "all" / "response_times.json").exists()
    assert (tmp_path / "report" / "report.html").exists()


@pytest.mark.slow
def test_commands_of_the_service(tmp_path: Path) -> None:
    centre(tmp_path)
    run(page_named("service.md"), Workplace(tmp_path))


@pytest.mark.slow
def test_commands_of_records(tmp_path: Path) -> None:
    run(page_named("records.md"), Workplace(tmp_path, OTHERS["records.md"]))


@pytest.mark.slow
def test_commands_of_responses_and_races(tmp_path: Path) -> None:
    run(page_named("responses.md"), Workplace(tmp_path, OTHERS["responses.md"]))
    assert (tmp_path / "city.html").exists()
    assert (tmp_path / "out" / "races" / "races.json").exists()
    assert (tmp_path / "out" / "backtest" / "backtest.csv").exists()


@pytest.mark.slow
def test_commands_of_your_own_unit_log(tmp_path: Path) -> None:
    run(page_named("your_unit_log.md"), Workplace(tmp_path, OTHERS["your_unit_log.md"]))
    assert (tmp_path / "model" / "card.md").exists()


@pytest.mark.slow
def test_commands_of_fleets(tmp_path: Path) -> None:
    run(page_named("fleet.md"), Workplace(tmp_path, OTHERS["fleet.md"]))
    for name in ("fleet", "loads"):
        assert (tmp_path / "out" / name / "fleet.html").exists()


@pytest.mark.slow
def test_commands_of_replay(grid: RoadNetwork, tmp_path: Path) -> None:
    experiments(tmp_path, grid)
    run(page_named("replay.md"), Workplace(tmp_path))
    assert (tmp_path / "report" / "report.html").exists()


@pytest.mark.slow
def test_commands_of_traffic(tmp_path: Path) -> None:
    run(page_named("traffic.md"), Workplace(tmp_path))


@pytest.mark.slow
def test_commands_of_the_readme(grid: RoadNetwork, tmp_path: Path) -> None:
    centre(tmp_path)
    write_town(tmp_path)
    experiments(tmp_path, grid)
    run(page_named("README.md"), Workplace(tmp_path, OTHERS["README.md"]))


@pytest.mark.slow
def test_commands_of_learning(tmp_path: Path) -> None:
    trips(tmp_path)
    with _scheduler() as address:
        others = OTHERS["learning.md"] | {"scheduler.example:8786": address}
        run(page_named("learning.md"), Workplace(tmp_path, others))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FOR_ADMINISTRATORS))
def test_commands_for_administrators(
    name: str, town: Town, postgres: Postgres, tmp_path: Path
) -> None:
    """On a real PostgreSQL; the folders of the machine are folders of the test."""
    shutil.copytree(town.folder, tmp_path / "etc")
    (tmp_path / "etc" / "town.network").rename(tmp_path / "etc" / "city.network")
    config = (ROOT / "deploy" / "ideal.toml").read_text()
    (tmp_path / "etc" / "ideal.toml").write_text(config.replace("valhalla", "forecast"))
    others = {
        "/etc/ideal-dispatch/": "etc/",
        "/opt/ideal-dispatch/2/bin/ideal": "ideal",
        "postgresql://ideal_owner@/ideal": postgres.new_database(),
        "-o next-model": "-o next-model --epochs 1",
    }
    environment = {"IDEAL_DATABASE_URL": others["postgresql://ideal_owner@/ideal"]}
    workplace = Workplace(tmp_path, others, environment)
    if name == "operations.md":
        workplace.run("ideal serve --config etc/ideal.toml")  # which makes the tables
        trips(tmp_path)
        workplace.run(
            "ideal train out/trips.trips --network city.network -o served-model --epochs 1"
        )
    run(page_named(name), workplace)


def test_no_page_is_left_out() -> None:
    tested = QUICK | FOR_ADMINISTRATORS | set(OTHERS)
    tested |= {"service.md", "replay.md", "traffic.md"}
    assert {page.name for page in PAGES if commands(page)} == tested


def test_only_administrators_are_told_to_change_their_machine() -> None:
    for page in PAGES:
        others = [command for command in commands(page) if command.startswith(ADMINISTRATION)]
        assert not others or page.name in FOR_ADMINISTRATORS, others


def test_commands_begin_with_known_programs() -> None:
    known = re.compile(r"(make|(env \S+ )?ideal|mkdocs|/opt/ideal-dispatch/\d/bin/ideal) ")
    for page in PAGES:
        for command in commands(page):
            assert command.startswith(ADMINISTRATION) or known.match(f"{command} "), command


def page_named(name: str) -> Path:
    return next(page for page in PAGES if page.name == name)


@contextmanager
def _scheduler() -> Iterator[str]:
    """The address of a dask scheduler with a worker."""
    distributed = pytest.importorskip("distributed", reason="the cluster extra is not installed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        yield str(cluster.scheduler_address).removeprefix("tcp://")

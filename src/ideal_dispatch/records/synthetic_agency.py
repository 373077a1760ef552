"""The folder of an agency that does not exist: all that ``ideal records prepare`` needs."""

from collections.abc import Sequence
from pathlib import Path

from ideal_dispatch.files import atomic_write, write_csv
from ideal_dispatch.network import Depot, RoadNetwork
from ideal_dispatch.records.agency import AgencySettings
from ideal_dispatch.records.synthetic_records import SyntheticRecords
from ideal_dispatch.records.synthetic_weather import SyntheticWeather

FILES = ("records.csv", "truth.csv", "depots.csv", "weather.csv", "agency.toml", "city.network")

_SETTINGS = """\
# Settings of `ideal records prepare` for the synthetic records beside this file.
# docs/records.md describes every key. The columns need no mapping here: they
# have the names of the fields.

[agency]
name = "{name} Ambulance Service (synthetic)"
time_zone = "{time_zone}"
country = "{country}"

[input]
date_order = "dmy"

[weather]
source = "recorded"
files = ["weather.csv"]
name = "{weather}"
"""


def write_agency(
    folder: Path,
    records: SyntheticRecords,
    weather: SyntheticWeather,
    network: RoadNetwork,
    depots: Sequence[Depot],
    *,
    name: str,
    country: str,
    weather_name: str = "synthetic",
) -> AgencySettings:
    """Write :data:`FILES` into a folder, made where it is not there; gives the settings."""
    folder.mkdir(parents=True, exist_ok=True)
    records.save(folder / "records.csv")
    records.save_truth(folder / "truth.csv")
    weather.save(folder / "weather.csv")
    network.save(folder / "city.network")
    lon, lat = network.lon, network.lat
    rows = [
        (depot.name, f"A{number}", f"{lon[depot.node]:.6f}", f"{lat[depot.node]:.6f}")
        for number, depot in enumerate(depots, 1)
    ]
    write_csv(folder / "depots.csv", ("name", "call_sign", "lon", "lat"), rows)
    settings = _SETTINGS.format(
        name=name, time_zone=weather.time_zone, country=country, weather=weather_name
    )
    with atomic_write(folder / "agency.toml") as file:
        file.write(settings.encode())
    return AgencySettings.load(folder / "agency.toml")

"""A city: saved and loaded, made of one's own files, and the calls in it."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import Context, Weather, WeatherValue
from ideal_dispatch.cities import City, Hospital, harbour_city
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.network import Depot, RoadNetwork


@pytest.fixture
def hamlet() -> City:
    return City(
        name="Hamlet",
        network=RoadNetwork.from_arrays([0, 1], [1, 0], [50.0, 50.0]),
        depots=(Depot("Mill", 0),),
        hospitals=(Hospital("Infirmary", 1),),
        region=np.zeros(2, np.int32),
        districts=("Upper", "Lower"),
        district=np.array([0, 1], np.int32),
        time_zone="Asia/Hong_Kong",
        country="HK",
    )


def test_a_saved_city_comes_back(hamlet: City, tmp_path: Path) -> None:
    hamlet.save(tmp_path / "hamlet")
    again = City.load(tmp_path / "hamlet")
    assert again.network.checksum == hamlet.network.checksum
    assert again.depots == hamlet.depots
    assert again.hospitals == hamlet.hospitals
    assert again.node_districts == ("Upper", "Lower")


def test_a_territory_without_a_depot_is_refused(hamlet: City) -> None:
    with pytest.raises(InputError, match="region: every node needs one of 1 numbers from 0"):
        replace(hamlet, region=np.array([0, 1], np.int32))


def test_a_hospital_outside_the_network_is_refused(hamlet: City) -> None:
    with pytest.raises(InputError, match=r"Infirmary: 7 is not a node \(0 … 1\)"):
        replace(hamlet, hospitals=(Hospital("Infirmary", 7),))


def test_files_that_are_no_city(hamlet: City, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none.json: no such file"):
        City.load(tmp_path / "none")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(FileFormatError, match="bad.json: not a city file"):
        City.load(tmp_path / "bad")


# --- calls --------------------------------------------------------------------------

AT = datetime.fromisoformat("2025-01-24T08:16:00+08:00")


@pytest.fixture(scope="module")
def harbour() -> City:
    return harbour_city()


def test_a_call_at_a_node(harbour: City) -> None:
    situation = harbour.call(node=700, at=AT)
    assert (situation.incident.node, situation.incident.at) == (700, AT)
    assert [station.units for station in situation.stations] == [2, 2]
    assert harbour.model is not None
    expected = harbour.model.forecast(harbour.calendar.context(AT), harbour.network)
    for station in situation.stations:
        assert station.quote is not None
        quoted = station.quote.path.time_s(expected.nominal_times)
        assert station.quote.duration_s == pytest.approx(quoted)
    assert harbour.region is not None
    assert situation.region == harbour.region[700]


def test_a_call_at_a_place_with_units_weather_and_an_ambulance_sent(harbour: City) -> None:
    lon, lat = float(harbour.network.lon[700]), float(harbour.network.lat[700])
    context = Context(at=AT, weather=Weather(temperature_c=WeatherValue(4.0)))
    situation = harbour.call(
        lon=lon, lat=lat, at=AT, units={"Kelp Point": 0}, sent="Kelp Point", context=context
    )
    assert situation.incident.node == 700
    assert [station.units for station in situation.stations] == [0, 2]
    assert situation.sent is not None
    assert situation.sent.station == 0
    assert situation.context is context


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({}, "where is the call. Give node, or lon and lat"),
        ({"lon": 114.1}, "lon and lat belong together"),
        ({"node": 1, "lat": 22.0}, "both name the place of the call"),
        ({"node": 9999}, r"node 9999: not a node of the network \(0 … 1414\)"),
        (
            {"node": 1, "units": {"Kelp Pont": 1}},
            "depot Kelp Pont: no such depot; did you mean Kelp Point",
        ),
        ({"node": 1, "sent": "X"}, "depot X: no such depot; there are Kelp Point, Gannet Bay"),
        ({"node": 1, "at": datetime(2025, 1, 1)}, "zone"),
        ({"node": "700"}, r"node '700': not a node of the network \(0 … 1414\)"),
        ({"node": 1.0}, "node 1.0: not a node"),
        ({"node": 1, "units": {"Kelp Point": -1}}, "units of Kelp Point: -1; give a whole number"),
        ({"node": 1, "units": {"Kelp Point": 1.5}}, "units of Kelp Point: 1.5; give a whole"),
    ],
)
def test_calls_that_cannot_be(harbour: City, told: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        harbour.call(**told)  # type: ignore[arg-type]


def test_a_city_of_ones_own_files(harbour: City, tmp_path: Path) -> None:
    network = harbour.network
    network.save(tmp_path / "town.network")
    rows = [f"{d.name},{network.lon[d.node]},{network.lat[d.node]}" for d in harbour.depots]
    (tmp_path / "depots.csv").write_text("\n".join(["name,lon,lat", *rows]))
    files = (tmp_path / "town.network", tmp_path / "depots.csv")
    bare = City.from_files(*files, time_zone="Asia/Hong_Kong", country="HK")
    assert (bare.name, bare.depots, bare.model, bare.responses) == (
        "town",
        harbour.depots,
        None,
        None,
    )
    with pytest.raises(InputError, match="town: no travel times"):
        bare.call(node=700)
    assert harbour.model_folder is not None
    own = City.from_files(
        *files, time_zone="Asia/Hong_Kong", country="HK", model=harbour.model_folder
    )
    assert own.responses is not None
    ours, theirs = (city.call(node=700, at=AT) for city in (own, harbour))
    assert ours.region is None
    assert [s.quote and s.quote.duration_s for s in ours.stations] == [
        s.quote and s.quote.duration_s for s in theirs.stations
    ]
    bare.save(tmp_path / "again")
    assert City.load(tmp_path / "again").region is None
    (tmp_path / "depots.csv").write_text("name,lon,lat\nFar,7.0,43.0\n")
    with pytest.raises(InputError, match="no depot lies on this network; depot Far"):
        City.from_files(*files, time_zone="UTC", country="HK")


def test_depots_off_the_network_are_named(harbour: City, tmp_path: Path) -> None:
    network, kelp = harbour.network, harbour.depots[0]
    network.save(tmp_path / "town.network")
    near = f"{kelp.name},{network.lon[kelp.node]},{network.lat[kelp.node]}"
    (tmp_path / "depots.csv").write_text(f"name,lon,lat\n{near}\nFar,7.0,43.0\n")
    files = (tmp_path / "town.network", tmp_path / "depots.csv")
    with pytest.warns(
        UserWarning, match=r"1 of 2 depots left out, .*depot Far: .* 9,905.1 km away"
    ) as told:
        city = City.from_files(*files, time_zone="UTC", country="HK")
    assert city.depots == (kelp,)
    assert told[0].filename == __file__, "the warning is about the line that named the file"


def test_a_unit_on_the_road_needs_a_name_of_its_own() -> None:
    city = harbour_city()
    place = float(city.network.lon[700]), float(city.network.lat[700])
    call = city.call(node=650, on_road={"A7": place})
    assert [one.depot.name for one in call.stations if one.depot.on_road] == ["A7"]
    call = city.call(node=650, on_road={"A7": place}, kinds={"A7": "medic"})
    assert [one.depot.kind for one in call.stations if one.depot.kind] == ["medic"]
    with pytest.raises(InputError, match="unit Kelp Point on the road: a depot has that name"):
        city.call(node=650, on_road={"Kelp Point": place})

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ideal_dispatch import Responses
from ideal_dispatch.errors import InputError
from ideal_dispatch.records import responses as races
from tests.unit.records import logs

AT = np.datetime64("2023-05-01T10:00:00")


def _second(n: float) -> np.datetime64:
    return AT + np.timedelta64(int(n), "s")


def _two(stations: str = "SN", sent: tuple[int, int] = (0, 0), **columns: Any) -> Responses:
    """Two units on one call, there after 300 and 200 s."""
    usual = {
        "station": list(stations),
        "dispatched": [_second(n) for n in sent],
        "on_scene": [_second(300), _second(200)],
    }
    return Responses.of(["1", "1"], **usual | columns)


def test_a_race_and_its_order(tmp_path: Path) -> None:
    found = _two().races()
    assert len(found) == 1
    assert found.responses.station[found.rows[0]].tolist() == ["N", "S"]
    assert found.response_s.tolist() == [[200, 300]]
    assert dict(found.left_out) == {}
    assert found.date.astype(str).tolist() == ["2023-05-01"]


@pytest.mark.parametrize(
    ("responses", "why"),
    [
        (_two(sent=(0, 6)), races.APART),
        (_two("SS"), races.ONE_START),
        (_two(" S", station=["", "S"]), races.ONE_START),
        (_two(on_scene=[_second(300), np.datetime64("NaT")]), races.NEVER),
        (_two(attending=[3, 3]), races.OTHERS),
        (_two(on_scene=[_second(300), _second(-1)]), races.IMPOSSIBLE),
        (
            Responses.of(["1"] * 3, station=list("ABC"), dispatched=[AT] * 3, on_scene=[AT] * 3),
            races.MANY,
        ),
    ],
)
def test_what_is_no_race_is_counted(responses: Responses, why: str) -> None:
    found = responses.races()
    assert len(found) == 0
    assert dict(found.left_out) == {why: 1}


def test_how_far_apart_units_may_be_sent() -> None:
    assert len(_two(sent=(0, 5)).races()) == 1
    assert len(_two(sent=(0, 30)).races(together_s=30)) == 1
    assert len(_two(attending=[2, 2]).races()) == 1
    with pytest.raises(InputError, match="together_s -1: zero or more is needed"):
        _two().races(together_s=-1)


def test_units_of_one_kind_race() -> None:
    mixed = _two(kind=["ambulance", "medic"])
    assert len(mixed.races()) == 0
    assert len(mixed.races(kinds=("ambulance", "medic"))) == 1
    with pytest.raises(InputError, match="no unit is of kind 'engine'; the log has ambulance, me"):
        mixed.races(kinds=("engine",))


def test_starts_on_the_road_differ() -> None:
    places: dict[str, Any] = {"from_lon": [114.0, 114.1], "from_lat": [22.0, 22.0]}
    assert len(_two("SS", from_road=[True, False], **places).races()) == 1
    assert len(_two("  ", station=["", ""], **places).races()) == 1
    beside: dict[str, Any] = {"from_lon": [114.0, 114.0005], "from_lat": [22.0, 22.0]}
    assert dict(_two(**beside).races().left_out) == {races.ONE_START: 1}  # 52 m


def test_calls_apart(tmp_path: Path) -> None:
    rows = logs.PAIR + logs.PAIR.replace("1,A1", "2,A1").replace("1,B1", "2,B1")
    found = logs.responses(tmp_path, rows).races()
    assert found.responses.incident[found.rows].tolist() == [["1", "1"], ["2", "2"]]
    assert found.responses.unit[found.rows].tolist() == [["B1", "A1"], ["B1", "A1"]]
    assert found.select([1]).responses.incident[found.select([1]).rows].tolist() == [["2", "2"]]
    with pytest.raises(InputError, match="a race names a row that the responses do not have"):
        races.Races(found.responses, np.array([[0, 4]]))

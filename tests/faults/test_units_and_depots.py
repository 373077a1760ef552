"""No unit elsewhere, none anywhere, a depot that is none."""

from collections.abc import Iterator

import pytest

from ideal_dispatch.service.app import create_app
from tests.faults.service_faults import advised, codes, words
from tests.service_town import Local, Town, local


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    settings = town.settings("units.toml", units={"default": 0})
    with local(create_app(settings)) as opened:
        yield opened


def test_no_unit_at_the_other_depot(client: Local, town: Town) -> None:
    """The primary is enough, for there is nobody else."""
    body = town.call(primary={"depot": "D0"}, depots=[{"name": "D0", "units": 0}])
    made = advised(client, body)
    assert made.decision == "primary_only"
    assert made.second is None
    assert "no other unit on another road" in made.explanation.text


def test_no_unit_anywhere(client: Local, town: Town) -> None:
    for depots in ([], [{"name": "D0", "units": 0}], None):
        made = advised(client, town.call("none", depots=depots))
        assert made.decision == "no_advice"
        assert codes(made)[0] == "no_unit"
        assert made.headline == "No advice: no depot is known to have a free unit"


def test_unknown_depot_of_the_primary(client: Local, town: Town) -> None:
    made = advised(client, town.call(primary={"depot": "Depot 0"}))
    assert made.decision == "no_advice"
    assert words(made, "unknown_depot").startswith("no depot is called 'Depot 0'; ")
    made = advised(client, town.call(primary={"depot": "D0 "}))
    assert "did you mean D0?" in words(made, "unknown_depot")


def test_unknown_depot_among_the_candidates(client: Local, town: Town) -> None:
    """The others still count."""
    depots = [{"name": "Atlantis", "units": 5}, {"name": "D1", "units": 1}]
    made = advised(client, town.call(primary={"depot": "D0"}, depots=depots, threshold_s=-1.0))
    assert made.decision == "send_second"
    assert made.second is not None
    assert made.second.depot == "D1"
    assert "'Atlantis'" in words(made, "unknown_depot")

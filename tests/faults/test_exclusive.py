"""Two workers on one database, killed now and then, while everything changes at once.

``python -m benchmarks.exclusive`` does it with thousands of changes; see there what is looked at.
"""

from pathlib import Path

import pytest

from benchmarks.exclusive import run
from tests.postgres import Postgres


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_no_unit_is_held_twice_and_nothing_acknowledged_is_missing(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    database = f"sqlite:///{tmp_path}/record.db"
    if kind == "postgresql":
        postgres: Postgres = request.getfixturevalue("postgres")
        database = postgres.new_database()
    tally = run(tmp_path, database, operations=300, twin_count=10, seed=1, kill_every_s=2.0)
    assert tally.broken == []
    assert tally.acknowledged > 50
    assert tally.kills > 0
    assert tally.twins[200, 409] > 0
    assert set(tally.twins) <= {(200, 409), (0, 0)}

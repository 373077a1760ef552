"""A small town with two depots for tests of records."""

from pathlib import Path
from typing import Any

from ideal_dispatch import RoadNetwork
from ideal_dispatch.records.agency import AgencySettings
from ideal_dispatch.records.prepare import Prepared, prepare_records

HEADER = "call_id,call_at,en_route_at,on_scene_at,cpr_at,depot,lon,lat,floor"
AGENCY = {"time_zone": "Asia/Hong_Kong", "country": "HK"}
DEPOTS = "name,call_sign,lon,lat\nWest Side,A1,114.0,22.0\nEast-Side,A2,114.011,22.009\n"
GOOD = "1,2023-01-02 10:00:00,2023-01-02 10:01:30,2023-01-02 10:05:00,,West Side,114.008,22.004,"


def settings(**tables: Any) -> AgencySettings:
    """Settings of the town: its grid is small, so near trips count."""
    if "depots_table" in tables:  # `depots` is the file
        tables["depots"] = tables.pop("depots_table")
    exclusions = {"nearer_than_km": 0.1} | tables.pop("exclusions", {})
    return AgencySettings.of({"agency": AGENCY, "exclusions": exclusions, **tables})


def run(
    folder: Path,
    grid: RoadNetwork,
    rows: str | bytes,
    *,
    header: str = HEADER,
    depots: str = DEPOTS,
    name: str = "records.csv",
    **tables: Any,
) -> Prepared:
    """Prepare the given rows."""
    (folder / "depots.csv").write_text(depots)
    content = rows if isinstance(rows, bytes) else f"{header}\n{rows}\n".encode()
    (folder / name).write_bytes(content)
    return prepare_records(folder / name, grid, folder / "depots.csv", settings(**tables))

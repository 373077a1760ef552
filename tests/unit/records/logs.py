"""Small unit logs for tests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ideal_dispatch import Responses
from ideal_dispatch.records.response_log import LogSettings
from ideal_dispatch.records.response_reading import ReadLog, read_responses

AGENCY = {"time_zone": "Asia/Hong_Kong", "country": "HK"}
HEADER = "incident,unit,station,received,dispatched,en_route,on_scene,cleared,cancelled,lon,lat"
STATIONS = "name,lon,lat\nWest,114.0,22.0\nEast,114.011,22.009\n"
DAY = "2023-05-01 "
PAIR = (
    f"1,A1,West,{DAY}10:00:00,{DAY}10:00:30,10:01:30,10:05:00,,,114.005,22.004\n"
    f"1,B1,East,{DAY}10:00:00,{DAY}10:00:32,10:01:00,10:04:00,,,114.005,22.004\n"
)
"""Two ambulances sent to call 1 at once; the one of the East is there first."""


def read(
    folder: Path,
    rows: str,
    header: str = HEADER,
    *,
    format: str = "",  # noqa: A002
    stations: str | None = STATIONS,
    insist: bool = False,
    **tables: Any,
) -> ReadLog:
    """What is read of these rows, with the mapping of ``tables``."""
    mapping: Mapping[str, Any] = tables if format else {"agency": AGENCY, **tables}
    (folder / "log.csv").write_text(f"{header}\n{rows}")
    if stations is not None:
        (folder / "stations.csv").write_text(stations)
    book = None if stations is None else folder / "stations.csv"
    settings = LogSettings.given(format, mapping)
    return read_responses(folder / "log.csv", settings, book, insist=insist)


def responses(folder: Path, rows: str = PAIR, **how: Any) -> Responses:
    """The responses of these rows."""
    return read(folder, rows, **how).responses

"""What must hold of the statuses that a living city tells."""

from collections.abc import Iterable, Mapping
from typing import Any

POSSIBLE = {
    "at_station": {"dispatched", "out_of_service"},
    "available": {"dispatched", "at_station", "out_of_service"},
    "dispatched": {"en_route", "available", "at_station", "out_of_service"},
    "en_route": {"on_scene", "available", "at_station", "out_of_service"},
    "on_scene": {"transporting", "available", "at_station", "out_of_service"},
    "transporting": {"at_hospital"},
    "at_hospital": {"available", "at_station", "out_of_service"},
    "out_of_service": {"at_station", "available"},
}
AT_WORK = {"dispatched", "en_route", "on_scene", "transporting", "at_hospital"}


def check_statuses(news: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Every unit's statuses; each may follow the one before, and a call ends before the next."""
    last: dict[str, Mapping[str, Any]] = {}
    found: dict[str, list[str]] = {}
    for one in news:
        before = last.get(one["id"])
        if before is not None and before["status"] != one["status"]:
            assert one["status"] in POSSIBLE[before["status"]], (before, one)
        if before is not None:
            assert before["at"] <= one["at"], (before, one)
            if before["status"] in AT_WORK and one["status"] in AT_WORK:
                assert before["call_id"] == one["call_id"], (before, one)
        assert (one["call_id"] is not None) == (one["status"] in AT_WORK), one
        last[one["id"]] = one
        found.setdefault(one["id"], []).append(one["status"])
    return found

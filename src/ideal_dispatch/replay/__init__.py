"""Incidents driven again through a traffic world, under every policy alike."""

from ideal_dispatch.replay.drive import Drive, DriveError, World, drive
from ideal_dispatch.replay.hindsight import hindsight_optimum
from ideal_dispatch.replay.incidents import (
    RecordedCalls,
    read_incidents,
    sample_incidents,
    write_incidents,
)
from ideal_dispatch.replay.live import run_live
from ideal_dispatch.replay.log import read_log
from ideal_dispatch.replay.run import run_replay
from ideal_dispatch.replay.simulation import Replay, resimulate

__all__ = [
    "Drive",
    "DriveError",
    "RecordedCalls",
    "Replay",
    "World",
    "drive",
    "hindsight_optimum",
    "read_incidents",
    "read_log",
    "resimulate",
    "run_live",
    "run_replay",
    "sample_incidents",
    "write_incidents",
]

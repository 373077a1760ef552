"""Incidents driven again through recorded traffic, under every policy alike."""

from ideal_dispatch.replay.drive import Drive, DriveError, World, drive
from ideal_dispatch.replay.hindsight import hindsight_optimum
from ideal_dispatch.replay.incidents import RecordedCalls, sample_incidents
from ideal_dispatch.replay.live import run_live
from ideal_dispatch.replay.log import read_log
from ideal_dispatch.replay.run import run_replay
from ideal_dispatch.replay.simulation import Replay

__all__ = [
    "Drive",
    "DriveError",
    "RecordedCalls",
    "Replay",
    "World",
    "drive",
    "hindsight_optimum",
    "read_log",
    "run_live",
    "run_replay",
    "sample_incidents",
]

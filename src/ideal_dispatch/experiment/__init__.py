"""One engine for replays and fleets: a run's folder, and its cells done one by one."""

from ideal_dispatch.experiment.engine import Run, described, digest

__all__ = ["Run", "described", "digest"]

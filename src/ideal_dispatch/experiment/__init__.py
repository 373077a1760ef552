"""One engine for replays and fleets: a run's folder, and its cells done one by one."""

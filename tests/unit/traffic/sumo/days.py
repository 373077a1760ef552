"""Plans for tests."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from ideal_dispatch.traffic.sumo.network import is_installed
from ideal_dispatch.traffic.sumo.plan import DayPlan

DRY = ((20.0, 0.0, 70.0, 10.0, 1012.0),) * 25

needs_sumo = pytest.mark.skipif(not is_installed(), reason="SUMO is not here: the sumo extra")


def plan(**changes: Any) -> DayPlan:
    """A dry Tuesday morning, changed as asked."""
    tuesday = DayPlan(
        date(2025, 3, 4), "weekday", "Asia/Hong_Kong", ((7, 8),), 1.0, DRY, (), seed=11
    )
    return replace(tuesday, **changes)

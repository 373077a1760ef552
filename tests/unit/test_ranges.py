"""Numbers of settings: what is outside its range is refused in one line."""

import math
import re
from typing import Any

import numpy as np
import pytest

from ideal_dispatch.errors import InputError
from ideal_dispatch.learning.parameters import TrainParams
from ideal_dispatch.ranges import COUNT, POSITIVE, ZERO_OR_MORE, Range

HALF_OPEN = Range(0, 1, above=True)
SHARE = Range(0, 1)


@pytest.mark.parametrize(
    ("allowed", "value"),
    [
        (ZERO_OR_MORE, 0), (ZERO_OR_MORE, np.float32(2.5)), (POSITIVE, 1e-300), (SHARE, 1.0),
        (COUNT, np.int64(1)), (HALF_OPEN, 1),
    ],
)  # fmt: skip
def test_accepts(allowed: Range, value: Any) -> None:
    allowed.check(value, "x")


@pytest.mark.parametrize(
    ("allowed", "value", "said"),
    [
        (ZERO_OR_MORE, -1, "x -1: zero or more is needed"),
        (POSITIVE, np.float64(0), "x 0.0: more than 0 is needed"),
        (COUNT, 0, "x 0: at least 1 is needed"),
        (COUNT, 1.0, "x 1.0: a whole number is needed"),
        (COUNT, True, "x True: a whole number is needed"),
        (SHARE, 1.5, "x 1.5: 0 to 1 is needed"),
        (HALF_OPEN, 0, "x 0: more than 0 and at most 1 is needed"),
        (Range(0, 1, below=True), 1, "x 1: at least 0 and less than 1 is needed"),
        (SHARE, "1", "x '1': a number is needed"),
        (SHARE, None, "x None: a number is needed"),
        (ZERO_OR_MORE, math.inf, "x inf: a finite number is needed"),
        (ZERO_OR_MORE, math.nan, "x nan: a finite number is needed"),
    ],
)
def test_refuses(allowed: Range, value: Any, said: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(said)}$"):
        allowed.check(value, "x")


@pytest.mark.parametrize("power", ["x", 0, 1.5, math.nan])
def test_the_power_of_steps_is_a_number_above_0_and_at_most_1(power: Any) -> None:
    with pytest.raises(InputError, match=f"^step_power {power!r}: [^\n]* is needed"):
        TrainParams(step_power=power)

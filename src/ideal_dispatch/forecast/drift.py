"""Drift: what drives take beyond the router's quote, by road and hour.

A router that sees only the past is late at every rush hour: it promises too
little while traffic builds up and too much while it clears.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.context import Context, ContextEncoding
from ideal_dispatch.errors import FileFormatError, InputError
from ideal_dispatch.forecast.model import Model
from ideal_dispatch.network import RoadNetwork

PURPOSE = "drift"


@dataclass(frozen=True, slots=True, eq=False)
class DriftModel:
    """Expected realised minus quoted seconds of every edge in a context.

    ``model`` was trained on quoted paths with targets realised − quoted + base
    time, so that the drift of an edge is its nominal minus its base time. It
    keeps within the model's bounds of times.
    """

    model: Model

    def __post_init__(self) -> None:
        if self.model.details.get("purpose") != PURPOSE:
            raise InputError(
                "this model forecasts travel times, not the drift of quotes; fit one on a quote log"
            )

    def edge_drift_s(self, context: Context, network: RoadNetwork) -> FloatArray:
        """Seconds to add to the router's time of every edge; negative where it says too much."""
        row = drift_rows([context], self.model.encoding)
        nominal = self.model.forecast(row, network).nominal_times
        drift: FloatArray = nominal - self.model.base_ratio * network.free_flow_times_s
        return drift

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a model directory, with a card that says what the drift is for."""
        self.model.save(folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "DriftModel":
        """Read a directory, or say in one line why it holds no drift."""
        model = Model.load(folder)
        try:
            return cls(model)
        except InputError as error:
            raise FileFormatError(f"{os.fspath(folder)}: {error}") from None


def drift_rows(contexts: Sequence[Context], encoding: ContextEncoding) -> FloatArray:
    """Encoded contexts as a drift sees them: the hour with its minutes, and days off.

    All else is unknown, and "holiday" becomes any day off. A log has few days, and
    weekday and weather then mostly name the day: learning them gains nothing and
    loses new days.
    """
    columns, rows = encoding.columns, encoding.encode(contexts)
    seen = np.full(rows.shape, np.nan)
    holiday = columns.index("holiday")
    off = [columns.index("saturday"), columns.index("sunday"), holiday]
    seen[:, columns.index("hour")] = [c.at.hour + c.at.minute / 60 for c in contexts]
    seen[:, holiday] = rows[:, off].max(axis=1)
    return seen

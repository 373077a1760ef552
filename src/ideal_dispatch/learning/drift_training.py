"""Learning the drift of a router's quotes from a log of what it said and what came."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, date, datetime

import numpy as np

from ideal_dispatch.arrays import first_where
from ideal_dispatch.context import Context, ContextEncoding
from ideal_dispatch.errors import InputError
from ideal_dispatch.forecast.architecture import Architecture
from ideal_dispatch.forecast.drift import PURPOSE, DriftModel, drift_rows
from ideal_dispatch.learning.encoders import export
from ideal_dispatch.learning.lower_level import Routes
from ideal_dispatch.learning.parameters import TrainParams
from ideal_dispatch.learning.splits import local_days, split
from ideal_dispatch.learning.trainer import Trainer
from ideal_dispatch.learning.training import one_thread, versions
from ideal_dispatch.learning.training_data import TrainingData
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.records import Trips
from ideal_dispatch.traffic.quote_log import LogLine, QuoteLog

DRIFT_PARAMS = TrainParams(
    architecture=Architecture(dimension=8, width=32, location_waves=8, crossings=False),
    loss="huber", huber_s=30.0, learning_rate=2e-3, weight_decay=1e-2, dropout=0.0,
    trip_constant=False, epochs=12, batch_size=256, rarer_paths=False, patience=4, output="best",
)  # fmt: skip
"""A small network: days are few, and a larger one learns them by heart."""
_SHARES = (0.8, 0.2, 0.0)  # days to learn from, to stop with; the caller's test days are elsewhere


def fit_drift(
    network: RoadNetwork,
    log: QuoteLog,
    context: Callable[[datetime], Context],
    params: TrainParams = DRIFT_PARAMS,
    *,
    seed: int = 0,
) -> DriftModel:
    """What the quotes of a log missed on average, by edge and context.

    ``context`` knows the context of a moment, such as ``recording.context``.
    Quotes of which nobody knows what their path took are left out. A fifth of the
    days, by the contexts' zone, is held out to stop with. ``seed`` replaces that of
    ``params``.
    """
    if log.network_checksum != network.checksum:
        raise InputError(
            f"the quotes are of another network (checksum {log.network_checksum}, this one has "
            f"{network.checksum})"
        )
    if params.loss in ("relative", "log"):
        raise InputError(f"loss {params.loss!r}: a drift may be zero; choose squared or huber")
    if params.trip_constant:
        raise InputError("trip_constant true: a drift is of roads alone; choose false")
    lines = [line for line in log.lines if _usable(line)]
    if not lines:
        raise InputError(
            "no quote of the log says what its path took; record them from a world that knows"
        )
    params = replace(params, seed=seed)
    encoding = ContextEncoding()
    known = {at: context(at) for at in dict.fromkeys(line.asked_at for line in lines)}
    contexts = [known[line.asked_at] for line in lines]
    zone = contexts[0].at.tzinfo or UTC
    quoted_s = np.array([line.times["duration_s"] for line in lines])
    trips = Trips(
        origin=np.array([line.origin for line in lines]),
        destination=np.array([line.destination for line in lines]),
        observed_s=np.array([line.realised_s for line in lines]),
        contexts=drift_rows(contexts, encoding),
        encoding=encoding,
        at=np.array([int(line.asked_at.timestamp()) for line in lines]).astype("M8[s]"),
        network_checksum=network.checksum,
        provenance={"time_zone": str(zone)},
    )
    days = local_days(trips)
    if np.unique(days).size < 2:
        raise InputError("the quotes are of one day: at least two are needed, one to stop with")
    parts = split(trips, _SHARES, seed, "day")
    data = TrainingData.prepare(
        network, trips, parts, params, routes=_routes(lines, network), quoted_s=quoted_s
    )
    with one_thread():
        trainer = Trainer(data, params)
        trainer.run()
        model = export(trainer.finish(), data)
        held_out = parts.validation
        missed_s = data.target_s[held_out] - trainer.predict(held_out)
    before_s = trips.observed_s[held_out] - quoted_s[held_out]
    details = {
        "purpose": PURPOSE,
        "log": {
            "source": dict(log.source),
            "train": int(parts.train.size),
            "held_out": int(held_out.size),
            "held_out_days": [str(date.fromordinal(int(d))) for d in np.unique(days[held_out])],
            "left_out": len(log) - len(lines),
        },
        "held_out": {
            "quoted_mae_s": float(np.abs(before_s).mean()),
            "corrected_mae_s": float(np.abs(missed_s).mean()),
            "quoted_bias_s": float(before_s.mean()),
            "corrected_bias_s": float(missed_s.mean()),
        },
        "params": asdict(params),
        "history": [asdict(replace(epoch, seconds=0.0)) for epoch in trainer.history],
        "versions": versions(),
    }
    return DriftModel(replace(model, details=details))


def _usable(line: LogLine) -> bool:
    return bool(line.edges) and np.isfinite(line.realised_s) and line.realised_s > 0


def _routes(lines: Sequence[LogLine], network: RoadNetwork) -> Routes:
    edges = np.array([edge for line in lines for edge in line.edges], np.int64)
    wrong = first_where((edges < 0) | (edges >= network.num_edges))
    if wrong is not None:
        raise InputError(f"a quoted path has edge {edges[wrong]}, which is not in the network")
    counts = [len(line.edges) for line in lines]
    return Routes(edges, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))

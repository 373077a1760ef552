"""What policies were fitted with: one bundle for all policies of an experiment."""

from dataclasses import dataclass

from ideal_dispatch.dispatch.controls import Estimator
from ideal_dispatch.dispatch.expected_gain import GainModel
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.drift import DriftModel


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """The trained model, the drift of quotes, the spread of gains, and the learned trigger.

    ``paper_model`` is the same model with the radius of the paper's loss, and
    ``drift_gain`` the spread of gains where quotes are corrected by the drift.
    """

    model: Model | None = None
    drift: DriftModel | None = None
    gain: GainModel | None = None
    trigger: Estimator | None = None
    paper_model: Model | None = None
    drift_gain: GainModel | None = None

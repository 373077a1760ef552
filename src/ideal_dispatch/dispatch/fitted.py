"""What policies are fitted with: one bundle for all policies of an experiment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ideal_dispatch.dispatch.candidate import SecondKind
from ideal_dispatch.dispatch.controls import Estimator
from ideal_dispatch.dispatch.expected_gain import GainModel
from ideal_dispatch.dispatch.quarter_hours import QuarterHours
from ideal_dispatch.forecast import Model
from ideal_dispatch.forecast.drift import DriftModel

Trained = Literal["practical", "paper"]
"""How a network was trained: in our practical mode, or by the paper's Algorithm 1."""

Radius = Literal["calibrated", "paper"]
"""How its radius was: by a quantile loss with conformal scaling, or by the paper's
mean absolute error."""

Form = tuple[Trained, Radius]
USUAL: Form = ("practical", "calibrated")
"""The form of the model that policies take where they choose none."""

SecondKinds = tuple[SecondKind, ...]


@dataclass(frozen=True, slots=True, eq=False)
class FittedParts:
    """The trained model, the drift of quotes, the spread of gains, and the learned trigger.

    ``gain`` is the spread where the second is another depot's route, and
    ``drift_gain`` the same where quotes are corrected by the drift; ``gains``
    has those of policies that consider other kinds of second, by these kinds
    and whether the drift corrects. ``models`` has other forms of the model.
    ``hours`` and ``hours_gain`` are of the control that corrects by the clock.
    """

    model: Model | None = None
    drift: DriftModel | None = None
    gain: GainModel | None = None
    trigger: Estimator | None = None
    drift_gain: GainModel | None = None
    models: Mapping[Form, Model] = field(default_factory=dict)
    gains: Mapping[tuple[SecondKinds, bool], GainModel] = field(default_factory=dict)
    hours: QuarterHours | None = None
    hours_gain: GainModel | None = None

    def gain_for(self, kinds: SecondKinds, corrected: bool) -> GainModel | None:
        """The gain of a policy that considers these kinds of second."""
        usual = self.drift_gain if corrected else self.gain
        return self.gains.get((in_order(kinds), corrected), usual)


def in_order(kinds: SecondKinds) -> SecondKinds:
    """The kinds in the one order by which gains are kept."""
    return tuple(sorted(set(kinds)))

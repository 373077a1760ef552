"""Training from trips without recorded routes; only this package imports torch."""

from ideal_dispatch.errors import MissingExtraError

try:
    import torch  # noqa: F401
except ImportError:
    raise MissingExtraError("training a model", "train") from None

from ideal_dispatch.learning.parameters import RadiusParams, TrainingSettings, TrainParams
from ideal_dispatch.learning.splits import Split, split
from ideal_dispatch.learning.training import TrainedModel, TrainingProgress, fit

__all__ = [
    "RadiusParams",
    "Split",
    "TrainParams",
    "TrainedModel",
    "TrainingProgress",
    "TrainingSettings",
    "fit",
    "split",
]

"""The optimistic gap: Algorithm 2, starts that do better, and a proof."""

from ideal_dispatch.gap.dca import DcaStep, dca_steps
from ideal_dispatch.gap.explanation import GapExplanation, explain_gap
from ideal_dispatch.gap.optimistic_gap import OptimisticGap, optimistic_gap, pairwise_gap

__all__ = [
    "DcaStep", "GapExplanation", "OptimisticGap", "dca_steps", "explain_gap", "optimistic_gap",
    "pairwise_gap",
]  # fmt: skip

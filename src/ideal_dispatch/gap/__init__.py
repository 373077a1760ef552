"""The optimistic gap: Algorithm 2, starts that do better, and a proof."""

from ideal_dispatch.gap.explanation import Explanation, explain
from ideal_dispatch.gap.optimistic_gap import (
    OptimisticGap,
    PairwiseGap,
    optimistic_gap,
    pairwise_gap,
)

__all__ = [
    "Explanation",
    "OptimisticGap",
    "PairwiseGap",
    "explain",
    "optimistic_gap",
    "pairwise_gap",
]

"""The scenario set: edge travel times that one shared, perturbed metric can produce."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, IntArray, first_where, non_negative, read_only
from ideal_dispatch.errors import InputError
from ideal_dispatch.network import Path
from ideal_dispatch.scenarios import burg

_POSITIVITY = 1e-9  # a time this far below zero, against the metric's size, is rounding


@dataclass(frozen=True, eq=False, repr=False)
class ScenarioSet:
    """Edge times φᵀXφ for every metric X with D(X, I) ≤ ρ ([IDEAL] Burg scenario set).

    ``embeddings`` φ holds one row per edge, in the network's order; ``radius``
    is ρ. The set is nonempty, convex and compact ([IDEAL] Proposition 1): it
    contains the nominal times, X = I, and nothing else when ρ = 0. Rotating
    all embeddings changes nothing.
    """

    embeddings: FloatArray
    radius: float

    def __post_init__(self) -> None:
        embeddings = read_only(self.embeddings, np.float64, (None, None), "embeddings")
        if not embeddings.shape[1]:
            raise InputError("embeddings: each edge needs at least one number")
        object.__setattr__(self, "embeddings", embeddings)
        object.__setattr__(self, "radius", non_negative(self.radius, "radius"))
        edge = first_where(~np.isfinite(self.nominal_times))
        if edge is not None:
            finite = bool(np.isfinite(embeddings[edge]).all())
            raise InputError(
                f"edge {edge}: nominal time overflows; scale the embedding down" if finite
                else f"edge {edge}: embedding must be finite"
            )  # fmt: skip

    def __repr__(self) -> str:
        return f"ScenarioSet({self.num_edges:,} edges × {self.dimension}, radius {self.radius:g})"

    # --- what it is -------------------------------------------------------------

    @property
    def num_edges(self) -> int:
        return int(self.embeddings.shape[0])

    @property
    def dimension(self) -> int:
        """Length d of an embedding."""
        return int(self.embeddings.shape[1])

    @cached_property
    def nominal_times(self) -> FloatArray:
        """Seconds per edge at the identity metric, ĉ = ‖φ‖²."""
        with np.errstate(over="ignore"):
            times: FloatArray = np.einsum("ij,ij->i", self.embeddings, self.embeddings)
        times.flags.writeable = False
        return times

    @cached_property
    def eigenvalue_bounds(self) -> burg.EigenvalueBounds:
        """m_ρ and M_ρ, between which every metric of the set scales every time."""
        return burg.eigenvalue_bounds(self.radius)

    @cached_property
    def effective_rank(self) -> float:
        """How many directions the embeddings fill, from 1 to d; 0 if all are zero.

        The exponential of the entropy of the normalised eigenvalues of Σ φφᵀ
        (Roy and Vetterli, 2007). Near 1, all edges speed up and slow down together.
        """
        largest = np.abs(self.embeddings).max(initial=0.0)
        if largest == 0.0:
            return 0.0
        energy = np.linalg.svd(self.embeddings / largest, compute_uv=False) ** 2
        shares = energy[energy > 0.0] / energy.sum()
        return float(np.exp(-(shares * np.log(shares)).sum()))

    def correlation(self, first: npt.ArrayLike, second: npt.ArrayLike | None = None) -> FloatArray:
        """How the times of edges move together: one row per edge of ``first``.

        To second order the ball is ‖X − I‖²_F ≤ 2ρ, the same in every direction.
        For X = I + εH with H uniform on that sphere, which has the moments of
        independent Gaussian entries, those on the diagonal with twice the
        variance, cov(φᵀHφ, ψᵀHψ) ∝ (φᵀψ)². So the correlation is cos² of the
        angle between the embeddings: never negative, one for parallel ones.
        NaN where an embedding is zero, as that time never varies. ``second``
        is ``first`` when left out.
        """
        rows = self._edges(first)
        columns = rows if second is None else self._edges(second)
        cosines = self._unit_embeddings[rows] @ self._unit_embeddings[columns].T
        squares: FloatArray = np.minimum(cosines**2, 1.0)
        return squares

    @cached_property
    def _unit_embeddings(self) -> FloatArray:
        largest = np.abs(self.embeddings).max(axis=1, keepdims=True, initial=0.0)
        largest[largest == 0.0] = np.nan
        scaled = self.embeddings / largest
        units: FloatArray = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
        return units

    # --- scenarios --------------------------------------------------------------

    def contains(self, metric: npt.ArrayLike) -> bool:
        """Whether the metric lies in the ball, within the rounding of :func:`burg.contains`."""
        return burg.contains(self._metric(metric), self.radius)

    def times(self, metric: npt.ArrayLike, edges: npt.ArrayLike | None = None) -> FloatArray:
        """Seconds per edge under the metric, c(X) = φᵀXφ, of all edges or those given.

        The metric need not lie in the set, but must be positive definite up to
        rounding; a time that rounding leaves below zero becomes zero.
        """
        matrix = self._metric(metric)
        rows = self.embeddings if edges is None else self.embeddings[self._edges(edges)]
        times: FloatArray = np.einsum("ij,ij->i", rows @ matrix, rows)
        if times.size and times.min() < 0.0:
            rounding = _POSITIVITY * np.abs(matrix).max() * np.einsum("ij,ij->i", rows, rows)
            bad = first_where(times < -rounding)
            if bad is not None:
                edge = bad if edges is None else self._edges(edges)[bad]
                raise InputError(
                    f"metric: edge {edge} would take {times[bad]} s; it must be positive definite"
                )
            np.maximum(times, 0.0, out=times)
        return times

    def time_bounds(self) -> tuple[FloatArray, FloatArray]:
        """The least and the greatest seconds each edge can take: m_ρ ĉ and M_ρ ĉ.

        Both are attained, each edge by a metric of its own: an edge's direction
        φφᵀ has a single eigenvalue ĉ that is not zero, so in [IDEAL] Theorem 3
        only one eigenvalue of X* leaves 1 and it takes up the whole radius.
        """
        bounds = self.eigenvalue_bounds
        return bounds.lower * self.nominal_times, bounds.upper * self.nominal_times

    def path_matrix(self, edges: Path | npt.ArrayLike) -> FloatArray:
        """G(z) = Σ φφᵀ over the edges of a path; its time under X is ⟨G(z), X⟩.

        An edge that occurs twice counts twice.
        """
        rows = self.embeddings[self._edges(edges.edges if isinstance(edges, Path) else edges)]
        matrix: FloatArray = rows.T @ rows
        return matrix

    def sample(self, count: int, rng: np.random.Generator) -> FloatArray:
        """``count`` metrics of the set, (count, d, d), to draw or to average over.

        Each minimises a random direction with independent Gaussian entries
        (no rotation is preferred) over a smaller ball, whose radius is uniform
        between 0 and ρ ([IDEAL] Theorem 3). Every metric of the set can occur,
        as X minimises the direction X⁻¹ − I. Their divergence is uniform; they
        are not uniform in volume, and claim no probability of traffic.
        """
        metrics = np.empty((count, self.dimension, self.dimension))
        for metric in metrics:
            entries = rng.standard_normal((self.dimension, self.dimension))
            radius = self.radius * rng.random()
            metric[:] = burg.minimise_linear(entries + entries.T, radius).metric
        return metrics

    # --- checks -----------------------------------------------------------------

    def _metric(self, metric: npt.ArrayLike) -> FloatArray:
        matrix = burg.symmetric(metric, "metric")
        if len(matrix) != self.dimension:
            raise InputError(
                f"metric: expected {self.dimension} × {self.dimension} values, "
                f"got {len(matrix)} × {len(matrix)}"
            )
        return matrix

    def _edges(self, edges: npt.ArrayLike) -> IntArray:
        indices: IntArray = read_only(edges, np.int32, (None,), "edges")
        outside = first_where((indices < 0) | (indices >= self.num_edges))
        if outside is not None:
            raise InputError(
                f"edge {indices[outside]} is not in the scenario set (0 … {self.num_edges - 1})"
            )
        return indices

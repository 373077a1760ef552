"""A gap that is proved: the label search, and the record that lets anyone check it."""

import time
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ideal_dispatch.arrays import FloatArray, IntArray, frozen
from ideal_dispatch.compiled import plain
from ideal_dispatch.gap import certificate_kernels as kernels
from ideal_dispatch.gap.corridor import Corridor, least_gain, without_dead_ends
from ideal_dispatch.gap.problem import GapProblem

_FIRST_ROOM = 2048  # labels, memory taken only as used; an eighth of it bases
_NODES_PER_LOOK = 100_000  # searched at most between looks at the clock
_MOST_BYTES = 1_000_000_000
_ROUNDING = 1e-9  # of a length
_MOST_CORRIDOR = 8192  # edges: its spread takes time with their square
_SECONDS_PER_PAIR = 2e-9

Columns = TypeVar("Columns", kernels.Labels, kernels.Bases)


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """A tree of partial paths whose leaves cover every second path.

    Label i starts at a depot (``parent`` −1, ``node`` the depot) or extends its
    parent by edge ``via``. ``fate`` says why it is done: expanded (its outgoing
    edges that are no labels are bounded by its base), bounded by its own base,
    dominated by the label ``dominator`` at the same node, complete, or still
    open. Base j belongs to label ``base_label[j]`` and has the multiplier
    ``base_multiplier[j]``; see :mod:`ideal_dispatch.gap.certificate_kernels` for
    what a base proves. ``corridor_multiplier`` is empty, or holds a multiplier for
    every depot: the bases with these multipliers left the corridor, to which the
    tree keeps and whose spread its bases rely on. Nothing else is needed to check
    the tree.
    """

    node: IntArray
    parent: IntArray
    via: IntArray
    base: IntArray
    fate: IntArray
    dominator: IntArray
    base_label: IntArray
    base_multiplier: FloatArray
    corridor_multiplier: FloatArray

    def __len__(self) -> int:
        return int(self.parent.size)


class Search:
    """A proof that no second path has a largest advantage above ``target_s``, or such a path.

    With ``stop_at_found`` the first such path ends the search; without, it
    becomes the new target, so that a closed search proves the exact gap.
    """

    def __init__(self, problem: GapProblem, target_s: float, *, stop_at_found: bool) -> None:
        scenarios = problem.scenarios
        self._problem = problem
        claim = kernels.Claim(
            scenarios.embeddings,
            scenarios.nominal_times,
            problem.destination,
            problem.primary_matrix,
            scenarios.radius,
            scenarios.eigenvalue_bounds.upper_offset,
            stop_at_found,
        )
        self._claim = plain(claim)
        self._found_before: IntArray | None = None
        self._begin(target_s, Corridor.everywhere(problem), np.empty(0))

    def _begin(self, target_s: float, corridor: Corridor, corridor_multiplier: FloatArray) -> None:
        """The arrays of a search at its beginning; they grow by doubling."""
        problem = self._problem
        size, nodes = problem.scenarios.dimension, problem.network.num_nodes
        depots = problem.depots[np.isfinite(problem.nominal_to_destination[problem.depots])]
        count, room = depots.size, max(_FIRST_ROOM, 2 * depots.size)
        self._corridor, self._corridor_multiplier = plain(corridor), corridor_multiplier
        self._end = kernels.PAUSED
        self._counters = np.zeros(4, np.int64)
        self._target = np.array([target_s, -1.0])
        first_at = np.full(nodes, -1, np.int32)
        self._tally = kernels.Tally(self._counters, self._target, first_at)
        none, zero = np.full(count, -1, np.int32), np.zeros(count)
        # depots first, in their order, which is a heap: their bases bound everything
        order, first = np.arange(count, dtype=np.int32), np.full(count, -np.inf)
        roots = kernels.Labels(
            depots, none, none, zero, np.zeros((count, size, size)), none, zero,
            np.full(count, kernels.OPEN, np.uint8), none, none, first, order,
        )  # fmt: skip
        self._labels = _with_room(roots, room)
        no, numbers, matrices = none[:0], zero[:0], np.empty((0, size, size))
        bases = kernels.Bases(
            no, numbers, numbers, numbers, numbers, matrices, np.empty((0, nodes))
        )
        self._bases = _with_room(bases, max(room // 8, count + 1))
        first_at[depots] = order
        self._counters[[kernels.LABELS, kernels.WAITING]] = count

    def run(self, *, most_pops: int | None = None, time_limit_s: float = np.inf) -> "Search":
        """Go on for so many labels or seconds, or to the end."""
        started = time.perf_counter()
        counters, left = self._counters, np.inf if most_pops is None else most_pops
        pops_per_look = max(1, _NODES_PER_LOOK // self._problem.network.num_nodes)
        while self._end not in (kernels.CLOSED, kernels.FOUND) and left > 0:
            before = counters[kernels.POPS]
            self._end = kernels.explore(
                self._claim, self._corridor, int(min(left, pops_per_look)),
                *map(tuple, (self._tally, self._labels, self._bases)),
            )  # fmt: skip
            left -= counters[kernels.POPS] - before
            if self._end == kernels.LABELS_FULL:
                self._labels = _with_room(self._labels, 2 * self._labels.node.size)
            elif self._end == kernels.BASES_FULL:
                self._bases = _with_room(self._bases, 2 * self._bases.label.size)
            late = time.perf_counter() - started > time_limit_s
            if late and counters[kernels.POPS] >= self._problem.depots.size:
                break  # not before every depot has a bound
            if self._labels.matrix.nbytes + self._bases.ahead.nbytes > _MOST_BYTES:
                break
        return self

    def narrow(self, time_limit_s: float = np.inf) -> None:
        """Begin anew inside what the depots' bases leave possible, whose spread is then known.

        Where that is too much, or would last too long, all stays as it is.
        """
        self.run(most_pops=self._problem.depots.size - int(self._counters[kernels.POPS]))
        edges, multipliers = self._possible()
        edges = without_dead_ends(self._problem, edges)
        lasts_s = _SECONDS_PER_PAIR * edges.size**2
        if edges.size <= _MOST_CORRIDOR and lasts_s <= time_limit_s:
            self._found_before = self.found
            self._begin(float(self._target[0]), Corridor.of(self._problem, edges), multipliers)

    def _possible(self) -> tuple[IntArray, FloatArray]:
        """Edges of the paths that the depots' bases allow above the target, and multipliers."""
        network, embeddings = self._problem.network, self._problem.scenarios.embeddings
        inside = np.zeros(network.num_edges, np.bool_)
        multipliers = np.zeros(self._problem.depots.size)
        for base in range(self._counters[kernels.BASES]):
            label = self._bases.label[base]
            if self._labels.parent[label] >= 0:
                break
            depot, ahead = self._labels.node[label], self._bases.ahead[base]
            limit = self._bases.limit[base] * (1.0 + _ROUNDING)
            multipliers[self._problem.depots == depot] = self._bases.multiplier[base]
            lengths = kernels.corridor_lengths(
                network.head, embeddings, self._bases.metric[base], ahead, limit
            )
            behind = network.distances(lengths, int(depot))
            inside |= behind[network.tail] + lengths + ahead[network.head] < limit
        return np.flatnonzero(inside).astype(np.int32), multipliers

    # --- how far it came --------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether all is proved."""
        return bool(self._end == kernels.CLOSED)

    @property
    def found(self) -> IntArray | None:
        """Edges of the path whose largest advantage is the target, if the search found one."""
        label, edges = int(self._target[1]), []
        if label < 0:
            return self._found_before
        while self._labels.parent[label] >= 0:
            edges.append(self._labels.via[label])
            label = self._labels.parent[label]
        return np.array(edges[::-1], np.int32)

    @property
    def upper_s(self) -> float:
        """What is proved: no less than the target, and what open labels leave possible."""
        upper = float(self._target[0])
        labels, bases = self._labels, self._bases
        waiting = labels.waiting[: self._counters[kernels.WAITING]]
        for label in () if self.closed else waiting[labels.fate[waiting] == kernels.OPEN]:
            base = labels.base[label]
            if base < 0:  # a depot that was never looked at: the widest bound there is
                slowest = self._problem.scenarios.eigenvalue_bounds.upper
                upper = max(upper, slowest * float(np.trace(self._problem.primary_matrix)))
                continue
            gamma = bases.multiplier[base]
            length = labels.since_base[label] + bases.ahead[base, labels.node[label]]
            bound = float(
                bases.constant[base] - gamma * least_gain(length / gamma, bases.spread[base])
            )
            upper = max(upper, bound if np.isfinite(bound) else np.inf)
        return upper

    @property
    def proof(self) -> Proof:
        """The record of what is proved so far."""
        labels, bases = self._counters[[kernels.LABELS, kernels.BASES]]
        columns: dict[str, IntArray | FloatArray] = {
            name: getattr(self._labels, name)[:labels].astype(np.int32)
            for name in ("node", "parent", "via", "base", "fate", "dominator")
        }
        columns["base_label"] = self._bases.label[:bases].copy()
        columns["base_multiplier"] = self._bases.multiplier[:bases].copy()
        columns["corridor_multiplier"] = self._corridor_multiplier
        return Proof(**{name: frozen(column) for name, column in columns.items()})


def _with_room(columns: Columns, room: int) -> Columns:
    """The same columns with room for so many rows; memory is taken only as it is filled."""
    return type(columns)(*(_wider(each, room) for each in columns))


def _wider(column: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    wider = np.empty((room, *column.shape[1:]), column.dtype)
    wider[: len(column)] = column
    return wider

"""A cap on what a run may ask of a paid service."""

from collections import Counter
from collections.abc import Mapping
from threading import Lock

from ideal_dispatch.arrays import whole_number
from ideal_dispatch.errors import IdealError, InputError


class BudgetError(IdealError):
    """A run has used up the requests it was given."""


class RequestBudget:
    """How many requests a run may send, and how many it sent of each kind.

    A request counts when it is sent, whatever comes back: a retry counts again,
    a recorded answer does not count. Without a limit it only counts. What
    earlier runs sent can be counted first: the limit is then one for all of them.
    """

    def __init__(self, limit: int | None = None) -> None:
        if limit is not None and whole_number(limit, "request budget") < 0:
            raise InputError(f"request budget {limit}: zero or more is needed")
        self.limit = limit
        self._counts: Counter[str] = Counter()
        self._logged: dict[str, int] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"RequestBudget({self.spent} of {'any' if self.limit is None else self.limit})"

    @property
    def counts(self) -> Mapping[str, int]:
        """Requests sent so far by kind."""
        with self._lock:
            return dict(self._counts)

    @property
    def spent(self) -> int:
        """Requests sent so far."""
        return sum(self.counts.values())

    def add_earlier(self, log: str, total: int) -> None:
        """Count the ``total`` that ``log`` tells of, as far as it is not counted yet."""
        with self._lock:
            self._counts["earlier runs"] += max(0, total - self._logged.get(log, 0))
        self.logged(log, total)

    def logged(self, log: str, total: int) -> None:
        """Of what is counted, ``log`` now tells ``total``: it is not counted again."""
        with self._lock:
            self._logged[log] = total

    def spend(self, kind: str, count: int = 1) -> None:
        """Count what is about to be sent, or refuse it with a :class:`BudgetError`."""
        with self._lock:
            spent = self._counts.total()
            if self.limit is not None and spent + count > self.limit:
                raise BudgetError(
                    f"{kind}: {count} more would exceed the budget of {self.limit} requests "
                    f"({spent} sent); raise it to go on"
                )
            self._counts[kind] += count

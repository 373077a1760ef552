"""Errors of the service that a client can act on."""

from typing import Any

from ideal_dispatch.errors import IdealError, InputError


class ConflictError(IdealError):
    """A change that no longer holds, by a ``code`` for programs and ``words`` for people.

    ``extra`` are more fields of the refusal, such as ``reply``: the first answer to an advice.
    """

    def __init__(self, code: str, words: str, **extra: Any) -> None:
        super().__init__(words)
        self.code, self.extra = code, extra


class UnauthorizedError(IdealError):
    """No token, or one that is not configured."""


class BusyError(IdealError):
    """More calls wait than can be answered in time."""


class StartingError(IdealError):
    """A worker that cannot advise yet; another one may."""


class RecordUnavailableError(IdealError):
    """The database does not answer in time: nothing was changed."""


class ClosesTooMuchError(InputError):
    """A closure of more than a fifth of all edges that was not confirmed."""


class NoRecordError(InputError):
    """A database without our tables, where none are to be made."""

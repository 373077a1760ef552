"""Errors of the service that a client can act on: the API answers with their status and code."""

from typing import Any

from ideal_dispatch.errors import IdealError, InputError


class ServiceError(IdealError):
    """A refusal; ``extra`` are more fields of it, such as ``reply``: the first answer."""

    status: int
    code: str

    def __init__(self, words: str, **extra: Any) -> None:
        super().__init__(words)
        self.extra = extra


class ConflictError(ServiceError):
    """A change that no longer holds."""

    status = 409

    def __init__(self, code: str, words: str, **extra: Any) -> None:
        super().__init__(words, **extra)
        self.code = code


class UnauthorizedError(ServiceError):
    """No token, or one that is not configured."""

    status, code = 401, "unauthorized"


class BusyError(ServiceError):
    """More calls wait than can be answered in time."""

    status, code = 503, "busy"


class StartingError(ServiceError):
    """A worker that cannot advise yet; another one may."""

    status, code = 503, "starting"


class ClosesTooMuchError(ServiceError):
    """A closure of more than a fifth of all edges that was not confirmed."""

    status, code = 422, "closes_too_much"


class RecordUnavailableError(IdealError):
    """The database does not answer in time: nothing was changed."""


class NoRecordError(InputError):
    """A database without our tables, where none are to be made."""

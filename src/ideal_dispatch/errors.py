"""Exceptions by meaning. Every message is one line: what, where, what to do."""


class IdealError(Exception):
    """The base of everything this package raises on purpose."""


def in_one_line(error: IdealError | OSError) -> str:
    """The message for a user."""
    if isinstance(error, OSError) and not isinstance(error, IdealError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}"
    return str(error)


class InputError(IdealError, ValueError):
    """A value given by the caller cannot be used."""


class OffNetworkError(InputError):
    """A coordinate has no road of the network near it."""


class NoRouteError(InputError):
    """No free unit has a route to an incident."""


class UnreachableError(IdealError):
    """No path leads from the given sources to the target."""


class FileFormatError(IdealError):
    """A file is damaged, of another kind, or of a newer version."""


class MissingExtraError(IdealError, ImportError):
    """An optional dependency is needed and not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional part: pip install 'ideal-dispatch[{extra}]'")


class PluginError(IdealError):
    """A plug-in has a bug: the run ends, rather than leaving out a call."""


class PolicyError(PluginError):
    """A policy fails, or decides on a path that cannot be driven."""


class CertificateError(IdealError):
    """An answer's claims do not survive being checked."""


class WeatherError(IdealError):
    """A weather source cannot answer."""


class WeatherServiceError(WeatherError):
    """A weather service does not answer, or answers nonsense: ask again later."""


class TrafficError(IdealError):
    """A traffic source cannot answer."""


class TrafficServiceError(TrafficError):
    """A traffic service does not answer, or answers nonsense: ask again later."""

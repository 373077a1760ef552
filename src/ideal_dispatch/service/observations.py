"""Numbers about the service for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)


class Observations:
    """What one worker has seen; a registry of its own, so that tests do not share it."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.recommendations = Counter(
            "ideal_recommendations", "Answers by decision", ["decision"], registry=registry
        )
        self.degraded = Counter(
            "ideal_degraded", "Reasons given with answers", ["code"], registry=registry
        )
        self.refused = Counter("ideal_refused", "Requests refused", ["why"], registry=registry)
        self.repeated = Counter(
            "ideal_repeated", "Requests answered as before (same key)", registry=registry
        )
        self.responses = Counter(
            "ideal_responses", "What dispatchers did", ["action"], registry=registry
        )
        self.latency = Histogram(
            "ideal_latency_seconds", "From request to answer", buckets=_BUCKETS, registry=registry
        )
        self.inside = Gauge("ideal_calls_inside", "Being answered or waiting", registry=registry)
        self.listeners = Gauge("ideal_desks", "Desks that listen to events", registry=registry)
        self.spooled = Gauge("ideal_audit_waiting", "Entries in the spool", registry=registry)
        self.store_up = Gauge("ideal_audit_database_up", "1 if it answers", registry=registry)
        self.solvers = Gauge("ideal_solvers", "Solvers at work", registry=registry)
        self.solver_restarts = Gauge(
            "ideal_solver_restarts", "How often the solver was lost", registry=registry
        )
        self.weather_age = Gauge("ideal_weather_age_seconds", "NaN: unknown", registry=registry)

    def text(self) -> bytes:
        """The page that Prometheus reads."""
        return generate_latest(self.registry)

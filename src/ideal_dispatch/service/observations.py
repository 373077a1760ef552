"""Numbers about the service for Prometheus."""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)


class Observations:
    """What one worker has seen; a registry of its own, so that tests do not share it."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        self.recommendations = counter("ideal_recommendations", "Answers by decision", ["decision"])
        self.degraded = counter("ideal_degraded", "Reasons given with answers", ["code"])
        self.refused = counter("ideal_refused", "Requests refused", ["why"])
        self.repeated = counter("ideal_repeated", "Requests answered as before (same key)")
        self.replies = counter("ideal_responses", "What dispatchers did", ["action"])
        self.latency = Histogram(
            "ideal_latency_seconds", "From request to answer", buckets=_BUCKETS, registry=registry
        )
        self.inside = gauge("ideal_calls_inside", "Being answered or waiting")
        self.listeners = gauge("ideal_desks", "Desks that listen to events")
        self.spooled = gauge("ideal_audit_waiting", "Entries in the spool")
        self.store_up = gauge("ideal_audit_database_up", "1 if it answers")
        self.listening = gauge("ideal_audit_listening", "1 if PostgreSQL tells of new rows at once")
        self.webhooks_behind = gauge("ideal_webhook_behind", "Rows that wait to be sent", ["name"])
        self.webhooks_sent = counter("ideal_webhook_sent", "Rows sent", ["name", "outcome"])
        self.solvers = gauge("ideal_solvers", "Solvers at work")
        self.solver_restarts = gauge("ideal_solver_restarts", "How often the solver was lost")
        self.weather_age = gauge("ideal_weather_age_seconds", "NaN: unknown")

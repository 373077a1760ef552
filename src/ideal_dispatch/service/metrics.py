"""Numbers about one worker for Prometheus."""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)


class Metrics:
    """Counters and gauges in a registry of their own, so that tests do not share it."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        self.decisions = counter("ideal_recommendations", "Answers by decision", ["decision"])
        self.remarks = counter("ideal_degraded", "Remarks given with answers", ["code"])
        self.refused = counter("ideal_refused", "Requests refused, by code", ["code"])
        self.repeated = counter("ideal_repeated", "Requests answered as before (same key)")
        self.replies = counter("ideal_replies", "Replies of dispatchers", ["action"])
        self.latency = Histogram(
            "ideal_latency_seconds", "From request to answer", buckets=_BUCKETS, registry=registry
        )
        self.waiting = gauge("ideal_calls_waiting", "Calls being answered or waiting")
        self.hung = counter("ideal_hung_decisions", "Decision threads that were given up")
        self.listeners = gauge("ideal_listeners", "Open streams of events")
        self.database_up = gauge("ideal_database_up", "1 if the database answers")

    def page(self) -> bytes:
        """All of them in the text format of Prometheus."""
        return generate_latest(self.registry)

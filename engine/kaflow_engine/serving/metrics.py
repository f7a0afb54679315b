"""The metrics of a server, under the names that SQLFlow's has."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kaflow_engine.serving.kept import Keeper, Outcome

_NAME = "sqlflow_serve"
_SECONDS = tuple(0.001 * 2**n for n in range(15))
"""1 ms to 16 s."""


class ServeMetrics:
    """Counts requests, and how long they take."""

    def __init__(self, sessions: int, keeper: Keeper) -> None:
        of, all_of = ("dataset", "grain"), CollectorRegistry()
        self._registry = all_of
        self._requests = Counter(f"{_NAME}_requests", "Requests.", (*of, "code"), registry=all_of)
        self._took = Histogram(
            f"{_NAME}_request_duration_seconds",
            "How long a request took.",
            of,
            buckets=_SECONDS,
            registry=all_of,
        )
        self._queries = Histogram(
            f"{_NAME}_query_duration_seconds",
            "How long its SQL took.",
            of,
            buckets=_SECONDS,
            registry=all_of,
        )
        self._waits = Histogram(
            f"{_NAME}_session_wait_seconds",
            "Waiting for a session.",
            buckets=_SECONDS,
            registry=all_of,
        )
        self._kept = Counter(
            f"{_NAME}_cache_requests",
            "Requests whose answers are kept.",
            ("dataset", "outcome"),
            registry=all_of,
        )
        self._in_use = self._gauge("sessions_in_use", "Sessions at work.")
        self._gauge("sessions_total", "Sessions.").set(sessions)
        kept: dict[str, tuple[str, Callable[[], float]]] = {
            "cache_bytes": ("Bytes of kept answers.", lambda: keeper.size),
            "cache_entries": ("Kept answers.", lambda: len(keeper)),
            "cache_evictions": ("Answers that left for others.", lambda: keeper.evicted),
        }
        for name, (about, number) in kept.items():
            self._gauge(name, about).set_function(number)

    def _gauge(self, name: str, about: str) -> Gauge:
        return Gauge(f"{_NAME}_{name}", about, registry=self._registry)

    def answered(self, dataset: str, grain: str, code: str, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(dataset, grain, code).inc()
        self._took.labels(dataset, grain).observe(seconds)

    def queried(self, dataset: str, grain: str, waited: float, seconds: float) -> None:
        """Count a query."""
        self._waits.observe(waited)
        self._queries.labels(dataset, grain).observe(seconds)

    def kept(self, dataset: str, outcome: Outcome) -> None:
        """Count where an answer came from."""
        self._kept.labels(dataset, outcome).inc()

    def working(self, sessions: int) -> None:
        """Say how many sessions are at work."""
        self._in_use.set(sessions)

    def text(self) -> bytes:
        """Return all in the text format of Prometheus."""
        return generate_latest(self._registry)

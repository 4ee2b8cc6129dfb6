"""What a service counts, for Prometheus."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)


class Metrics:
    """Of one service."""

    def __init__(self, requests_now: Callable[[], int]) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "insnet_requests", "Requests answered, by path and status.", ["path", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "insnet_request_seconds", "How long requests took.", ["path"], buckets=_SECONDS, registry=self.registry
        )
        self._texts = Counter("insnet_texts", "Texts written.", registry=self.registry)
        now = Gauge("insnet_requests_now", "Requests that are worked for or wait.", registry=self.registry)
        now.set_function(requests_now)

    def count(self, path: str, status: int, seconds: float) -> None:
        """One more answer."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def count_texts(self, texts: int) -> None:
        """So many more texts."""
        self._texts.inc(texts)

    def page(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self.registry)

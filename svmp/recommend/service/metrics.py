"""What Prometheus may ask: how many requests of which kind, how long they took, which model."""

from __future__ import annotations

import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Metrics:
    """The figures of one service."""

    def __init__(self) -> None:
        self.registry = own = CollectorRegistry()
        self._requests = Counter(
            "svmp_requests", "Requests that were answered.", ("path", "status"), registry=own
        )
        self._seconds = Histogram(
            "svmp_request_seconds", "Until the answer.", ("path",), buckets=SECONDS, registry=own
        )
        self._known: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self.swapped = Counter("svmp_model_swaps", "New models taken over.", registry=own)
        self.refused = Counter("svmp_model_refusals", "Model files refused.", registry=own)
        self._since = Gauge("svmp_model_loaded_seconds", "When it was loaded.", registry=own)
        self._size = Gauge("svmp_model_size", "Users, items of it.", ("of",), registry=own)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        pair = self._known.get((path, status))
        if pair is None:
            pair = self._requests.labels(path, str(status)), self._seconds.labels(path)
            self._known[path, status] = pair
        pair[0].inc()
        pair[1].observe(seconds)

    def loaded(self, about: dict[str, Any]) -> None:
        """Note which model is in use."""
        self._since.set(time.time())
        for name in ("users", "items"):
            self._size.labels(name).set(about[name])

    def text(self) -> bytes:
        """Return all figures, in Prometheus's text format."""
        return generate_latest(self.registry)

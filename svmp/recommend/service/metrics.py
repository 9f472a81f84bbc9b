"""Metrics for Prometheus: numbers and durations of requests, and the model in use.

With several processes, each writes its metrics to files in the folder that the environment variable
FOLDER names, and the process that is asked adds them up.
"""

from __future__ import annotations

import os
import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

FOLDER = "PROMETHEUS_MULTIPROC_DIR"

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Metrics:
    """The metrics of one service."""

    def __init__(self) -> None:
        self.registry = own = CollectorRegistry()
        self._requests = Counter(
            "svmp_requests", "Answered requests.", ("path", "status"), registry=own
        )
        self._seconds = Histogram(
            "svmp_request_seconds", "Response time.", ("path",), buckets=SECONDS, registry=own
        )
        self._known: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self.swapped = Counter("svmp_model_swaps", "New models loaded.", registry=own)
        self.refused = Counter("svmp_model_refusals", "Model files refused.", registry=own)
        self._since = gauge("svmp_model_loaded_seconds", "Time of loading the model.", own)
        self._size = gauge("svmp_model_size", "Users and items of the model.", own, "of")

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        pair = self._known.get((path, status))
        if pair is None:
            pair = self._requests.labels(path, str(status)), self._seconds.labels(path)
            self._known[path, status] = pair
        pair[0].inc()
        pair[1].observe(seconds)

    def loaded(self, about: dict[str, Any]) -> None:
        """Record which model is in use."""
        self._since.set(time.time())
        for name in ("users", "items"):
            self._size.labels(name).set(about[name])

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        registry = self.registry
        if FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)
        return generate_latest(registry)


def gauge(name: str, text: str, registry: CollectorRegistry, *labels: str) -> Gauge:
    """Return a gauge whose most recent value, of any process, is reported."""
    return Gauge(name, text, labels, registry=registry, multiprocess_mode="mostrecent")

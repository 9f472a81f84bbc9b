"""Malformed and hostile requests: each is answered or refused, never 500, without delay."""

from __future__ import annotations

import asyncio
import logging
import resource
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import uvicorn

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

from svmp.lab import same_origin
from svmp.lab.app import make_app as make_lab
from svmp.lab.data import find_sources
from svmp.lab.process import RunEnd
from svmp.lab.runs import Runs
from svmp.recommend.service import demo
from svmp.recommend.service.app import make_app
from svmp.recommend.service.current import CurrentModel
from svmp.recommend.service.gateway import Limits
from svmp.recommend.service.metrics import Metrics
from svmp.web import LOCAL, body, listen
from svmp.web.connection import Config, ConnectionLimits

from .hostile import Hostile, answer_to

PATIENCE = 120.0
"""Seconds until one answer must be there, on a machine that is busy."""
BOUNDS = ConnectionLimits(head_seconds=0.3)
SERVICE: dict[str, dict[str, Any]] = {
    "/recommend": {"users": [1], "n": 3, "explore": None, "candidates": [1, 2], "exclude": [3]}
    | {"exclude_seen": True, "width": 1.0, "seed": 1, "level": 0.9, "unknown": "prior"},
    "/fold-in": {"history": [{"item": 1, "rating": 3}], "n": 3, "explore": "ucb", "level": 0.5},
    "/predict": {"users": [1], "items": [2], "level": 0.9, "unknown": "error", "history": None},
    "/similar": {"item": 1, "user": None, "n": 3},
    "/explain": {"items": [2], "user": None, "history": [{"item": 1, "rating": 2}]},
}
OPEN = ("/health", "/ready", "/items", "/model", "/metrics", "/openapi.json", "/", "/page/main.js")
RUN = {"data": "netflix-shaped", "scale": 0.002, "data_seed": 0, "factors": 2, "sweeps": 3}
LAB: dict[str, dict[str, Any]] = {
    "/api/runs": RUN | {"algorithm": "default", "seed": 0, "option": "a", "C": 1},
    "/api/runs/1/stop": {"x": 1},
}
PAGES = ("/", "/base.css", "/api/data", "/api/runs/1/script", "/static/main.js", "/api/runs/9")


class Idle:
    """A worker of the lab that does nothing."""

    stopping = False

    def start(self) -> None: ...

    async def run(self, request: Any, receive: Any) -> RunEnd:
        return RunEnd("converged")

    def stop(self) -> asyncio.Task[None]:
        self.stopping = True
        return asyncio.create_task(asyncio.sleep(0))


@contextmanager
def serving(app: Any, port: int, place: Any) -> Iterator[uvicorn.Server]:
    server = uvicorn.Server(Config(app, BOUNDS))
    thread = threading.Thread(target=server.run, args=([place],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield server
    finally:
        server.should_exit = True
        thread.join(PATIENCE)


@contextmanager
def service() -> Iterator[tuple[int, uvicorn.Server]]:
    metrics, limits = Metrics(), Limits(body=50_000, seconds=PATIENCE)
    current = CurrentModel(demo.MODEL, demo.TITLES, "demo", 100, metrics)
    with listen(LOCAL, 0, 0) as place:
        port = place.getsockname()[1]
        app = make_app(current, limits, metrics, None, port)
        with serving(app, port, place) as server:
            yield port, server


@contextmanager
def lab() -> Iterator[tuple[int, uvicorn.Server]]:
    with listen(LOCAL, 0, 0) as place:
        port = place.getsockname()[1]
        runs = Runs(Idle)  # type: ignore[arg-type]
        with serving(make_lab(runs, find_sources(None), port), port, place) as server:
            yield port, server


def campaign(kind: Any, count: int, seed: int, caplog: pytest.LogCaptureFixture) -> Counter[Any]:
    """Send requests from a few threads; return counts of the statuses."""
    found: Counter[Any] = Counter()
    lock = threading.Lock()
    with kind() as (port, server):
        host = f"{LOCAL}:{port}"

        def send(number: int) -> None:
            paths, bodies = (OPEN, SERVICE) if kind is service else (PAGES, LAB)
            more = () if kind is service else (f"Origin: http://{host}",)
            drawn = Hostile(seed + number, host, paths, bodies, more)
            sent = drawn.draw()
            statuses = answer_to(sent, port, PATIENCE)
            with lock:
                found.update(statuses or ["nothing"])
            wrong = statuses is None or any(s >= 500 and s != 505 for s in statuses)
            assert not wrong, (statuses, number, sent[:500])

        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with ThreadPoolExecutor(8) as senders:
            for _ in senders.map(send, range(count)):
                pass
        health = f"http://{host}/" + ("health" if kind is service else "api/data")
        assert httpx.get(health, timeout=PATIENCE).status_code == 200
        end = time.monotonic() + PATIENCE
        while server.server_state.connections and time.monotonic() < end:
            time.sleep(0.05)
        assert not server.server_state.connections
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert after - before < 300_000  # kilobytes
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert not errors, errors[0].getMessage()
    return found


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a shorter time limit for bodies than the default."""
    usual = body.read_body

    async def read_body(receive: Any, most: int, seconds: float) -> bytes | None:
        return await usual(receive, most, min(seconds, 0.3))

    monkeypatch.setattr("svmp.recommend.service.gateway.read_body", read_body)
    monkeypatch.setattr(same_origin, "read_body", read_body)
    monkeypatch.setattr(body, "LINGER", 0.1)


@pytest.mark.parametrize("kind", [service, lab])
def test_few_hundred_hostile_requests(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    found = campaign(kind, 300, 0, caplog)
    assert {400, 404, 408, 413, 422} & set(found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [service, lab])
def test_ten_thousand_hostile_requests(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    found = campaign(kind, 10_000, 1_000_000, caplog)
    assert {200, 400, 404, 405, 408, 413, 415, 422} <= set(found) | {415}

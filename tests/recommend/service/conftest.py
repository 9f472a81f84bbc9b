"""Services for the tests: in this process, and by the executable."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import uvicorn

from svmp.recommend import EventModel
from svmp.recommend.service import demo
from svmp.recommend.service.app import make_app
from svmp.recommend.service.current import CurrentModel
from svmp.recommend.service.gateway import Gateway, Limits
from svmp.recommend.service.metrics import Metrics
from svmp.recommend.service.serve import configured
from svmp.web import LOCAL, listen
from tests.recommend.tools import fitted

ROOT = Path(__file__).parents[3]
SVMP = Path(sys.executable).parent / "svmp"
KINDS = ("numbers", "words", "events")
PATIENCE = 120
"""Seconds to wait for what takes a moment, on a machine that is busy."""


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "this takes too long"
        time.sleep(0.02)


@cache
def events() -> EventModel:
    """Two groups of users with separate items, with string ids."""
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 40, 600), rng.integers(0, 15, 600)
    names = [f"it{i:02}" for i in item + 15 * (user % 2)]
    return EventModel(2, iterations=3, hold=2, counts=True, progress=False, threads=1).fit(
        (user, names)
    )


@cache
def saved(kind: str, folder: Path) -> Path:
    """Return a folder with a model."""
    if kind == "demo":
        return demo.MODEL
    path = folder / f"{kind}.svmp"
    (events() if kind == "events" else fitted(words=kind == "words")).save(path)
    return path


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def app_of(
    path: Path, limits: Limits | None = None, items: Path | None = None, **options: Any
) -> tuple[Gateway, CurrentModel]:
    limits, metrics = limits or Limits(), Metrics()
    titles = demo.TITLES if path == demo.MODEL else None
    current = CurrentModel(path, titles, path.name, limits.batch, metrics, items=items)
    settings = {"token": None, "port": None, **options}
    return make_app(current, limits, metrics, **settings), current


@contextmanager
def client_of(path: Path, limits: Limits | None = None, **options: Any) -> Iterator[httpx.Client]:
    """Ask a service that runs in a thread of this process."""
    app, _ = app_of(path, limits, **options)
    with listen(LOCAL, 0, 0) as place:
        server = uvicorn.Server(configured(lambda: app))
        thread = threading.Thread(target=server.run, args=([place],))
        thread.start()
        wait_for(lambda: server.started)
        try:
            address = f"http://{LOCAL}:{place.getsockname()[1]}"
            with httpx.Client(base_url=address, timeout=PATIENCE) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join(PATIENCE)


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def client(kind: str, folder: Path) -> Iterator[httpx.Client]:
    """A service of each kind of model."""
    with client_of(saved(kind, folder)) as client:
        yield client


@pytest.fixture(scope="module")
def films() -> Iterator[httpx.Client]:
    """The demo."""
    with client_of(demo.MODEL) as client:
        yield client


@contextmanager
def started(*arguments: object, **variables: str) -> Iterator[tuple[httpx.Client, Any]]:
    """Start the executable; yield a client, and the process."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [SVMP, "recommend", "serve", *map(str, arguments), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "error", **variables},
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        address = re.search(r"http://\S+:\d+/", said)
        assert address, said + process.communicate()[1]
        with httpx.Client(base_url=address[0], timeout=PATIENCE) as client:
            yield client, process
    finally:
        process.kill()
        process.communicate()

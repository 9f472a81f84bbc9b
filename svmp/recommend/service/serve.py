"""Serve a model until Ctrl-C."""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from svmp.errors import SvmpError
from svmp.kernels.threads import number_of_threads
from svmp.recommend.service.app import make_app
from svmp.recommend.service.current import Current
from svmp.recommend.service.demo import MODEL, TITLES
from svmp.recommend.service.front import Front, Limits
from svmp.recommend.service.metrics import FOLDER, Metrics
from svmp.web import LOCAL, listen

PORT = 8015
"""Where the service is, unless another port is named or something else is there."""
CONNECTIONS = 1_000
MOST_WORKERS = 4
"""Processes that answer where nobody says how many: one for each core, up to so many."""
SWITCH = 0.0005
"""Seconds that a request waits, at a time, for the thread that loads models and ranks batches."""


@dataclass(frozen=True)
class Application:
    """What a process makes its application of: uvicorn calls it in each."""

    model: Path
    titles: Path | None
    name: str
    token: str | None
    limits: Limits
    port: int | None
    encoding: str = "utf-8"

    def __call__(self) -> Front:
        """Load the model, and make the application that answers from it."""
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
        metrics = Metrics()
        files = self.model, self.titles, self.name
        current = Current(*files, self.limits.batch, metrics, self.encoding)
        gc.collect()
        gc.freeze()  # what is here stays: no request shall wait while it is looked through again
        sys.setswitchinterval(SWITCH)
        parent = multiprocessing.parent_process()
        if parent is not None:
            threading.Thread(target=end_with, args=(parent,), daemon=True).start()
        return make_app(current, self.limits, metrics, self.token, self.port)


def end_with(parent: Any) -> None:
    """End this process when the one that started it ends, however that comes about."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def serve(
    model: Path | None = None,
    titles: Path | None = None,
    host: str = LOCAL,
    port: int | None = None,
    token: str | None = None,
    limits: Limits | None = None,
    opens: bool = False,
    workers: int | None = None,
    encoding: str = "utf-8",
) -> None:
    """Serve a model, or the demo if none is named, from so many processes."""
    workers = workers or min(number_of_threads(), MOST_WORKERS)
    if token is not None and not token.strip():
        raise SvmpError("--token: the token is empty; give another, or none")
    name = "Demo, with films that do not exist" if model is None else model.name
    if model is None:
        model, titles = MODEL, titles or TITLES
    try:
        place = listen(host, port, PORT)
    except OSError as error:
        where = host if port is None else f"{host}:{port}"
        raise SvmpError(f"it cannot listen at {where}: {error.strerror}") from None
    port = place.getsockname()[1]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    own = port if is_local(host) else None
    make = Application(model, titles, name, token, limits or Limits(), own, encoding)

    def announce() -> None:
        print(f"{model.name} is served at {address} (Ctrl-C ends it)", flush=True)
        if token is None and own is None:
            logging.getLogger("svmp.serve").warning(
                "whoever reaches this machine may ask; --token lets in only those who have it"
            )
        if opens:
            webbrowser.open(address)

    with place, contextlib.suppress(KeyboardInterrupt):
        if workers == 1:
            app = make()
            announce()
            uvicorn.Server(configured(lambda: app)).run(sockets=[place])
        else:
            make()  # what is wrong with the model is said here, once
            announce()
            with tempfile.TemporaryDirectory() as folder:
                os.environ[FOLDER] = folder
                Multiprocess(configured(make, workers), [place]).run()


def configured(make: Callable[[], Front], workers: int = 1) -> uvicorn.Config:
    """Return how uvicorn serves an application."""
    return uvicorn.Config(
        make,
        factory=True,
        workers=workers,
        ws="none",
        proxy_headers=False,
        server_header=False,
        log_level="error",
        access_log=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=5,
    )


def is_local(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

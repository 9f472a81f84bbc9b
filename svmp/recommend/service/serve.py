"""Serve a model until Ctrl-C."""

from __future__ import annotations

import contextlib
import gc
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
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from svmp.errors import SvmpError
from svmp.interrupts import ignored
from svmp.kernels.machine.threads import number_of_threads
from svmp.recommend.service.app import make_app
from svmp.recommend.service.current import CurrentModel
from svmp.recommend.service.demo import MODEL, TITLES
from svmp.recommend.service.gateway import Gateway, Limits
from svmp.recommend.service.metrics import FOLDER, Metrics
from svmp.web import LOCAL, is_local, listen
from svmp.web.connection import Config, ConnectionLimits

PORT = 8015
"""Default port; if it is in use, any free one."""
CONNECTIONS = 1_000
CANNOT_START = 3
"""uvicorn's exit code of a process that cannot load the model."""
MOST_WORKERS = 4
"""By default there is one process per core, up to this number."""
SWITCH = 0.0005
"""Switch interval of Python threads in seconds: how long a request waits for the thread that loads
models and ranks batches."""


@dataclass(frozen=True)
class Application:
    """Factory of the application, which uvicorn calls in each process."""

    model: Path
    titles: Path | None
    name: str
    token: str | None
    limits: Limits
    port: int | None
    encoding: str = "utf-8"
    items: Path | None = None

    def __call__(self) -> Gateway:
        """Load the model, and return the application that answers from it."""
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
        metrics = Metrics()
        files = self.model, self.titles, self.name
        batch, text = self.limits.batch, self.encoding
        current = CurrentModel(*files, batch, metrics, text, self.items)
        gc.collect()
        gc.freeze()  # these objects stay: do not delay requests by scanning them again
        sys.setswitchinterval(SWITCH)
        parent = multiprocessing.parent_process()
        if parent is not None:
            threading.Thread(target=end_with, args=(parent,), daemon=True).start()
        return make_app(current, self.limits, metrics, self.token, self.port)


class Workers(Multiprocess):
    """Worker processes; one that ends is replaced.

    uvicorn would also kill a process that does not respond within five seconds. On a busy machine
    imports alone take longer, and processes would be killed and restarted forever.
    """

    def init_processes(self) -> None:
        """Start all processes."""
        self.processes = [self._start() for _ in range(self.processes_num)]

    def keep_subprocess_alive(self) -> None:
        """Restart processes that have ended; stop all if one cannot load the model."""
        for index, process in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            if process.process.is_alive():
                continue
            process.join()
            if process.exitcode == CANNOT_START:
                self.should_exit.set()
            else:
                self.processes[index] = self._start()

    def _start(self) -> Process:
        process = Process(self.config, self.sockets)
        with ignored():
            process.start()
        return process


def end_with(parent: Any) -> None:
    """End this process when its parent ends, for whatever reason."""
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
    items: Path | None = None,
) -> None:
    """Serve a model, or by default the demo, until Ctrl-C."""
    workers = workers or min(number_of_threads(), MOST_WORKERS)
    if token is not None and not token.strip():
        raise SvmpError("--token: the token is empty; give another, or none")
    name = "Demo, with invented films" if model is None else model.name
    if model is None:
        model, titles = MODEL, titles or TITLES
    try:
        place = listen(host, port, PORT)
    except OSError as error:
        where = host if port is None else f"{host}:{port}"
        raise SvmpError(f"cannot listen at {where}: {error.strerror}") from None
    port = place.getsockname()[1]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    own = port if is_local(host) else None
    files = model, titles, name
    make = Application(*files, token, limits or Limits(), own, encoding, items)

    def announce() -> None:
        print(f"{model.name} is served at {address} (Ctrl-C ends it)", flush=True)
        if token is None and own is None:
            logging.getLogger("svmp.serve").warning(
                "anyone who reaches this machine can use the service; --token restricts access"
            )
        if opens:
            webbrowser.open(address)

    with place, contextlib.suppress(KeyboardInterrupt):
        if workers == 1:
            app = make()
            announce()
            uvicorn.Server(configured(lambda: app)).run(sockets=[place])
        else:
            make()  # report errors of the model here, once
            announce()
            with tempfile.TemporaryDirectory() as folder:
                os.environ[FOLDER] = folder
                Workers(configured(make, workers), [place]).run()


def configured(make: Callable[[], Gateway], workers: int = 1) -> Config:
    """Return the configuration of uvicorn for an application."""
    return Config(
        make,
        ConnectionLimits(CONNECTIONS),
        factory=True,
        workers=workers,
        timeout_graceful_shutdown=5,
    )

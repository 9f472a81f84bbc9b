"""Serve a model until Ctrl-C."""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import logging
import sys
import webbrowser
from pathlib import Path

import uvicorn

from svmp.errors import SvmpError
from svmp.recommend.service.app import make_app
from svmp.recommend.service.current import Current
from svmp.recommend.service.demo import MODEL, TITLES
from svmp.recommend.service.front import Limits
from svmp.recommend.service.metrics import Metrics
from svmp.web import LOCAL, listen

PORT = 8015
"""Where the service is, unless another port is named or something else is there."""
CONNECTIONS = 1_000
SWITCH = 0.0005
"""Seconds that a request waits, at a time, for the thread that loads models and ranks batches."""


def serve(
    model: Path | None = None,
    titles: Path | None = None,
    host: str = LOCAL,
    port: int | None = None,
    token: str | None = None,
    limits: Limits | None = None,
    opens: bool = False,
) -> None:
    """Serve a model, or the demo if none is named."""
    if token is not None and not token.strip():
        raise SvmpError("the token is empty: give another, or none")
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    limits = limits or Limits()
    name = "Demo, with films that do not exist" if model is None else model.name
    if model is None:
        model, titles = MODEL, titles or TITLES
    metrics = Metrics()
    current = Current(model, titles, name, limits.batch, metrics)
    try:
        place = listen(host, port, PORT)
    except OSError as error:
        raise SvmpError(f"it cannot listen at {host}:{port}: {error.strerror}") from None
    port = place.getsockname()[1]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    app = make_app(current, limits, metrics, token, port if is_local(host) else None)
    config = uvicorn.Config(
        app,
        ws="none",
        proxy_headers=False,
        server_header=False,
        log_level="error",
        access_log=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=5,
    )
    print(f"{model.name} is served at {address} (Ctrl-C ends it)", flush=True)
    if token is None and not is_local(host):
        logging.getLogger("svmp.serve").warning(
            "whoever reaches this machine may ask; --token lets in only those who have it"
        )
    gc.collect()
    gc.freeze()  # what is here stays: no request shall wait while it is looked through again
    sys.setswitchinterval(SWITCH)
    if opens:
        webbrowser.open(address)
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[place])


def is_local(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

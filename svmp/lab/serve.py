"""Serve the lab on this machine until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import webbrowser

import uvicorn

from svmp.lab.app import make_app
from svmp.lab.data import RatingsFile, find_sources
from svmp.lab.runs import Runs
from svmp.web import LOCAL, listen
from svmp.web.connection import Config, ConnectionLimits

PORT = 8014
"""Default port."""
CONNECTIONS = 200


class Server(uvicorn.Server):
    """A server that opens the page when it has started, and ends all runs before it stops."""

    def __init__(self, config: uvicorn.Config, runs: Runs, opens: str | None) -> None:
        super().__init__(config)
        self.runs, self.opens = runs, opens

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.runs.keep_a_spare()
        if self.opens is not None:
            await asyncio.to_thread(webbrowser.open, self.opens)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self.runs.close()  # ends the event streams, for which the server would wait
        await super().shutdown(sockets)


def serve(file: RatingsFile | None = None, port: int | None = None, opens: bool = True) -> None:
    """Serve the lab; without a port, at the default one, or at any other if that is taken."""
    sources = find_sources(file)
    place = listen(LOCAL, port, PORT)
    port = place.getsockname()[1]
    address = f"http://{LOCAL}:{port}/"
    runs = Runs()
    app = make_app(runs, sources, port)
    config = Config(app, ConnectionLimits(CONNECTIONS))
    print(f"svmp lab is at {address} (Ctrl-C ends it)", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        Server(config, runs, address if opens else None).run(sockets=[place])

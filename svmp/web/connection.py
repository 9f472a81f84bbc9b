"""Limits of connections: their number, waiting times, and the size of headers.

uvicorn closes only connections that are idle after a response. One on which the headers of a
request never end, or a response is never read, would stay open forever. So each connection is
checked periodically.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of connections.

    Attributes
    ----------
    connections
        Maximum number of simultaneous connections.
    head
        Maximum size of the request line and the headers, in bytes.
    head_seconds
        Time limit for these to arrive, from the start of the connection or the last response; and
        for the client to read a response.
    """

    connections: int = 1_000
    head: int = 32_768
    head_seconds: float = 10.0


class Config(uvicorn.Config):
    """Configuration of uvicorn with limits of connections, also in its worker processes."""

    def __init__(self, app: Any, bounds: ConnectionLimits, **options: Any) -> None:
        self.bounds = bounds
        super().__init__(
            app,
            http=Connection,
            ws="none",
            proxy_headers=False,
            server_header=False,
            log_level="error",
            access_log=False,
            h11_max_incomplete_event_size=bounds.head,
            **options,
        )


class LimitedProtocol(asyncio.Protocol):
    """Closes connections that exceed the limits; a mixin for either protocol class of uvicorn."""

    config: Config
    connections: set[Any]
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    flow: Any
    cycle: Any

    def connection_made(self, transport: Any) -> None:
        """Accept a connection, unless there are too many."""
        super().connection_made(transport)
        self.bounds: ConnectionLimits = self.config.bounds
        self.head = 0  # bytes of incomplete headers
        self.state: object = None
        self.since = 0.0
        self.timer: asyncio.TimerHandle | None = None
        if len(self.connections) > self.bounds.connections:
            self.refuse(503, "there are too many connections: try again later")
        else:
            self.check()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        if self.timer is not None:
            self.timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the headers have become too long."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self.head = self.head + len(data) if self.between_requests else 0
        if self.head > self.bounds.head and not self.transport.is_closing():
            self.refuse(431, f"the headers may have at most {self.bounds.head:,} bytes")

    @property
    def between_requests(self) -> bool:
        """Whether the connection waits for the headers of a request."""
        return self.cycle is None or self.cycle.response_complete

    def check(self) -> None:
        """Close the connection if the client has been inactive for too long; check again later."""
        now, seconds = self.loop.time(), self.bounds.head_seconds
        state = self.waiting_for()
        if state is None or state != self.state:
            self.state, self.since = state, now
        elif now - self.since >= seconds:
            if self.head and not self.transport.is_closing():
                self.refuse(408, f"the headers did not arrive in {seconds:g} seconds")
            elif self.transport.is_closing() or self.transport.get_write_buffer_size():
                self.transport.abort()  # the client does not read the response
            else:
                self.transport.close()
            self.since = now
        self.timer = self.loop.call_later(min(1.0, seconds / 4), self.check)

    def waiting_for(self) -> object:
        """Return what the client should do next, or None if the server should act."""
        if self.transport.is_closing():
            return "to read the last answer"
        if self.between_requests:
            return "to send a head", self.cycle
        if self.flow.write_paused:
            return "to read more", self.transport.get_write_buffer_size()
        return None

    def refuse(self, status: int, reason: str) -> None:
        """Send an error response outside of the application, and close the connection."""
        body = json.dumps({"errors": {"request": reason}})
        self.transport.write(
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            f"Connection: close\r\n\r\n{body}".encode("ascii")
        )
        self.transport.close()


class Connection(LimitedProtocol, AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection with limits, by the faster of uvicorn's protocols that is installed."""

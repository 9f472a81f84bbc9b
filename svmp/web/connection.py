"""Connections with bounds: how many there are, how long they may wait, how long a head may be.

uvicorn closes a connection that has been idle since its last answer, and no other: one on which a
request never ends its headers, or an answer is never read, would stay open for ever. So each is
looked at every now and then.
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
    """What connections may take.

    Attributes
    ----------
    connections
        How many there may be at a time.
    head
        Bytes of the first line and the headers of a request.
    head_seconds
        Until these must have arrived, since the connection was made or the last answer was given;
        and for which an answer may wait to be read.
    """

    connections: int = 1_000
    head: int = 32_768
    head_seconds: float = 10.0


class Config(uvicorn.Config):
    """How uvicorn serves a page of svmp, within bounds; processes that it starts have it too."""

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
    """Ends a connection that takes too much; in front of either protocol class of uvicorn."""

    config: Config
    connections: set[Any]
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    flow: Any
    cycle: Any

    def connection_made(self, transport: Any) -> None:
        """Begin, unless there are too many."""
        super().connection_made(transport)
        self.bounds: ConnectionLimits = self.config.bounds
        self.head = 0  # bytes of one that is not complete
        self.state: object = None
        self.since = 0.0
        self.timer: asyncio.TimerHandle | None = None
        if len(self.connections) > self.bounds.connections:
            self.refuse(503, "there are too many connections: ask again later")
        else:
            self.look()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        if self.timer is not None:
            self.timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless this has become too long a head."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self.head = self.head + len(data) if self.between_requests else 0
        if self.head > self.bounds.head and not self.transport.is_closing():
            self.refuse(431, f"the headers may have at most {self.bounds.head:,} bytes")

    @property
    def between_requests(self) -> bool:
        """Whether the head of a request is waited for."""
        return self.cycle is None or self.cycle.response_complete

    def look(self) -> None:
        """End a connection that has been waiting for too long; look again later."""
        now, seconds = self.loop.time(), self.bounds.head_seconds
        state = self.waiting_for()
        if state is None or state != self.state:
            self.state, self.since = state, now
        elif now - self.since >= seconds:
            if self.head and not self.transport.is_closing():
                self.refuse(408, f"the headers did not arrive in {seconds:g} seconds")
            elif self.transport.is_closing() or self.transport.get_write_buffer_size():
                self.transport.abort()  # what was sent is not read
            else:
                self.transport.close()
            self.since = now
        self.timer = self.loop.call_later(min(1.0, seconds / 4), self.look)

    def waiting_for(self) -> object:
        """Return what the other side should do next, and None if it is not its turn."""
        if self.transport.is_closing():
            return "to read the last answer"
        if self.between_requests:
            return "to send a head", self.cycle
        if self.flow.write_paused:
            return "to read more", self.transport.get_write_buffer_size()
        return None

    def refuse(self, status: int, reason: str) -> None:
        """Answer with what is wrong, before there is a request to be answered, and end."""
        body = json.dumps({"errors": {"request": reason}})
        self.transport.write(
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            f"Connection: close\r\n\r\n{body}".encode("ascii")
        )
        self.transport.close()


class Connection(LimitedProtocol, AutoHTTPProtocol):  # type: ignore[misc, valid-type] # which is one of two
    """A connection of the quicker protocol that is installed, within bounds."""

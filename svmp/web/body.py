"""Read the body of a request, up to a size limit, before it is processed."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

LINGER = 1.0
"""Seconds for which a refused body is still read, so that the client receives the response."""


class BodyError(Exception):
    """A body that is too long, or too late.

    Attributes
    ----------
    status, reason
        HTTP status and message of the response.
    """

    def __init__(self, status: int, reason: str) -> None:
        self.status, self.reason = status, reason
        super().__init__(reason)


def check_length(scope: Scope, most: int) -> None:
    """Raise if the Content-Length exceeds the limit."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value[:20]) > most:
            raise too_long(most)


async def read_body(receive: Receive, most: int, seconds: float) -> bytes | None:
    """Return the body, or None if the client has disconnected."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                if len(body) > most:
                    raise too_long(most)
                if not message.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        raise BodyError(408, f"the body did not arrive in {seconds:g} seconds") from None


def too_long(most: int) -> BodyError:
    """Return the error of a body that is too long."""
    return BodyError(413, f"a body may have at most {most:,} bytes")


def replaying(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first returns a body that was already read."""
    first: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def replay() -> Message:
        nonlocal first
        message, first = first, None
        return await receive() if message is None else message

    return replay


async def refuse_unread(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Respond to a request whose body was not read completely, and close the connection.

    If it were closed while the body is still arriving, the client might lose the response; so
    reading continues for a moment.
    """
    if not has_body(scope):
        await response(scope, receive, send)
        return

    async def read_on() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                while (message := await receive())["type"] == "http.request":
                    if not message.get("more_body"):
                        return

    async def send_and_close(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send({**message, "headers": [*message["headers"], (b"connection", b"close")]})
        else:
            await send({**message, "more_body": True})
            await read_on()
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    await response(scope, receive, send_and_close)


def has_body(scope: Scope) -> bool:
    """Whether the headers of a request announce a body."""
    names = dict(scope["headers"])
    return b"transfer-encoding" in names or names.get(b"content-length", b"0").strip(b"0") != b""

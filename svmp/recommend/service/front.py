"""What every request passes first: who may ask, how much, and how long it may take.

A body is read here, as far as it may be long, so that nothing behind waits for the network.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svmp import web
from svmp.recommend.service.metrics import Metrics

LOG = logging.getLogger("svmp.serve")
HEADERS = web.headers(script="'self'", style="'self'", img="'self'", connect="'self'")
OPEN = ("/health", "/page/")
"""What needs no token, beside the page itself: it tells nothing of the model's data."""


@dataclass(frozen=True)
class Limits:
    """How much may be asked.

    Attributes
    ----------
    body
        Bytes of a request's body.
    batch
        Users, or items, of one request.
    seconds
        Until a request must have arrived and been answered.
    """

    body: int = 1_000_000
    batch: int = 1_000
    seconds: float = 10.0


class Refused(Exception):
    """A request that is not passed on."""

    def __init__(self, status: int, reason: str, **headers: str) -> None:
        self.answer = web.refusal({"request": reason}, status, headers=headers)


class Front:
    """Passes on what may be asked, refuses the rest, and counts both."""

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        metrics: Metrics,
        token: str | None,
        hosts: frozenset[str] | None,
    ) -> None:
        self.app = app
        self.limits, self.metrics = limits, metrics
        self.token = None if token is None else token.encode()
        self.hosts = None if hosts is None else {host.encode() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        try:
            await self._answer(scope, receive, send_on)
        except Refused as refused:
            if not status:
                await refused.answer(scope, receive, send_on)
        except Exception:
            LOG.exception("a request to %s failed", scope["path"])
        if status:
            path = getattr(scope.get("route"), "path", "other")
            self.metrics.answered(path, status, time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._check(scope)
        body: bytes | None = None
        first: Message | None = None

        async def replay() -> Message:
            nonlocal first
            if first is None:
                return await receive()
            message, first = first, None
            return message

        try:
            async with asyncio.timeout(self.limits.seconds):
                body = await self._body(receive)
                if body is None:
                    return  # nobody is there any more
                first = {"type": "http.request", "body": body, "more_body": False}
                await self.app(scope, replay, send)
        except TimeoutError:
            late = f"in {self.limits.seconds:g} seconds"
            if body is None:
                raise Refused(408, f"the body did not arrive {late}") from None
            raise Refused(503, f"this could not be answered {late}; ask for less") from None

    def _check(self, scope: Scope) -> None:
        """Refuse what can be refused by its headers."""
        headers = dict(scope["headers"])
        if self.hosts is not None and headers.get(b"host") not in self.hosts:
            raise Refused(403, "this service answers to this machine only; a token opens it")
        path = scope["path"]
        if self.token is not None and path != "/" and not path.startswith(OPEN):
            scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
            if not secrets.compare_digest(given.strip(), self.token) or scheme.lower() != b"bearer":
                raise Refused(401, "this needs a bearer token", **{"WWW-Authenticate": "Bearer"})
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length[:20]) > self.limits.body:
            self._too_long()

    async def _body(self, receive: Receive) -> bytes | None:
        """Return the body, or None if who asked has left."""
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > self.limits.body:
                self._too_long()
            if not message.get("more_body"):
                return body

    def _too_long(self) -> None:
        raise Refused(413, f"a body may have at most {self.limits.body:,} bytes")

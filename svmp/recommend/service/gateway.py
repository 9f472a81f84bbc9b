"""ASGI middleware that every request passes first: access, size limit and time limit.

The body is read here, up to the size limit, so that the application never waits for the network.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svmp import web
from svmp.recommend.service.metrics import Metrics
from svmp.web.body import BodyError, check_length, read_body, refuse_unread, replaying

LOG = logging.getLogger("svmp.serve")
HEADERS = web.headers(script="'self'", style="'self'", img="'self'", connect="'self'")
OPEN = ("/health", "/ready", "/page/")
"""Paths that need no token, besides the page itself: they reveal nothing about the data."""


@dataclass(frozen=True)
class Limits:
    """Limits of a request.

    Attributes
    ----------
    body
        Maximum size of the body, in bytes.
    batch
        Maximum number of users or items.
    seconds
        Time limit for receiving and answering it.
    """

    body: int = 1_000_000
    batch: int = 1_000
    seconds: float = 10.0


def is_open(path: str) -> bool:
    """Whether a path needs no token."""
    return path == "/" or path.startswith(OPEN)


class RequestError(Exception):
    """A request that is refused; `unread` if its body may still be arriving."""

    def __init__(
        self,
        status: int,
        reason: str,
        unread: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.unread = unread
        self.answer = web.refusal({"request": reason}, status, headers=headers)


class Gateway:
    """Forwards valid requests to the application, refuses others, and counts both."""

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        metrics: Metrics,
        token: str | None,
        port: int | None,
    ) -> None:
        self.app = app
        self.limits, self.metrics = limits, metrics
        self.token = None if token is None else token.encode()
        self.port = port

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
        except RequestError as refused:
            if not status and refused.unread:
                await refuse_unread(refused.answer, scope, receive, send_on)
            elif not status:
                await refused.answer(scope, receive, send_on)
        except Exception:
            LOG.exception("a request to %s failed", scope["path"])
        if status:
            path = getattr(scope.get("route"), "path", "other")
            self.metrics.answered(path, status, time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._check(scope)
        began, seconds = time.perf_counter(), self.limits.seconds
        try:
            check_length(scope, self.limits.body)
            body = await read_body(receive, self.limits.body, seconds)
        except BodyError as refused:
            raise RequestError(refused.status, refused.reason) from None
        if body is None:
            return  # the client has disconnected
        try:
            async with asyncio.timeout(seconds - (time.perf_counter() - began)):
                await self.app(scope, replaying(body, receive), send)
        except TimeoutError:
            raise RequestError(
                503, f"this could not be answered in {seconds:g} seconds; ask for less", False
            ) from None

    def _check(self, scope: Scope) -> None:
        """Raise if the headers of a request do not permit it."""
        headers = dict(scope["headers"])
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if self.port is not None and not web.is_own(hosts, self.port):
            raise RequestError(
                403, "this service answers requests from this machine only, unless it has a token"
            )
        path = scope["path"]
        if self.token is not None and not is_open(path):
            scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
            if not secrets.compare_digest(given.strip(), self.token) or scheme.lower() != b"bearer":
                raise RequestError(
                    401, "this needs a bearer token", headers={"WWW-Authenticate": "Bearer"}
                )

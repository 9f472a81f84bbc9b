"""Refuse requests that do not come from the lab's own page on this machine.

Any page in the browser can send requests to 127.0.0.1, and a domain that it controls can resolve to
that address. So the Host header must name this server, and requests that change anything must come
from its page, according to the browser's Origin and Sec-Fetch-Site headers.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from svmp import web
from svmp.web.body import BodyError, check_length, read_body, refuse_unread, replaying

SAFE = ("GET", "HEAD", "OPTIONS")
HEADERS = web.headers(
    # Plotly sets styles while drawing, and saves pictures through a blob.
    script="'self'",
    style="'self' 'unsafe-inline'",
    img="'self' data: blob:",
    connect="'self'",
)


LARGEST_BODY = 4096
SECONDS = 10.0
"""Time limit for the arrival of a body."""


class SameOrigin:
    """Middleware that refuses requests from other hosts and origins, and adds security headers."""

    def __init__(self, app: ASGIApp, port: int, seconds: float = SECONDS) -> None:
        self.app, self.port, self.seconds = app, port, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = web.sending(send, HEADERS)
        reason = self.refusal(scope["method"], scope["path"], Headers(scope=scope))
        try:
            if reason:
                raise BodyError(403, reason)
            check_length(scope, LARGEST_BODY)
            body = await read_body(receive, LARGEST_BODY, self.seconds)
        except BodyError as refused:
            answer = web.refusal({"request": refused.reason}, refused.status)
            await refuse_unread(answer, scope, receive, send)
            return
        if body is not None:  # else the client has disconnected
            await self.app(scope, replaying(body, receive), send)

    def refusal(self, method: str, path: str, headers: Headers) -> str | None:
        """Return why a request is refused; None if it is accepted."""
        hosts = headers.getlist("host")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if not web.is_own(hosts, self.port):
            return "this page answers to 127.0.0.1 and localhost only"
        if origin is not None and origin.lower() != f"http://{hosts[0].lower()}":
            return "requests from other origins are refused"
        ours = ("same-origin", "none")
        if site not in (None, *ours) and (path != "/" or method not in SAFE):
            return "requests from other sites are refused"  # but a link to the page is fine
        if method not in SAFE and origin is None and site != "same-origin":
            return "requests that change anything must come from this page"
        return None

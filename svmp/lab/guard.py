"""Who may ask: this machine's own page, and no other.

Any page in the browser can send requests to 127.0.0.1, and a name that it controls can be made to
point there. So the Host must be ours, and what changes anything must come from a page of ours, as
the browser's Origin and Sec-Fetch-Site say.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from svmp import web

SAFE = ("GET", "HEAD", "OPTIONS")
HEADERS = web.headers(
    # Plotly sets styles as it draws, and saves a picture by way of a blob.
    script="'self'",
    style="'self' 'unsafe-inline'",
    img="'self' data: blob:",
    connect="'self'",
)


class Guard:
    """Refuses requests from elsewhere, and adds headers that keep the page to itself."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.hosts = web.own_hosts(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        trouble = self.trouble(scope["method"], scope["path"], Headers(scope=scope))
        app = web.refusal({"request": trouble}, 403) if trouble else self.app
        await app(scope, receive, web.sending(send, HEADERS))

    def trouble(self, method: str, path: str, headers: Headers) -> str | None:
        """Say why a request is refused, if it is."""
        host, origin, site = (headers.get(n) for n in ("host", "origin", "sec-fetch-site"))
        if host not in self.hosts:
            return "this page answers to 127.0.0.1 and localhost only"
        if origin is not None and origin != f"http://{host}":
            return "requests from other origins are refused"
        ours = ("same-origin", "none")
        if site not in (None, *ours) and (path != "/" or method not in SAFE):
            return "requests from other sites are refused"  # but a link to the page is fine
        if method not in SAFE and origin is None and site != "same-origin":
            return "requests that change anything must come from this page"
        return None

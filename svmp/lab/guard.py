"""Who may ask: this machine's own page, and no other.

Any page in the browser can send requests to 127.0.0.1, and a name that it controls can be made to
point there. So the Host must be ours, and what changes anything must come from a page of ours, as
the browser's Origin and Sec-Fetch-Site say.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SAFE = ("GET", "HEAD", "OPTIONS")
HEADERS = {
    # Plotly sets styles as it draws, and saves a picture by way of a blob.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


class Guard:
    """Refuses requests from elsewhere, and adds headers that keep the page to itself."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        trouble = self.trouble(scope["method"], scope["path"], Headers(scope=scope))
        app = JSONResponse({"errors": {"request": trouble}}, 403) if trouble else self.app
        await app(scope, receive, send_with_headers)

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

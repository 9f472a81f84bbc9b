"""Who may ask: this machine's own page, and no other.

Any page in the browser can send requests to 127.0.0.1, and a name that it controls can be made to
point there. So the Host must be ours, and what changes anything must come from a page of ours, as
the browser's Origin and Sec-Fetch-Site say.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from svmp import web
from svmp.web.body import BodyError, check_length, read_body, refuse_unread, replaying

SAFE = ("GET", "HEAD", "OPTIONS")
HEADERS = web.headers(
    # Plotly sets styles as it draws, and saves a picture by way of a blob.
    script="'self'",
    style="'self' 'unsafe-inline'",
    img="'self' data: blob:",
    connect="'self'",
)


LARGEST_BODY = 4096
SECONDS = 10.0
"""Until a body must have arrived."""


class Guard:
    """Refuses requests from elsewhere, and adds headers that keep the page to itself."""

    def __init__(self, app: ASGIApp, port: int, seconds: float = SECONDS) -> None:
        self.app, self.port, self.seconds = app, port, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = web.sending(send, HEADERS)
        trouble = self.trouble(scope["method"], scope["path"], Headers(scope=scope))
        try:
            if trouble:
                raise BodyError(403, trouble)
            check_length(scope, LARGEST_BODY)
            body = await read_body(receive, LARGEST_BODY, self.seconds)
        except BodyError as refused:
            answer = web.refusal({"request": refused.reason}, refused.status)
            await refuse_unread(answer, scope, receive, send)
            return
        if body is not None:  # else nobody is there any more
            await self.app(scope, replaying(body, receive), send)

    def trouble(self, method: str, path: str, headers: Headers) -> str | None:
        """Say why a request is refused, if it is."""
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

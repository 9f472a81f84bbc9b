"""Shared by the web pages of svmp: sockets, error responses and security headers."""

from __future__ import annotations

import ipaddress
import json
import re
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.types import Message, Send

LOCAL = "127.0.0.1"
HOST = re.compile(r"(\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[0-9a-z.-]+))(:(?P<port>[0-9]{1,5}))?")
"""A Host header: a name or an address (IPv4 or IPv6), and optionally a port."""
STYLE = Path(__file__).parent / "base.css"
"""The style sheet that all pages share."""


def listen(host: str, port: int | None, usual: int) -> socket.socket:
    """Return a socket at a port; by default at the usual port, or at a free one if it is in use."""
    if port is not None:
        return _socket(host, port)
    try:
        return _socket(host, usual)
    except OSError:
        return _socket(host, 0)


def _socket(host: str, port: int) -> socket.socket:
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    return socket.create_server((host, port), family=family)


def is_local(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_own(hosts: Sequence[str], port: int) -> bool:
    """Whether the Host header of a request names this machine, at this port or without one.

    Any domain can resolve to 127.0.0.1 (DNS rebinding), so other names are not accepted.

    >>> is_own(["localhost"], 8014), is_own(["[::1]:8014"], 8014), is_own(["evil.example"], 8014)
    (True, True, False)
    """
    parts = HOST.fullmatch(hosts[0].lower()) if len(hosts) == 1 else None
    if parts is None or parts["port"] not in (None, str(port)):
        return False
    return is_local(parts["six"] or parts["name"].removesuffix("."))


def headers(**sources: str) -> list[tuple[bytes, bytes]]:
    """Return security headers; a page may load only from the given sources, as `script=`."""
    allowed = "".join(f"{kind}-src {source}; " for kind, source in sources.items())
    found = {
        "Content-Security-Policy": (
            f"default-src 'none'; {allowed}"
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-cache",
    }
    return [(name.lower().encode(), value.encode()) for name, value in found.items()]


def sending(send: Send, more: list[tuple[bytes, bytes]]) -> Send:
    """Return a `send` that adds headers to a response."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *more]
        await send(message)

    return send_with_headers


def refusal(errors: Mapping[str, str], status: int, **options: Any) -> Response:
    """Return an error response: a sentence for each field, or for the whole request."""
    body = json.dumps({"errors": errors})  # in ASCII, which can represent any text
    return Response(body, status, media_type="application/json", **options)

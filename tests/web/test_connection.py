"""Limits of connections, over real sockets, with both of uvicorn's protocols."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from svmp.web import LOCAL, body, listen
from svmp.web.body import BodyError, check_length, read_body, refuse_unread
from svmp.web.connection import Config, Connection, ConnectionLimits, LimitedProtocol

httptools = pytest.importorskip("uvicorn.protocols.http.httptools_impl")

PATIENCE = 120.0
"""Seconds to wait for what should happen at once."""
MOST, SECONDS = 1000, 0.2


class H11(LimitedProtocol, H11Protocol):  # type: ignore[misc]
    """The protocol that is always installed."""


class HttpTools(LimitedProtocol, httptools.HttpToolsProtocol):  # type: ignore[misc, name-defined]
    """The faster protocol."""


class App:
    """Responds with the length of the body; /long with more than any buffer holds."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.responses import Response

        if scope["type"] != "http":
            return
        self.asked += 1
        try:
            check_length(scope, MOST)
            sent = await read_body(receive, MOST, SECONDS)
        except BodyError as refused:
            answer = Response(refused.reason, refused.status)
            await refuse_unread(answer, scope, receive, send)
            return
        if sent is None:
            return
        text = b"x" * 50_000_000 if scope["path"] == "/long" else str(len(sent)).encode()
        await Response(text)(scope, receive, send)


@contextmanager
def serving(protocol: Any, bounds: ConnectionLimits) -> Iterator[tuple[int, uvicorn.Server]]:
    config = Config(App(), bounds, lifespan="off")
    config.http = protocol
    with listen(LOCAL, 0, 0) as place:
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([place],))
        thread.start()
        wait_for(lambda: server.started)
        try:
            yield place.getsockname()[1], server
        finally:
            server.should_exit = True
            thread.join(PATIENCE)


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "this takes too long"
        time.sleep(0.01)


def connect(port: int, sent: bytes = b"") -> socket.socket:
    connection = socket.create_connection((LOCAL, port), timeout=PATIENCE)
    connection.sendall(sent)
    return connection


def rest(connection: socket.socket) -> bytes:
    """Return everything until the server closes the connection; a test fails if it never does."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def send_until_closed(connection: socket.socket, part: bytes, pause: float) -> None:
    end = time.monotonic() + PATIENCE
    with suppress(OSError):
        while time.monotonic() < end:
            connection.sendall(part)
            time.sleep(pause)
    assert time.monotonic() < end, "this takes too long"


def get(path: str = "/", more: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n{more}\r\n".encode()


def post(length: int | str, more: str = "") -> bytes:
    return f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{more}\r\n".encode()


@pytest.fixture(autouse=True)
def _short_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "LINGER", 0.2)


@pytest.fixture(params=[HttpTools, H11], ids=["httptools", "h11"])
def protocol(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_faster_protocol_is_used() -> None:
    assert issubclass(Connection, (httptools.HttpToolsProtocol, H11Protocol))
    assert issubclass(Connection, LimitedProtocol)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"G",
        b"GET / HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: ",
        get() + b"GET / HTTP/1.1\r\nX-",  # the second on a connection
    ],
)
def test_endless_headers_end_the_connection(protocol: Any, sent: bytes) -> None:
    with serving(protocol, ConnectionLimits(head_seconds=0.3)) as (port, server):
        with connect(port, sent) as waiting:
            said = rest(waiting)
        wait_for(lambda: not server.server_state.connections)
    if sent.count(b"GET") == 2:
        assert said.startswith(b"HTTP/1.1 200 ")
    else:
        assert said.startswith(b"HTTP/1.1 408 ") == bool(sent)


def test_slow_headers_end_the_connection(protocol: Any) -> None:
    with serving(protocol, ConnectionLimits(head_seconds=0.5)) as (port, server):
        with connect(port, b"GET / HTTP/1.1\r\n") as slow:
            send_until_closed(slow, b"X: y\r\n", 0.05)
        wait_for(lambda: not server.server_state.connections)


@pytest.mark.slow
def test_active_connection_stays_open(protocol: Any) -> None:
    """It stays open for several times the time limit of headers."""
    with (
        serving(protocol, ConnectionLimits(head_seconds=3.0)) as (port, _),
        connect(port) as steady,
    ):
        end = time.monotonic() + 8.0
        while time.monotonic() < end:
            steady.sendall(get())
            assert steady.recv(65536).startswith(b"HTTP/1.1 200 ")
            time.sleep(0.1)


def test_too_long_headers_are_refused(protocol: Any) -> None:
    with serving(protocol, ConnectionLimits(head=5_000)) as (port, server):
        with connect(port, b"GET / HTTP/1.1\r\nHost: x\r\n") as long:
            send_until_closed(long, b"X-Name: " + b"y" * 500 + b"\r\n", 0.001)
        wait_for(lambda: not server.server_state.connections)
        with connect(port, b"GET /" + b"z" * 6_000) as long:
            assert rest(long).split(b" ", 2)[1] in (b"431", b"400")
        with connect(port, get(more="Connection: close\r\n")) as fine:
            assert rest(fine).startswith(b"HTTP/1.1 200 ")


def test_excess_connections_are_refused_and_others_continue(protocol: Any) -> None:
    with serving(protocol, ConnectionLimits(connections=5)) as (port, server), ExitStack() as held:
        some = [held.enter_context(connect(port)) for _ in range(5)]
        wait_for(lambda: len(server.server_state.connections) == 5)
        with connect(port, get()) as one_more:
            assert b" 503 " in rest(one_more)
        for connection in some:
            connection.sendall(get())
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        some[0].close()
        wait_for(lambda: len(server.server_state.connections) == 4)
        with connect(port, get(more="Connection: close\r\n")) as again:
            assert rest(again).startswith(b"HTTP/1.1 200 ")


def test_missing_body_times_out(protocol: Any) -> None:
    heads = [post(9), post(9) + b"1234", post(9, "Expect: 100-continue\r\n")]
    heads.append(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12")
    with serving(protocol, ConnectionLimits()) as (port, server):
        for head in heads:
            with connect(port, head) as slow:
                assert b"HTTP/1.1 408 " in rest(slow)
        wait_for(lambda: not server.server_state.connections)


@pytest.mark.parametrize("length", [MOST + 1, 10**10, 10**18])
def test_too_large_content_length_is_refused_immediately(protocol: Any, length: int) -> None:
    with serving(protocol, ConnectionLimits()) as (port, server):
        for more in ("", "Expect: 100-continue\r\n"):
            with connect(port, post(length, more)) as long:
                assert rest(long).startswith(b"HTTP/1.1 413 ")
        wait_for(lambda: not server.server_state.connections)


def test_too_long_body_is_refused_and_the_client_gets_the_response(protocol: Any) -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with serving(protocol, ConnectionLimits()) as (port, _):
        with connect(port, head + b"3e8\r\n" + b"x" * 1000 + b"\r\n0\r\n\r\n") as fits:
            assert fits.recv(65536).startswith(b"HTTP/1.1 200 ")
        with connect(port, head) as long:
            for _ in range(200):
                long.sendall(b"3e8\r\n" + b"x" * 1000 + b"\r\n")
            long.sendall(b"0\r\n\r\n")
            assert rest(long).startswith(b"HTTP/1.1 413 ")


def test_unread_response_ends_the_connection(protocol: Any) -> None:
    with serving(protocol, ConnectionLimits(head_seconds=0.5)) as (port, server):
        with connect(port, get("/long")) as deaf:
            wait_for(lambda: server.server_state.connections)
            wait_for(lambda: not server.server_state.connections)
            assert deaf.recv(100).startswith(b"HTTP/1.1 200 ")
        with connect(port, get("/long", "Connection: close\r\n")) as hears:
            assert len(rest(hears)) > 50_000_000


def test_slow_connection_does_not_delay_others(protocol: Any) -> None:
    with serving(protocol, ConnectionLimits(head_seconds=60.0)) as (port, _), ExitStack() as held:
        for sent in (b"", b"GET / HT", post(100), get("/long")):
            held.enter_context(connect(port, sent))
        with connect(port, get(more="Connection: close\r\n")) as quick:
            assert rest(quick).startswith(b"HTTP/1.1 200 ")

"""Malformed and hostile HTTP requests, drawn at random, and what became of them."""

from __future__ import annotations

import json
import random
import re
import socket
from collections.abc import Sequence
from typing import Any

METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT")
METHODS += ("get", "G ET", "", "\x00", "PRI", "POST\t", "X" * 300, "GÉT")
ODD_PATHS = (
    *("/", "//", "/nowhere", "*", "", "?", "/?", "/%", "/%00", "/%zz", "/%ff%fe", "/\x00", "/é"),
    *("/page/../app.py", "/page/%2e%2e/app.py", "/page/..%2fapp.py", "/static/../../etc/passwd"),
    *("/page/....//....//etc/passwd", "/static/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/page/%5c..%5c"),
    *("/page//etc/passwd", "/page/" + "a" * 300, "/page/a%00b", "/static/%00", "/page"),
    *(
        "http://evil.example/",
        "http://127.0.0.1/health",
        "evil.example:80",
        "/health#x",
        "/h ealth",
    ),
    *("/" + "a" * 3000, "/" + "/".join("a" * 50), "/items?n=" + "9" * 400, "/items?q=%ff%00&n=-1"),
    *("/items?n=1e3", "/items?n=NaN", "/items?" + "&".join(["q=x"] * 500), "/items?q=%F0%9F%98%80"),
    *("/api/runs/1", "/api/runs/%00/script", "/api/runs/../../x", "/api/runs//stop"),
)
VERSIONS = ("HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0")
VERSIONS += ("HTTP/9.9", "HTTP", "", "http/1.1", "HTTP/1.1.1", "HTTP/1.1 ")
HEADERS = (
    *(
        "Host: evil.example",
        "Host:",
        "Host: a, b",
        "Host: 127.0.0.1:99999",
        "Host: [::",
        "Host: \xff",
    ),
    *(
        "X",
        ":",
        ": y",
        "X y: z",
        "X : y",
        "X: \x00",
        "X: \xff\xfe",
        "X: a\rb",
        " X: folded",
        "\tX: y",
    ),
    *("X: " + "y" * 10_000, "Y" * 2_000 + ": z", "Cookie: " + "a=b; " * 500, "X-\x7f: y"),
    *("Content-Length: -1", "Content-Length: +5", "Content-Length: 0x5", "Content-Length: 5, 5"),
    *("Content-Length: 1_0", "Content-Length: ٣", "Content-Length:", "Content-Length: 5"),
    *(f"Content-Length: {n}" for n in (10**10, 10**18, 2**63, 2**64, 10**30)),
    *("Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: x"),
    *(
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding:",
        "Transfer-Encoding: \x0bchunked",
    ),
    *("Expect: 100-continue", "Expect: nonsense", "Connection: close", "Connection: keep-alive"),
    *("Connection: upgrade\r\nUpgrade: websocket", "Connection: Upgrade\r\nUpgrade: h2c"),
    *(
        "Connection: " + "x," * 500,
        "Content-Encoding: gzip",
        "Range: bytes=0-5",
        "Range: bytes=9-1",
    ),
    *(
        "Range: bytes=" + ",".join(f"{n}-{n}" for n in range(200)),
        "If-Range: x\r\nRange: bytes=0-0",
    ),
    *("If-Modified-Since: never", "If-None-Match: *", "Accept-Encoding: \xff", "Origin: null"),
    *("Authorization: Bearer", "Authorization: \xff", "Origin: http://evil.example"),
    *("Sec-Fetch-Site: cross-site", "Content-Type: application/json; charset=utf-99"),
    *("Content-Type: text/plain", "Content-Type: multipart/form-data", "Content-Type: \xff"),
    *("X-Forwarded-For: " + "1.2.3.4, " * 99, "X-Forwarded-Host: evil", "Trailer: Host"),
)
CHUNKS = (
    *(
        b"zz\r\nhello\r\n0\r\n\r\n",
        b"-5\r\nhello\r\n0\r\n\r\n",
        b"5\r\nhello0\r\n\r\n",
        b"5\r\nhel",
    ),
    *(
        b"ffffffffffffffffff\r\nx",
        b"7fffffffffffffff\r\nx",
        b"5;" + b"e=f;" * 900 + b"\r\nhello\r\n",
    ),
    *(
        b"0\r\nX: y\r\n\r\n",
        b"0\r\n" + b"T: r\r\n" * 300 + b"\r\n",
        b"\r\n\r\n",
        b"5\nhello\n0\n\n",
    ),
    *(
        b"5\r\nhello\r\n" * 50 + b"0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b" 5\r\nhello\r\n0\r\n\r\n",
    ),
)
TEXTS = (
    *("null", "NaN", "-Infinity", "1e999", "-1e999", "9" * 400, "-" + "9" * 400, "1" + "0" * 4000),
    *(
        "0",
        "-1",
        "-0.0",
        "0.5",
        "1.0",
        "1e3",
        "9223372036854775807",
        "9223372036854775808",
        "1e-400",
    ),
    *("-9223372036854775808", "true", "false", '""', '"\\ud800"', '"\\udfff\\ud800"', '"\\u0000"'),
    *('"' + "x" * 2000 + '"', '"é"', '"😀"', '"\x7f"', '"1"', '"prior"', '"thompson"', '"ucb"'),
    *("[]", "{}", "[null]", "[[]]", "[[[]]]", '{"": {}}', "[1, 1]", '[1, "1"]', "[1.5]", "[true]"),
    *("[" * 300 + "]" * 300, "[" * 5000, '{"a":' * 300 + "1" + "}" * 300, "[" + "1," * 400 + "1]"),
    *('[{"item": 1, "rating": null}]', '[{"item": null}]', '[{"rating": 1}]', '[{"item": 1e999}]'),
    *('[{"item": 1, "rating": 1e308}, {"item": 1, "rating": -1e308}]', '[{"item": [], "x": 1}]'),
    *("'single'", "undefined", "0x10", "01", "+1", ".5", "1.", "\xff", "\x00", "/* */ 1", "[1,]"),
)


class Hostile:
    """Draws requests to a service, given its paths with the fields of valid bodies."""

    def __init__(
        self,
        seed: int,
        host: str,
        paths: Sequence[str],
        bodies: dict[str, dict[str, Any]],
        headers: Sequence[str] = (),
    ) -> None:
        self.random = random.Random(seed)
        self.paths, self.bodies = (*paths, *bodies), bodies
        self.headers = (f"Host: {host}", *headers)

    def draw(self) -> bytes:
        """Return the bytes of a request, most of which are wrong in some way."""
        kinds = (self._fields, self._fields, self._structure, self._mutation, self._chunked)
        return self.random.choice((*kinds, self._noise))()

    def _request(self, method: str, path: str, body: bytes, more: Sequence[str] = ()) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", *self.headers, *more]
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body

    def _fields(self) -> bytes:
        """A body whose fields have values that they should not have."""
        path = self.random.choice([*self.bodies])
        fields = {name: json.dumps(value) for name, value in self.bodies[path].items()}
        for _ in range(self.random.choice((0, 1, 1, 1, 2, 3))):
            fields[self.random.choice([*fields])] = self.random.choice(TEXTS)
        if self.random.random() < 0.1:
            fields["x" * self.random.choice((0, 1, 3000))] = self.random.choice(TEXTS)
        if self.random.random() < 0.1:
            del fields[self.random.choice([*fields])]
        rows = [f"{json.dumps(name)}: {value}" for name, value in fields.items()]
        rows += rows[:1] if self.random.random() < 0.05 else []  # a field twice
        text = "{" + ", ".join(rows) + "}"
        if self.random.random() < 0.05:
            text = self.random.choice(TEXTS)
        kind = self.random.choice(("utf-8", "utf-8", "utf-8", "utf-8", "latin-1", "utf-16"))
        return self._request("POST", path, text.encode(kind, "replace"))

    def _structure(self) -> bytes:
        """Headers whose parts are drawn one by one."""
        choice = self.random.choice
        path = choice(self.paths) if self.random.random() < 0.5 else choice(ODD_PATHS)
        method = choice(METHODS[:3]) if self.random.random() < 0.5 else choice(METHODS)
        lines = [f"{method} {path} {choice(VERSIONS)}"]
        lines += self.headers if self.random.random() < 0.9 else ()
        lines += self.random.choices(HEADERS, k=choice((0, 1, 1, 2, 3)))
        self.random.shuffle(lines[1:])
        end = choice(("\r\n", "\r\n", "\r\n", "\n", "\r"))
        head = (end.join(lines) + 2 * end).encode(
            "utf-8" if choice((0, 1)) else "latin-1", "replace"
        )
        return head + choice((b"", b"{}", b"[]" * 100, b"\x00", b"GET / HTTP/1.1\r\n\r\n", head))

    def _chunked(self) -> bytes:
        path, more = self.random.choice(self.paths), ["Transfer-Encoding: chunked"]
        if self.random.random() < 0.3:
            more.append(self.random.choice(HEADERS))
        lines = [f"POST {path} HTTP/1.1", *self.headers, "Content-Type: application/json", *more]
        head = "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n"
        return head + self.random.choice(CHUNKS)

    def _mutation(self) -> bytes:
        """A request with some of its bytes changed, left out, put in or doubled."""
        path = self.random.choice([*self.bodies])
        found = bytearray(self._request("POST", path, json.dumps(self.bodies[path]).encode()))
        for _ in range(self.random.choice((1, 1, 2, 4, 16))):
            place = self.random.randrange(len(found))
            end = place + self.random.choice((1, 1, 2, 8))
            some = bytes(found[place:end])
            changed = (self.random.randbytes(len(some)), b"", some + self.random.randbytes(2))
            found[place:end] = self.random.choice((*changed, 3 * some, b"\r\n"))
            if not found:
                return b"\r\n"
        return bytes(found)

    def _noise(self) -> bytes:
        size = self.random.choice((1, 3, 20, 500, 20_000))
        noise = self.random.randbytes(size)
        return self.random.choice((noise, b"\x16\x03\x01\x02" + noise, b"\r\n" * size, b"{" * size))


def answer_to(sent: bytes, port: int, patience: float) -> list[int] | None:
    """Return the statuses of all responses until the server closes or pauses; None if none came.

    The client sends nothing more, so that the server must also give up an incomplete request.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=patience) as connection:
        found = b""
        try:
            connection.sendall(sent)
            while part := connection.recv(65536):
                found += part
                if b"HTTP/1.1 " in found and b" 100 Continue" not in found:
                    connection.settimeout(0.02)  # there may be more than one
        except TimeoutError:
            if not found:
                raise
        except (ConnectionResetError, BrokenPipeError):
            pass
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", found)] or None

"""Access, size and time limits; malformed requests are refused with a reason, never 500."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from svmp.recommend.service import demo, work
from svmp.recommend.service.answers import ServedModel
from svmp.recommend.service.gateway import Limits

from .conftest import PATIENCE, client_of, wait_for

OWN = (
    *("127.0.0.1", "localhost", "LocalHost", "localhost.", "[::1]", "127.0.0.2"),
    *("127.0.0.1:80", "localhost:80", "LOCALHOST.:80", "[::1]:80"),
)
PATHS = ("/recommend", "/fold-in", "/predict", "/similar", "/explain")
JSON = {"content-type": "application/json"}
DEEP = 100_000
MALFORMED: dict[str, tuple[bytes, dict[str, str], int]] = {
    "nothing": (b"", JSON, 400),
    "broken": (b'{"users": [1', JSON, 400),
    "two": (b"{} {}", JSON, 400),
    "not UTF-8": (b'{"users": ["\xff\xfe"]}', JSON, 400),
    "UTF-16": ('{"users": [1]}'.encode("utf-16"), JSON, 400),
    "half a surrogate": (b'{"users": ["\\ud800"]}', JSON, 400),
    "deep lists": (b"[" * DEEP, JSON, 400),
    "deep objects": (b'{"users":' * DEEP, JSON, 400),
    "a list": (b"[1, 2]", JSON, 422),
    "null": (b"null", JSON, 422),
    "NaN": (b'{"users": [NaN], "items": [NaN], "width": NaN}', JSON, 422),
    "infinite": (b'{"history": [{"item": 1, "rating": Infinity}]}', JSON, 422),
    "too great": (b'{"history": [{"item": 1, "rating": 1e999}]}', JSON, 422),
    "a huge id": (b'{"users": [' + b"9" * 5_000 + b"]}", JSON, 400),
    "just too great an id": (b'{"users": [9223372036854775808]}', JSON, 422),
    "a fraction of an id": (b'{"users": [1.5], "item": 1.5}', JSON, 422),
    "a truth for an id": (b'{"users": [true], "item": true}', JSON, 422),
    "a list for an id": (b'{"users": [[1]], "item": [1]}', JSON, 422),
    "a long name": (json.dumps({"x" * 50_000: 1}).encode(), JSON, 422),
    "a form": (b"users=1", {"content-type": "application/x-www-form-urlencoded"}, 415),
    "text": (b'{"users": [1]}', {"content-type": "text/plain"}, 415),
    "no type": (b'{"users": [1]}', {}, 415),
    "a strange type": (b'{"users": [1]}', {"content-type": "application/jsonx"}, 415),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_body_is_refused_with_a_reason(films: httpx.Client, path: str, case: str) -> None:
    body, headers, status = MALFORMED[case]
    answer = films.post(path, content=body, headers=headers)
    assert answer.status_code == status, answer.text
    errors = answer.json()["errors"]
    assert errors
    assert all(sentence for sentence in errors.values())
    assert len(answer.content) < 5_000


def test_errors_are_reported_for_their_field(films: httpx.Client) -> None:
    asked = {"users": [1, 1.5], "n": 0, "explore": "all", "more": 1, "candidates": [1, "a"]}
    assert films.post("/recommend", json=asked).json()["errors"] == {
        "users.1": "an id must be a string or a whole number",
        "n": "Input should be greater than or equal to 1",
        "explore": "Input should be 'thompson' or 'ucb'",
        "candidates": "ids are whole numbers or strings, not both",
        "more": "Extra inputs are not permitted",
    }


def test_body_over_the_limit_is_refused() -> None:
    with client_of(demo.MODEL, Limits(body=500)) as client:
        for content in (b" " * 501, iter([b" " * 400, b" " * 400])):  # of stated length, and not
            answer = client.post("/recommend", content=content, headers=JSON)
            assert answer.status_code == 413
            assert answer.json()["errors"]["request"] == "a body may have at most 500 bytes"
        assert client.post("/recommend", json={"users": [1]}).status_code == 200


def test_batch_over_the_limit_is_refused() -> None:
    many: list[Any] = list(range(6))
    rated = [{"item": item, "rating": 3} for item in many]
    asked: list[tuple[str, dict[str, Any]]] = [
        ("/recommend", {"users": many}),
        ("/recommend", {"users": [1], "candidates": many}),
        ("/recommend", {"users": [1], "exclude": many}),
        ("/fold-in", {"history": rated}),
        ("/predict", {"users": [1], "items": many}),
        ("/predict", {"users": many, "items": [1]}),
        ("/explain", {"user": 1, "items": many}),
    ]
    with client_of(demo.MODEL, Limits(batch=5)) as client:
        for path, body in asked:
            answer = client.post(path, json=body)
            assert answer.status_code == 422, path
            assert "at most 5 at a time, not 6" in answer.json()["errors"]["request"]
    with client_of(demo.MODEL) as client:
        answer = client.post("/recommend", json={"users": [1] * 1000, "n": 1000})
        assert answer.json()["errors"]["request"] == "users times n must be at most 100,000"
        answer = client.post("/recommend", json={"users": [1], "n": 1001})
        assert list(answer.json()["errors"]) == ["n"]


def test_slow_requests_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, end = ServedModel.recommend, threading.Event()

    def slow(served: ServedModel, asked: Any) -> Any:
        if len(asked.users) > 1:
            end.wait(PATIENCE)
        return usual(served, asked)

    with client_of(demo.MODEL, Limits(seconds=0.3)) as client:
        monkeypatch.setattr(ServedModel, "recommend", slow)
        wait_for(lambda: client.post("/recommend", json={"users": [1]}).status_code == 200)
        answer = client.post("/recommend", json={"users": [1, 2]})
        end.set()
        assert answer.status_code == 503
        assert "in 0.3 seconds" in answer.json()["errors"]["request"]
        url = client.base_url
        with socket.create_connection((url.host, url.port or 0), timeout=PATIENCE) as slowly:
            head = f"POST /recommend HTTP/1.1\r\nHost: {url.host}\r\nContent-Length: 9\r\n\r\n"
            slowly.sendall(head.encode())  # and never a body
            assert slowly.recv(100).startswith(b"HTTP/1.1 408 ")
        wait_for(lambda: client.get("/health").status_code == 200)


def test_a_service_that_is_busy_is_healthy_and_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, end = ServedModel.recommend, threading.Event()

    def slow(served: ServedModel, asked: Any) -> Any:
        if len(asked.users) > 1:
            end.wait(PATIENCE)
        return usual(served, asked)

    with client_of(demo.MODEL, Limits(seconds=0.3), token="secret") as client:
        assert client.get("/ready").json() == {"ready": True, "reason": None}
        monkeypatch.setattr(ServedModel, "recommend", slow)
        key = {"Authorization": "Bearer secret"}
        asked = client.post("/recommend", json={"users": [1, 2]}, headers=key)
        assert asked.status_code == 503
        wait_for(lambda: client.get("/ready").status_code == 503)  # it is still computed
        found = client.get("/ready")
        reason = "a request has been computed for more than 0.3 seconds"
        assert found.json() == {"ready": False, "reason": reason}
        assert client.get("/health").json()["status"] == "ok"
        end.set()
        wait_for(lambda: client.get("/ready").status_code == 200)


def test_full_queue_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "WAITING", 0)
    with client_of(demo.MODEL) as client:
        assert client.get("/ready").json()["reason"] == "too many requests are waiting"
        answer = client.post("/recommend", json={"users": [1, 2]})
        assert answer.status_code == 503
        assert "too many requests are waiting" in answer.json()["errors"]["request"]
        assert client.post("/recommend", json={"users": [1]}).status_code == 200


def test_requests_without_the_token_are_refused() -> None:
    with client_of(demo.MODEL, token="sésame") as client:
        for path in ("/", "/page/main.js", "/page/base.css", "/health"):
            assert client.get(path).status_code == 200
        wrong: list[Any] = [
            None,
            "",
            "Bearer",
            "Bearer sesame",
            "Basic sésame",
            "sésame",
        ]
        for value in wrong:
            headers = {} if value is None else {"Authorization": value.encode()}
            for path in ("/model", "/items", "/metrics", "/openapi.json", "/nowhere"):
                answer = client.get(path, headers=headers)
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            answer = client.post("/recommend", json={"users": [1]}, headers=headers)
            assert answer.json() == {"errors": {"request": "this needs a bearer token"}}
        for scheme in ("Bearer", "bearer"):
            headers = {"Authorization": f"{scheme} sésame".encode()}
            assert client.get("/model", headers=headers).status_code == 200


def test_openapi_schema_declares_the_token() -> None:
    headers = {"Authorization": "Bearer sesame"}
    with client_of(demo.MODEL, token="sesame") as client:
        schema = client.get("/openapi.json", headers=headers).json()
        assert schema["components"]["securitySchemes"] == {
            "token": {"type": "http", "scheme": "bearer"}
        }
        for path, operations in schema["paths"].items():
            for method, operation in operations.items():
                needed = client.request(method, path).status_code == 401
                assert operation["security"] == ([{"token": []}] if needed else []), path
    with client_of(demo.MODEL) as client:
        schema = client.get("/openapi.json").json()
        assert "securitySchemes" not in schema["components"]
        assert not any(
            "security" in one for way in schema["paths"].values() for one in way.values()
        )


def test_other_host_names_are_refused_on_localhost() -> None:
    with client_of(demo.MODEL, port=80) as client:
        for host in OWN:
            assert client.get("/health", headers={"Host": host}).status_code == 200
        wrong = (
            "evil.example",
            "127.0.0.1:81",
            "",
            "127.0.0.1.evil.example",
            "localhost:",
            "0.0.0.0",
        )
        for host in (*wrong, "evil.example:80", "x@localhost", "localhost:80:80", "[localhost]"):
            for path in ("/", "/health", "/items"):
                answer = client.get(path, headers={"Host": host})
                assert answer.status_code == 403
                assert "this machine only" in answer.json()["errors"]["request"]
    with client_of(demo.MODEL, port=80, token="x") as client:  # which no page elsewhere has
        assert client.get("/health", headers={"Host": "evil.example"}).status_code == 200


def test_unknown_paths_have_the_same_error_format(films: httpx.Client) -> None:
    asked = [("GET", "/nowhere", 404), ("GET", "/recommend", 405), ("DELETE", "/items", 405)]
    asked += [("GET", "/page/../app.py", 404), ("GET", "/page/%2e%2e/app.py", 404)]
    asked += [("GET", "/items?n=0", 422), ("GET", "/items?q=" + "x" * 201, 422)]
    for method, path, status in asked:
        answer = films.request(method, path)
        assert answer.status_code == status, path
        assert answer.json()["errors"]


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/items", "/nowhere"])
def test_every_response_has_security_headers(films: httpx.Client, path: str) -> None:
    answer = films.get(path)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_page_loads_nothing_from_other_hosts() -> None:
    for file in (Path(demo.__file__).parent / "page").iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http" not in text.lower(), file.name

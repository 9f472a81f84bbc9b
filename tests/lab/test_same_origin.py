"""Requests from other hosts and origins are refused."""

from __future__ import annotations

import socket

import httpx
import pytest

from .conftest import PATIENCE, SMALL, Lab

CHANGES = [("POST", "/api/runs"), ("POST", "/api/runs/1/stop"), ("DELETE", "/api/runs/1")]
READS = ["/", "/api/data", "/api/events", "/api/runs/1/script", "/static/main.js", "/plotly.js"]


def ask(lab: Lab, method: str, path: str, **headers: str) -> httpx.Response:
    """Send a request with these headers alone, and read no body."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    with httpx.stream(
        method, lab.url.rstrip("/") + path, headers=names, timeout=PATIENCE
    ) as answer:
        if answer.status_code == 403:
            answer.read()
            assert "errors" in answer.json()
        return answer


@pytest.mark.parametrize("path", READS)
@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1:1", ""])
def test_another_host_is_refused(lab: Lab, path: str, host: str) -> None:
    """A name that points to 127.0.0.1 does not make its pages ours."""
    assert ask(lab, "GET", path, Host=host).status_code == 403


def test_names_of_localhost_are_accepted(lab: Lab) -> None:
    port = httpx.URL(lab.url).port
    for name in ("localhost", "LOCALHOST", "localhost.", "127.0.0.1", "[::1]"):
        for host in (f"{name}:{port}", name):
            assert ask(lab, "GET", "/", Host=host).status_code == 200


@pytest.mark.parametrize(("method", "path"), CHANGES)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"},
    ],
    ids=str,
)
def test_a_change_from_another_origin_is_refused(
    lab: Lab, method: str, path: str, headers: dict[str, str]
) -> None:
    answer = httpx.request(method, lab.url.rstrip("/") + path, headers=headers, json=SMALL)
    assert answer.status_code == 403
    assert list(answer.json()["errors"]) == ["request"]
    assert next(lab.updates())["kept"] == []


def test_an_origin_with_another_scheme_or_port_is_refused(lab: Lab) -> None:
    for origin in (lab.url.replace("http:", "https:").rstrip("/"), lab.url):
        assert ask(lab, "POST", "/api/runs", Origin=origin).status_code == 403


def test_a_change_from_the_page_is_accepted(lab: Lab) -> None:
    origin = lab.url.rstrip("/")
    for headers in ({"Origin": origin}, {"Sec-Fetch-Site": "same-origin"}):
        answer = httpx.post(lab.url + "api/runs", headers=headers, json={})
        assert answer.status_code == 422


@pytest.mark.parametrize("path", READS)
def test_other_sites_can_link_to_the_page_and_embed_nothing(lab: Lab, path: str) -> None:
    status = ask(lab, "GET", path, Sec_Fetch_Site="cross-site").status_code
    assert status == (200 if path == "/" else 403)


def test_other_origins_cannot_read(lab: Lab) -> None:
    """There is no CORS, not even when asked beforehand."""
    origin = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    answer = httpx.options(lab.url + "api/runs", headers=origin)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/", "/api/data", "/nowhere", "/static/main.js"])
def test_every_response_has_security_headers(lab: Lab, path: str) -> None:
    answer = lab.client.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "http" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_it_listens_on_the_loopback_address_only(lab: Lab) -> None:
    port = httpx.URL(lab.url).port
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing: says which address others would see
        outside = probe.getsockname()[0]
    if outside.startswith("127."):
        pytest.skip("this machine has no other address")
    with pytest.raises(OSError), socket.create_connection((outside, port), timeout=2):  # noqa: PT011
        pass

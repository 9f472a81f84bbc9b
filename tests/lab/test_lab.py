"""The HTTP interface of a lab that was started from the command line."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from .conftest import ENDLESS, PAPER, SMALL, Lab

RUNS: dict[str, dict[str, Any]] = {
    "diverged": PAPER | {"scale": 0.01, "factors": 5},
    "budget": SMALL
    | {"algorithm": "batch", "size": 200, "option": "b"}
    | {"policy": "RobbinsMonro", "kappa": 0.75, "rho1": "1/64"},
    "converged": SMALL | {"algorithm": "full", "factors": 1, "sweeps": 200},
}


@pytest.mark.parametrize("ends", ["converged", pytest.param("diverged", marks=pytest.mark.slow)])
def test_the_exported_script_reproduces_the_run_bit_for_bit(lab: Lab, ends: str) -> None:
    run = lab.end_of(lab.start(RUNS[ends]))
    assert run["state"] == ends
    variables: dict[str, Any] = {}
    exec(lab.client.get(f"/api/runs/{run['id']}/script").text, variables)
    fit = variables["fit"]
    assert (fit.status, fit.bound) == (run["state"], run["bound"])
    assert fit.trace["bound"].tolist() == [bound for *_, bound in run["rows"]]
    assert fit.trace["accesses"].tolist() == [accesses for _, accesses, *_ in run["rows"]]
    if ends == "diverged":
        assert run["sentence"] == str(fit.diagnosis)
        assert "a short probe was sound from rho1 = 1/" in run["sentence"]
        fallen, start = run["rows"][-1][3], run["rows"][0][3]
        assert fallen < 10 * start < run["bound"] < 0


def test_the_exported_script_runs_in_a_new_process(lab: Lab, tmp_path: Path) -> None:
    run = lab.end_of(lab.start(RUNS["budget"]))
    answer = lab.client.get(f"/api/runs/{run['id']}/script")
    assert answer.headers["content-disposition"] == f'inline; filename="svmp-run-{run["id"]}.py"'
    path = tmp_path / "run.py"
    path.write_bytes(answer.content)
    command = [sys.executable, path]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert said.stdout == f"budget {run['bound']!r}\n"


def test_a_run_streams_and_stops(lab: Lab) -> None:
    id = lab.start(ENDLESS)
    running = lab.wait(id, lambda run: len(run["rows"]) >= 3)
    assert running["state"] == "running"
    assert lab.client.post(f"/api/runs/{id}/stop").status_code == 204
    run = lab.end_of(id)
    assert run["state"] == "interrupted"
    assert run["bound"] == run["rows"][-1][3], "the bound of the q in which it ended"
    accesses = [row[1] for row in run["rows"]]
    assert accesses == sorted(set(accesses))
    assert lab.client.post(f"/api/runs/{id}/stop").status_code == 204, "once more does no harm"


def test_settings_that_cannot_be_run_are_refused_by_field(lab: Lab) -> None:
    answer = lab.client.post("/api/runs", json=PAPER | {"kappa": 0.3})
    assert answer.status_code == 422
    assert list(answer.json()["errors"]) == ["kappa"]
    assert next(lab.updates())["kept"] == []


BODIES: dict[str, tuple[int, bytes]] = {
    "empty": (400, b""),
    "cut short": (400, json.dumps(PAPER).encode()[:-5]),
    "not UTF-8": (400, b'{"data": "\xff\xfe"}'),
    "deep": (400, b"[" * 4000),
    "a list": (422, b"[]"),
    "NaN": (422, json.dumps(PAPER | {"rho1": float("nan")}).encode()),
    "a lone surrogate": (422, b'{"\\ud800": 1}'),
    "a number without end": (422, b'{"seed": ' + b"9" * 3000 + b"}"),
    "infinite": (422, b'{"scale": 1e999}'),
    "too long": (413, b" " * 5000),
}


@pytest.mark.parametrize("what", BODIES)
def test_a_malformed_body_is_refused(lab: Lab, what: str) -> None:
    status, body = BODIES[what]
    answer = lab.client.post(
        "/api/runs", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == status
    assert answer.json()["errors"]


def test_a_connection_that_closes_early_does_no_harm(lab: Lab) -> None:
    """The fixture checks at the end that the lab printed nothing about it."""
    host = lab.url.removeprefix("http://").rstrip("/")
    head = f"POST /api/runs HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    events = f"GET /api/events HTTP/1.1\r\nHost: {host}\r\n\r\n"
    for request in (head, events, "nonsense\r\n\r\n"):
        with socket.create_connection(host.split(":")) as page:
            page.sendall(request.encode())
            time.sleep(0.2)
    assert lab.client.get("/api/data").status_code == 200


def test_other_types_methods_and_paths_are_refused(lab: Lab) -> None:
    form = lab.client.post("/api/runs", data={"scale": "1"})
    assert form.status_code == 415
    assert lab.client.get("/api/runs").status_code == 405
    assert lab.client.put("/api/events").status_code == 405
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/", "/nowhere"):
        assert lab.client.get(path).status_code == 404
    assert lab.client.delete("/api/runs/" + "9" * 5000).status_code == 404


def test_the_number_of_runs_is_limited(lab: Lab) -> None:
    made = [lab.start(ENDLESS) for _ in range(12)]
    answer = lab.client.post("/api/runs", json=SMALL)
    assert answer.status_code == 409
    assert "remove one first" in answer.json()["errors"]["request"]
    first = f"/api/runs/{made[0]}"
    assert lab.client.delete(first).status_code == 204
    assert next(lab.updates())["kept"] == made[1:]
    for method, path in (("DELETE", first), ("POST", f"{first}/stop"), ("GET", f"{first}/script")):
        answer = lab.client.request(method, path)
        assert answer.status_code == 404
        assert answer.json() == {"errors": {"request": "there is no such run, or it was removed"}}
    lab.start(SMALL)

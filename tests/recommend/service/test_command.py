"""`svmp recommend serve` by the executable, and its errors."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from svmp.errors import SvmpError
from svmp.recommend.service import demo
from svmp.recommend.service.serve import serve

from .conftest import PATIENCE, ROOT, SVMP, started, wait_for


def refused(*arguments: object, **variables: str) -> str:
    """Return the single line of the command's error."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [SVMP, "recommend", "serve", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": path, **variables},
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("svmp: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_demo_is_served_by_default_until_ctrl_c() -> None:
    with started() as (client, process):
        about = client.get("/model").json()
        assert (about["items"], about["range"]) == (240, [1.0, 5.0])
        assert "<title>svmp recommend</title>" in client.get("/").text
        assert client.get("/", headers={"Host": "evil.example"}).status_code == 403
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE)[1] == ""
        assert process.returncode == 0


def test_processes_share_requests_and_metrics_and_end_together() -> None:
    with started("--workers", 2) as (client, process):
        seen = 0
        for _ in range(20):  # each over a connection of its own, to whoever takes it
            answer = httpx.get(client.base_url.join("/items"), timeout=PATIENCE)
            seen += answer.status_code == 200
        figures = client.get("/metrics").text
        assert seen == 20
        assert 'svmp_requests_total{path="/items",status="200"} 20.0' in figures
        assert 'svmp_model_size{of="items"} 240.0' in figures
        process.kill()
        process.communicate(timeout=PATIENCE)  # which waits for all who can write to its pipes
    with pytest.raises(httpx.ConnectError):
        httpx.get(client.base_url)


def children(pid: int) -> set[int]:
    """Return the worker processes."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    lines = {int(child): Path(f"/proc/{child}/cmdline") for child in found}
    return {child for child, line in lines.items() if b"spawn_main" in line.read_bytes()}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
def test_ended_process_is_replaced() -> None:
    with started("--workers", 2) as (client, process):
        wait_for(lambda: len(children(process.pid)) == 2)
        first = min(children(process.pid))
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: len(children(process.pid) - {first}) == 2)
        assert client.get("/health").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 1.0])
def test_ctrl_c_at_a_terminal_ends_all_processes_quietly(delay: float) -> None:
    """Also while the processes start."""
    process = subprocess.Popen(
        [SVMP, "recommend", "serve", "--workers", "2", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert "is served at" in process.stdout.readline()
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=PATIENCE)[1] == ""
    assert process.returncode == 0


def test_token_from_the_environment(tmp_path: Path) -> None:
    titles = tmp_path / "titles.csv"
    titles.write_text("7,Seven\n")
    options = (demo.MODEL, "--titles", titles, "--max-batch", 2, "--max-body", 99)
    with started(*options, SVMP_TOKEN="secret") as (client, _):
        assert client.get("/items").status_code == 401
        client.headers["Authorization"] = "Bearer secret"
        found = client.get("/items", params={"q": "seven"}).json()["items"]
        assert [(row["item"], row["title"]) for row in found] == [(7, "Seven")]
        assert client.post("/recommend", json={"users": [1, 2, 3]}).status_code == 422
        assert client.post("/recommend", content=b" " * 100).status_code == 413


def test_startup_errors_are_one_sentence(tmp_path: Path) -> None:
    assert "one of the two" in refused(demo.MODEL, "--demo")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert f"127.0.0.1:{port}: Address already in use" in refused("--port", port)
    bad = tmp_path / "titles.csv"
    bad.write_text("id,title\n1,One\n2\n")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"model": tmp_path / "nothing"}, "there is no such model"),
        ({"token": " "}, "the token is empty"),
        ({"titles": bad}, "titles.csv, line 3: there is no title"),
        ({"host": "192.0.2.1", "port": 0}, "192.0.2.1:0: "),
        ({"host": "no.such.host.invalid"}, "no.such.host.invalid"),
    ]
    for options, reason in wrong:
        with pytest.raises(SvmpError, match=re.escape(reason)):
            serve(**options)


def test_missing_extra_is_reported() -> None:
    missing = "prometheus_client"
    code = (
        f"import sys; sys.modules['{missing}'] = None; sys.argv = ['svmp', 'recommend', 'serve'];"
        "from svmp.cli import main; main()"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT
    )
    assert said.returncode == 2
    assert said.stderr == f"svmp: this needs {missing}: pip install 'svmp[serve]'\n"

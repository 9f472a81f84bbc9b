"""`svmp lab` on the command line: its errors, and that no process is left behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmp
from svmp.ratings import read_ratings
from svmp.study.netflix import matrix_factorization

from .conftest import ENDLESS, PATIENCE, SVMP, end_lab, gone, start_lab

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")


@needs_proc
@pytest.mark.parametrize(
    "sent", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_no_process_is_left_behind(sent: signal.Signals) -> None:
    lab = start_lab()
    try:
        lab.wait(lab.start(ENDLESS), lambda run: bool(run["rows"]))
        workers = lab.children()
        assert len(workers) >= 2  # of the run, and a spare
        lab.process.send_signal(sent)
        said = lab.process.communicate(timeout=PATIENCE)[1]
        assert said == ""
        assert lab.process.returncode == -sent
        assert all(gone(worker) for worker in workers)
    finally:
        lab.process.kill()


def test_a_taken_port_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        command = [SVMP, "lab", "--no-open", "--port", port]
        said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert said.returncode == 2
    assert said.stdout == ""
    assert said.stderr == f"svmp: the lab cannot use port {port}: Address already in use\n"


def test_a_missing_extra_is_reported_with_the_command_that_installs_it() -> None:
    code = (
        "import sys; sys.modules['uvicorn'] = None; sys.argv = ['svmp', 'lab'];"
        "from svmp.cli import main; main()"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE
    )
    assert said.returncode == 2
    assert said.stderr == "svmp: this needs uvicorn: pip install 'svmp[study]'\n"


@needs_proc
def test_a_ratings_file_is_offered_until_ctrl_c(tmp_path: Path) -> None:
    """The page offers the file, accepts no other path, and no process is left behind."""
    rng = np.random.default_rng(0)
    pairs = rng.permutation(60 * 40)[:800]
    rows = [f"{pair // 40},{pair % 40},{rng.integers(1, 6)}" for pair in pairs]
    path = tmp_path / 'it\'s "mine".csv'
    path.write_text("\n".join(["user,item,rating", *rows]))
    lab = start_lab("--data", str(path))
    try:
        assert next(iter(lab.client.get("/api/data").json().items())) == ("file", path.name)
        settings = {"data": "file", "factors": 2, "algorithm": "full", "sweeps": 3, "seed": 1}
        run = lab.end_of(lab.start(settings))
        assert run["data"] == f"800 ratings of {path.name}, K = 2"
        model = matrix_factorization(read_ratings(path), 2)
        assert run["bound"] == svmp.fit(model, svmp.FullVB(), seed=1, max_sweeps=3).bound
        variables: dict[str, Any] = {}
        exec(lab.client.get(f"/api/runs/{run['id']}/script").text, variables)
        assert variables["fit"].bound == run["bound"]
        for wrong in ({"data": str(path)}, {"data": "file", "path": str(path)}, {"scale": 1}):
            assert lab.client.post("/api/runs", json=settings | wrong).status_code == 422
        lab.wait(lab.start(settings | {"sweeps": 500}), lambda run: bool(run["rows"]))
        workers = lab.children()
        assert workers
        assert end_lab(lab) == ""
        assert all(gone(worker) for worker in workers)
    finally:
        lab.process.kill()


def test_an_unreadable_file_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n1,2,3\n1,3,good\n")
    command = [SVMP, "lab", "--no-open", "--data", path]
    said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert said.returncode == 2
    assert said.stdout == ""
    assert said.stderr.startswith("svmp: ")
    assert "ratings.csv" in said.stderr
    assert "line 3" in said.stderr
    assert said.stderr.count("\n") == 1

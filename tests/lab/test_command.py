"""`svmp lab` on the command line: what it refuses, and that it leaves nothing behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ENDLESS, SVMP, gone, start_lab

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")


@needs_proc
@pytest.mark.parametrize(
    "sent", [signal.SIGINT, signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_no_process_is_left_behind(sent: signal.Signals) -> None:
    lab = start_lab()
    try:
        lab.wait(lab.start(ENDLESS), lambda run: bool(run["rows"]))
        workers = lab.children()
        assert len(workers) >= 2  # of the run, and a spare
        lab.process.send_signal(sent)
        said = lab.process.communicate(timeout=30)[1]
        assert said == ""
        assert lab.process.returncode == (0 if sent is signal.SIGINT else -sent)
        assert all(gone(worker) for worker in workers)
    finally:
        lab.process.kill()


def test_a_port_that_is_taken_is_named_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        command = [SVMP, "lab", "--no-open", "--port", port]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert said.returncode == 2
    assert said.stdout == ""
    assert said.stderr == f"svmp: the lab cannot use port {port}: Address already in use\n"


def test_without_its_extra_it_says_how_to_get_it() -> None:
    code = (
        "import sys; sys.modules['uvicorn'] = None; sys.argv = ['svmp', 'lab'];"
        "from svmp.cli import main; main()"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert said.returncode == 2
    assert said.stderr == "svmp: this needs uvicorn: pip install 'svmp[study]'\n"


def test_help_explains_it() -> None:
    said = subprocess.run([SVMP, "lab", "--help"], capture_output=True, text=True, timeout=60)
    assert said.returncode == 0
    assert "--port" in said.stdout
    assert "--no-open" in said.stdout

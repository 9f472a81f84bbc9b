"""A running lab, and a client that sends requests as its page does."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

SVMP = Path(sys.executable).parent / "svmp"
SMALL: dict[str, Any] = {
    "data": "netflix-shaped",
    "scale": 0.002,
    "data_seed": 0,
    "factors": 2,
    "algorithm": "default",
    "sweeps": 3,
    "seed": 0,
}
"""A short run."""
CHILDREN = SMALL | {"algorithm": "children", "option": "a", "C": 1}
PAPER = CHILDREN | {"policy": "RobbinsMonro", "kappa": 0.6, "rho1": 1}
ENDLESS = PAPER | {"rho1": "1/512", "scale": 0.01, "sweeps": 500}
"""A run that does not end in the time of a test."""
PATIENCE = 120
"""Time limit in seconds, for a busy machine."""


@dataclass
class Lab:
    """A lab that is running, and a client with the headers of its page."""

    process: subprocess.Popen[str]
    url: str
    client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        headers = {"Origin": self.url.rstrip("/"), "Sec-Fetch-Site": "same-origin"}
        self.client = httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE)

    def start(self, settings: dict[str, Any]) -> str:
        answer = self.client.post("/api/runs", json=settings)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def updates(self) -> Iterator[dict[str, Any]]:
        """Yield the updates that a page receives."""
        with self.client.stream("GET", "/api/events") as stream:
            for line in stream.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

    def wait(self, id: str, until: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return a run, with all its rows, as soon as it meets a condition."""
        rows: list[list[float]] = []
        for update in self.updates():
            for run in update["changed"]:
                if run["id"] == id:
                    assert len(rows) == run["from"]
                    rows += run["rows"]
                    run["rows"] = rows
                    if until(run):
                        return run
        raise AssertionError("the lab ended")

    def end_of(self, id: str) -> dict[str, Any]:
        states = ("waiting", "running", "stopping")
        return self.wait(id, lambda run: run["state"] not in states and not run["probing"])

    def children(self) -> list[int]:
        """Return the ids of its worker processes."""
        pid = self.process.pid
        return [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]

    def clear(self) -> None:
        for id in next(self.updates())["kept"]:
            self.client.delete(f"/api/runs/{id}")


def start_lab(*options: str, command: Sequence[str | Path] = (SVMP,)) -> Lab:
    """Start the executable as a user does, or another command with the same arguments."""
    process = subprocess.Popen(
        [*command, "lab", "--no-open", "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )
    assert process.stdout is not None
    said = process.stdout.readline()
    address = re.search(r"http://127\.0\.0\.1:\d+/", said)
    assert address, said + process.communicate()[1]
    return Lab(process, address[0])


def end_lab(lab: Lab) -> str:
    """Send Ctrl-C; return the output on stderr."""
    lab.client.close()
    lab.process.send_signal(signal.SIGINT)
    said = lab.process.communicate(timeout=PATIENCE)[1]
    assert lab.process.returncode == 0
    return said


def gone(pid: int, seconds: float = PATIENCE) -> bool:
    """Return whether a process ends within some time; a zombie has ended."""
    for _ in range(int(seconds / 0.05)):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.fixture(scope="session")
def _shared_lab() -> Iterator[Lab]:
    lab = start_lab()
    yield lab
    assert end_lab(lab) == ""


@pytest.fixture
def lab(_shared_lab: Lab) -> Iterator[Lab]:
    """A lab without runs; the last test checks that it printed no errors."""
    yield _shared_lab
    _shared_lab.clear()

"""A coordinator that is killed goes on from its checkpoint, to the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import svmp
from tests.parts.killed_fit import SWEEPS, parts, write

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0
"""Seconds to wait for a checkpoint."""


def wait_for_iteration(checkpoint: Path, process: subprocess.Popen[bytes], writes: int) -> None:
    """Wait until a checkpoint was written a number of times."""
    end, seen = time.monotonic() + PATIENCE, set[int]()
    while len(seen) < writes:
        assert time.monotonic() < end, "no checkpoint was written"
        assert process.poll() is None, "the fit ended by itself"
        with suppress(FileNotFoundError):  # for a moment only the previous one is there
            seen.add(checkpoint.stat().st_mtime_ns)


@pytest.mark.slow
@pytest.mark.parametrize("keep", ["memory", "disk"])
def test_killed_coordinator_resumes_to_the_same_bits(keep: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    write(tmp_path)
    options = {"tol": 0, "max_sweeps": SWEEPS}
    whole = svmp.fit(parts(tmp_path), **options)
    checkpoint = tmp_path / "run.ckpt"
    command = [sys.executable, "-m", "tests.parts.killed_fit", str(tmp_path), keep]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        wait_for_iteration(checkpoint, process, writes=3)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    # The killed run may have gone on beyond SWEEPS, so that it is compared where it was.
    resumed = svmp.fit(parts(tmp_path, keep=keep), resume=checkpoint, max_sweeps=SWEEPS)
    if resumed.iterations > whole.iterations:
        whole = svmp.fit(parts(tmp_path), tol=0, max_sweeps=resumed.accesses / accesses(whole))
    assert resumed.iterations == whole.iterations
    for name in whole.posteriors:
        assert np.array_equal(resumed[name].natural, whole[name].natural)


def accesses(fit: svmp.Fit) -> float:
    """Return the accesses of a sweep over all parts."""
    spent = np.diff(fit.trace["accesses"])
    return float(spent.max())

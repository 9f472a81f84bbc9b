"""What `make demo` runs, on fewer ratings."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("scale", ["0.01", "0.003"])
def test_the_demo_shows_a_divergence_and_draws(scale, tmp_path):
    figure = tmp_path / "demo.png"
    command = [sys.executable, "-W", "error", "-m", "svmp.demo"]
    options = ["--scale", scale, "--sweeps", "2", "--out", str(figure)]
    done = subprocess.run(command + options, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "diverged" in done.stdout
    assert done.stdout.count("budget") == 3
    assert figure.stat().st_size > 10_000

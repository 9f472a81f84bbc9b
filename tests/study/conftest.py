"""A small study, made once by the executable, for the tests of its parts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SVMP = Path(sys.executable).parent / "svmp"
TINY = [
    "--data", "netflix-shaped:0.002", "--children", "1,5", "--batches", "100,500",
    "--max-accesses", "60000",
]  # fmt: skip


def svmp_study(*arguments: str | Path, **options) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    command = [str(SVMP), "study", *map(str, arguments)]
    env = {**os.environ, "COLUMNS": "100", "PYTHONWARNINGS": "error"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, env=env, **options
    )


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study of two thousand ratings."""
    folder = tmp_path_factory.mktemp("study") / "tiny"
    done = svmp_study("all", "--out", folder, *TINY, "--threads", "1")
    assert done.returncode == 0, done.stderr
    (folder / "said.txt").write_text(done.stdout)
    return folder

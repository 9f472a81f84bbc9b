"""Compiling in another process: loading, waiting, and going on where it fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from svmp.kernels.machine import ahead

WRITE = """
import os, sys, pathlib
for path in sys.argv[1:]:
    pathlib.Path(path + "~").write_text("loop")
    os.replace(path + "~", path)
"""


def test_a_loop_that_another_process_compiles_is_waited_for(tmp_path: Path) -> None:
    path = str(tmp_path / "loop.nbc")
    ahead.compile_ahead([path], WRITE, path)
    ahead.wait_for(path)
    assert Path(path).read_text() == "loop"


def test_loops_of_one_process_are_loaded_one_by_one(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("one.nbc", "two.nbc")]
    ahead.compile_ahead(paths, WRITE, *paths)
    for path in paths:
        ahead.wait_for(path)
        assert Path(path).read_text() == "loop"
    assert not ahead._running


def test_paths_that_imports_ignore_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path, b"bytes"])
    path = str(tmp_path / "loop.nbc")
    ahead.compile_ahead([path], WRITE, path)
    ahead.wait_for(path)
    assert Path(path).read_text() == "loop"


def test_nothing_is_started_for_a_loop_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "loop.nbc"
    path.touch()
    monkeypatch.setattr(ahead, "start_python", None)
    ahead.compile_ahead([str(path)], WRITE)
    ahead.compile_ahead([None], WRITE)
    ahead.wait_for(str(path))


def test_a_process_that_fails_is_forgotten(tmp_path: Path) -> None:
    path = str(tmp_path / "loop.nbc")
    ahead.compile_ahead([path], "raise SystemExit(1)")
    ahead.wait_for(path)
    assert not ahead._running
    assert not Path(path).exists()


def test_a_process_that_takes_too_long_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "loop.nbc")
    monkeypatch.setattr(ahead, "PATIENCE", 0.1)
    ahead.compile_ahead([path], "import threading; threading.Event().wait()")
    process = ahead._running[path]
    ahead.wait_for(path)
    assert process.returncode is not None


def test_a_python_that_cannot_be_started_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    ahead.compile_ahead([str(tmp_path / "loop.nbc")], WRITE)
    assert not ahead._running


def test_the_other_process_imports_the_same_svmp() -> None:
    code = "import svmp; print(svmp.__file__)"
    process = ahead.start_python(code, stdout=subprocess.PIPE)
    out, _ = process.communicate(timeout=300)
    import svmp

    assert Path(out.decode().strip()) == Path(svmp.__file__)

"""One process at a time holds the lock of a path, which is free however that process ends."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from svmp import locking
from svmp.errors import FileError
from svmp.locking import lock_of, locked

ROOT = Path(__file__).parents[1]
HOLD = """
import sys
from pathlib import Path
from svmp.locking import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held(target: Path) -> Iterator[subprocess.Popen[str]]:
    """Let another process hold the lock of a path until its input is closed."""
    command = [sys.executable, "-c", HOLD, str(target)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, text=True, env=env, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        try:
            yield process
        finally:
            process.kill()


def test_lock_of_another_process_ends_with_a_sentence(tmp_path: Path) -> None:
    with held(tmp_path / "it") as process:
        says = rf"it: process {process.pid} is still writing there after 0.1 seconds.*, or raise w"
        with pytest.raises(FileError, match=says), locked(tmp_path / "it", 0.1, "raise wait"):
            pass
        with locked(tmp_path / "other", 0.0):
            pass


def test_waits_until_the_other_process_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "SOON", 0.0)
    order: list[str] = []
    with held(tmp_path / "it") as process:

        def wait() -> None:
            with locked(tmp_path / "it"):
                order.append("locked")

        waiting = threading.Thread(target=wait)
        waiting.start()
        said = ""
        while "waiting for process" not in said:
            said += capsys.readouterr().err
            time.sleep(0.01)
        order.append("ended")
        assert process.stdin is not None
        process.stdin.close()
        waiting.join()
    assert order == ["ended", "locked"]
    assert said == f"svmp: waiting for process {process.pid}, which writes to {tmp_path / 'it'}\n"


def test_killed_process_leaves_nothing_locked(tmp_path: Path) -> None:
    with held(tmp_path / "it") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert lock_of(tmp_path / "it").exists()  # which locks nothing
    with locked(tmp_path / "it", 0.0):
        pass
    assert not list(tmp_path.iterdir())


def test_threads_exclude_each_other_and_one_may_enter_again(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(20):
            with locked(tmp_path / "it"), locked(tmp_path / "it", 0.0):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.001)
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1}
    assert len(most) == 80
    assert not list(tmp_path.iterdir())


def test_paths_of_one_place_have_one_lock(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with (
        held(tmp_path / "real" / "it"),
        pytest.raises(FileError, match="still writing"),
        locked(tmp_path / "link" / "it", 0.0),
    ):
        pass


def test_file_system_without_locks_lets_writers_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(file: int) -> None:
        raise OSError(locking.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locking, "_lock", unsupported)
    with locked(tmp_path / "it") as alone:
        assert not alone


def test_impossible_place_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(FileError, match=r"it: cannot be written \(No such file"),
        locked(tmp_path / "nowhere" / "it"),
    ):
        pass


def on_windows(monkeypatch: pytest.MonkeyPatch, steps: list[str]) -> ModuleType:
    """Import the module as on Windows, whose locks are imitated by those of this system."""
    import fcntl

    fake = ModuleType("msvcrt")

    def locking(file: int, mode: int, count: int) -> None:
        steps.append(f"lock {os.lseek(file, 0, os.SEEK_CUR)}")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None

    vars(fake).update(LK_NBLCK=2, locking=locking)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        patch.setitem(sys.modules, "msvcrt", fake)
        spec = importlib.util.spec_from_file_location("locking_on_windows", locking_file())
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def locking_file() -> str:
    assert locking.__file__ is not None
    return locking.__file__


def test_calls_on_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte behind the content is locked, and another handle is told that it is busy."""
    steps: list[str] = []
    module = on_windows(monkeypatch, steps)
    with module.locked(tmp_path / "it"):
        assert module._attempt(module.lock_of(tmp_path / "it")) is None
        assert module.lock_of(tmp_path / "it").read_text() == str(os.getpid())
    assert steps == [f"lock {module.PLACE}"] * 2
    with module.locked(tmp_path / "it"):
        pass

"""What is compiled: named on a terminal, with the duration of the last time."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest

from svmp.kernels.machine import compilations
from svmp.kernels.machine.compiling import jit, shared
from svmp.kernels.machine.durations import NAME, read_durations
from svmp.kernels.machine.threads import use_threads


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@jit
def doubled(x: Any) -> Any:
    return 2 * x


def add_twice(x: Any, out: Any) -> None:
    out[0] += doubled(x)


def said(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, tell: bool = True) -> list[str]:
    """Compile a loop, for a second listener too, and return the lines that are printed."""
    monkeypatch.setattr(sys, "stderr", stream)
    loop = shared(add_twice)
    with use_threads(1, tell=tell), use_threads(1, tell=tell):
        out = np.zeros(1)
        loop(3.0, out)
    assert out[0] == 6
    return stream.getvalue().splitlines()


def test_loops_are_named_on_a_terminal_with_their_last_duration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(compilations, "folder_of", lambda loop: tmp_path / "svmp-1")
    monkeypatch.setattr(compilations, "SHORT", 0.0)
    monkeypatch.setattr(compilations, "_told", False)
    monkeypatch.setattr(shared(add_twice)._cache.__class__, "load_overload", lambda *_: None)
    monkeypatch.setattr(shared(add_twice)._cache.__class__, "save_overload", lambda *_: None)
    name = compilations.name_of(shared(add_twice))
    line = f"svmp: compiling {name}"
    assert said(monkeypatch, Terminal()) == [compilations.NOTICE, line]
    took = read_durations(tmp_path / "svmp-1")[name]
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert said(monkeypatch, Terminal()) == [f"{line} ({took:.1f} s last time)"]
    assert said(monkeypatch, io.StringIO()) == []
    assert said(monkeypatch, Terminal(), tell=False) == []


def test_loops_are_named_without_the_folder_of_loops() -> None:
    from svmp.kernels.vectors.mean_steps import move_means

    assert compilations.name_of(move_means) == "vectors.mean_steps.move_means"

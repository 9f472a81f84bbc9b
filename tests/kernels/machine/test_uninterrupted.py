"""Ctrl-C during compilation."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from svmp.kernels.machine.compiling import njit


def test_interrupts_are_raised_after_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.codegen import CPUCodeLibrary

    usual, done = CPUCodeLibrary.finalize, []

    def finalize(self: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        usual(self)
        done.append(True)

    def twice(x):  # type: ignore[no-untyped-def]
        return 2 * x

    monkeypatch.setattr(CPUCodeLibrary, "finalize", finalize)
    with pytest.raises(KeyboardInterrupt):
        njit(twice)(1)
    assert done
    monkeypatch.undo()
    assert njit(twice)(1) == 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_that_do_not_raise_are_called_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.codegen import CPUCodeLibrary

    usual, heard = CPUCodeLibrary.finalize, []

    def finalize(self: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        usual(self)

    def thrice(x):  # type: ignore[no-untyped-def]
        return 3 * x

    monkeypatch.setattr(CPUCodeLibrary, "finalize", finalize)
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        assert njit(thrice)(1) == 3
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard

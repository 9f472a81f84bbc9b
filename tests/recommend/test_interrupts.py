"""Ctrl-C in Python: progress is kept, or the model is unchanged."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

from svmp.fitting.online import Online
from svmp.inference.running import run
from svmp.inference.running.stopping import catch_interrupt
from svmp.recommend import EventModel, RatingModel, update
from tests.recommend.tools import drawn, parts

KINDS: list[Any] = [RatingModel, EventModel]


def small(kind: Any) -> Any:
    few = {"max_sweeps": 3} if kind is RatingModel else {"iterations": 4}
    return kind(2, progress=False, threads=1, **few)


def press(monkeypatch: pytest.MonkeyPatch, kind: Any, at: int, times: int = 1) -> None:
    """Press Ctrl-C at the end of an iteration."""
    usual = kind.advance

    def advance(self: Any, *more: Any) -> Any:
        done = usual(self, *more)
        if self.state.iteration == at:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
        return done

    monkeypatch.setattr(kind, "advance", advance)


def test_interrupted_fit_of_events_keeps_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    short = EventModel(2, iterations=2, progress=False, threads=1).fit(drawn(0))
    assert not short.interrupted_
    press(monkeypatch, Online, 2)
    model = small(EventModel).fit(drawn(0))
    assert model.interrupted_
    assert np.array_equal(model.items_.side.mean, short.items_.side.mean)
    monkeypatch.undo()
    assert not model.fit(drawn(0)).interrupted_


@pytest.mark.parametrize("kind", KINDS)
def test_second_interrupt_raises_and_leaves_the_model_unchanged(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small(kind).fit(parts().train)
    before = dict(model.__dict__)
    press(monkeypatch, Online, 1, times=2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(drawn(1))
    assert model.__dict__ == before
    fresh = small(kind)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(drawn(1))
    assert not fresh.is_fitted


def test_interrupt_before_the_first_sweep_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """With too few ratings to hold any out."""
    usual = run.Run.__post_init__

    def pressed(self: run.Run) -> None:
        usual(self)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(run.Run, "__post_init__", pressed)
    model = small(RatingModel)
    with pytest.raises(KeyboardInterrupt):
        model.fit(([1, 1, 2], [1, 2, 1], [3.0, 4.0, 5.0]))
    assert not model.is_fitted


@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_update_changes_nothing(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small(kind).fit(drawn(0))
    before = dict(model.__dict__)
    if kind is RatingModel:
        monkeypatch.setattr(update, "sweep", lambda *_: signal.raise_signal(signal.SIGINT))
    else:
        press(monkeypatch, Online, 1)
    with pytest.raises(KeyboardInterrupt):
        model.update(([9999, 9999], [14, 21], [5.0, 1.0]))
    assert model.__dict__ == before


def test_failed_update_changes_nothing() -> None:
    model = EventModel(2, iterations=2, counts=True, progress=False, threads=1).fit(drawn(0))
    before = dict(model.__dict__)
    with pytest.raises(ValueError, match="count"):
        model.update(([9999, 9999], [14, 21], [5.5, 1.0]))
    assert model.__dict__ == before


def test_nested_handlers() -> None:
    with catch_interrupt() as outer:
        with catch_interrupt() as inner:
            signal.raise_signal(signal.SIGINT)
            assert (inner.pressed, outer.pressed) == (True, True)
        with catch_interrupt() as another:
            assert not another.pressed
            signal.raise_signal(signal.SIGINT)
            assert another.pressed
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupt_before_a_nested_handler_reaches_it() -> None:
    with catch_interrupt() as outer:
        signal.raise_signal(signal.SIGINT)
        for first in (True, False):
            with catch_interrupt() as inner:
                assert inner.pressed == first
        assert outer.pressed


def test_ignored_interrupts_stay_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with catch_interrupt() as interrupt:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        assert not interrupt.pressed
    finally:
        signal.signal(signal.SIGINT, before)


def test_first_interrupt_is_acknowledged(capfd: pytest.CaptureFixture[str]) -> None:
    with catch_interrupt(tell=True):
        signal.raise_signal(signal.SIGINT)
    assert capfd.readouterr().err.startswith("svmp: interrupted: ending with what was learned")

"""Notebooks: progress without widgets, and every figure once."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot

import svmp
from svmp.inference import notebook
from svmp.inference.progress import line_of_progress
from svmp.recommend.top import shown


class Handle:
    """A display with an id: what it has shown, one after the other."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def update(self, data: dict[str, str], raw: bool) -> None:
        assert raw
        self.texts.append(data["text/plain"])


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of texts that the output of a cell has had, in a kernel without widgets."""
    texts: list[str] = []

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        texts.append(data["text/plain"])
        return Handle(texts)

    ipython, displays = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    displays.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    return texts


def model() -> svmp.Model:
    with svmp.Model() as declared:
        mu = svmp.Normal("mu", mu=0, tau=1)
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        svmp.Normal("y", mu=mu, tau=tau, observed=np.arange(20.0))
    return declared


def test_a_fit_shows_its_progress_in_the_cell(cell: list[str], capfd: Any) -> None:
    svmp.fit(model(), progress=True)
    assert cell[0].startswith("iteration 1 ")
    assert "bound" in cell[-1]
    assert capfd.readouterr() == ("", "")


def test_a_short_fit_shows_none_unasked(cell: list[str]) -> None:
    svmp.fit(model())
    assert cell == []


def test_progress_is_shown_unasked_after_a_second(
    cell: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(notebook.time, "monotonic", lambda: now[0])
    with line_of_progress(None) as show:
        for second in (0.5, 1.1, 1.2, 1.5):
            now[0] = second
            show(f"after {second}")
    assert cell == ["after 1.1", "after 1.5"]  # 1.2 comes too soon


def test_the_last_text_stays(cell: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook.time, "monotonic", lambda: 0.0)
    with line_of_progress(True) as show:
        show("first")
        show("last")
    assert cell == ["first", "last"]


def test_recommending_counts_its_blocks(cell: list[str]) -> None:
    assert list(shown(range(3), True)) == [0, 1, 2]
    assert cell[0] == "recommending: 0 of 3"
    assert cell[-1] == "recommending: 3 of 3"


def test_starts_show_their_progress(cell: list[str]) -> None:
    svmp.fit(model(), restarts=2, progress=True)
    assert "2 of 2 starts" in cell[-1]


@pytest.mark.parametrize("name", ["plot", "plot_trace", "plot_posterior"])
def test_the_value_of_a_plot_is_no_figure_that_a_cell_would_show_again(name: str) -> None:
    pyplot.close("all")  # figures of other tests
    found = np.atleast_1d(getattr(svmp.fit(model()), name)())
    assert not any(hasattr(found, f"_repr_{kind}_") for kind in ("html", "png", "svg"))
    assert [type(ax).__name__ for ax in found] == ["Axes"] * len(found)
    assert len(pyplot.get_fignums()) == 1
    pyplot.close("all")

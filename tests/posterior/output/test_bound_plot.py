"""The plot of the bound against accesses shows the trace."""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import svmp
from tests.inference.models import ratings


@pytest.fixture(autouse=True)
def _no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(mpl.rcParams, "backend", "agg")


def test_plot_of_the_bound_against_accesses() -> None:
    fit = svmp.fit(ratings(), svmp.FullVB(), max_sweeps=5, tol=0)
    ax = fit.plot()
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_xdata(), fit.trace["accesses"])
    np.testing.assert_array_equal(line.get_ydata(), fit.trace["bound"])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    assert "accesses" in ax.get_xlabel()
    assert "bound" in ax.get_ylabel()
    assert ax.get_title()


def test_start_is_not_plotted() -> None:
    fit = svmp.fit(ratings(), svmp.Children(2), max_sweeps=30, tol=0)
    assert fit.trace["accesses"][0] == 0
    (line,) = fit.plot().lines
    np.testing.assert_array_equal(line.get_xdata(), fit.trace["accesses"][1:])


def test_several_fits_share_axes() -> None:
    ax = Figure().subplots()
    for name, method in {"full": svmp.FullVB(), "sampled": svmp.Children(2)}.items():
        assert svmp.fit(ratings(), method, max_sweeps=30).plot(ax=ax, label=name) is ax
    assert [line.get_label() for line in ax.lines] == ["full", "sampled"]


def test_run_without_a_sweep_gives_an_empty_plot() -> None:
    ax = svmp.fit(ratings(), svmp.FullVB(), max_seconds=1e-12).plot()
    ax.figure.canvas.draw()
    assert not len(ax.lines)


def test_missing_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = svmp.fit(ratings(), svmp.FullVB(), max_sweeps=1)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(svmp.SvmpError, match=r"svmp\[plot\]"):
        fit.plot()

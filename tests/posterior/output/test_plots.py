"""Figures of posteriors, runs and predictions show the numbers of the fit."""

from __future__ import annotations

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from scipy import stats

import svmp
from svmp.posterior.output.figures import log_axis, new_axes

from ..labelled import WHO, labelled


@pytest.fixture(autouse=True)
def _plain_figures(monkeypatch: pytest.MonkeyPatch):
    """No windows, and not the style that the gallery sets in the same process."""
    monkeypatch.setitem(mpl.rcParams, "backend", "agg")
    with pyplot.style.context("default"):
        yield
    pyplot.close("all")


def test_a_panel_for_each_variable() -> None:
    _, fit = labelled()
    axes = fit.plot_posterior()
    panels = {ax.get_title(): ax for ax in axes}
    assert list(panels) == list(fit.posteriors)
    assert [text.get_text() for text in panels["u"].get_yticklabels()] == WHO
    np.testing.assert_array_equal(panels["u"].lines[0].get_xdata(), fit.mean("u"))
    x, density = panels["p"].lines[0].get_data()
    np.testing.assert_allclose(density, stats.beta(2, 1).pdf(x))
    widths = [bar.get_width() for bar in panels["z"].patches]
    np.testing.assert_allclose(widths, fit.mean("z").mean(axis=0))
    heights = {
        bar.get_x() + bar.get_width() / 2: bar.get_height() for bar in panels["count"].patches
    }
    assert heights[2] == pytest.approx(stats.poisson(3).pmf(2))
    assert panels["grid"].get_ylabel() == "who"
    assert panels["grid"].get_legend().get_title().get_text() == "day"
    axes[0].figure.canvas.draw()


def test_large_arrays_are_bands() -> None:
    _, fit = labelled()
    (ax,) = fit.plot_posterior("grid", most=2)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), np.sort(fit.mean("grid").ravel()))
    assert "6 entries" in ax.get_xlabel()
    with pytest.raises(svmp.ModelError, match="most must be"):
        fit.plot_posterior(most=0)
    with pytest.raises(svmp.ModelError, match="at least one"):
        fit.plot_posterior([])


def test_the_trace_with_held_out_values() -> None:
    y = np.arange(12.0)
    with svmp.Model(coords={"group": 3}) as model:
        mu = svmp.Normal("mu", mu=0, tau=0.1)
        u = svmp.Normal("u", mu=mu, tau=1, dims="group")
        train, test = np.where(y < 10, y, np.nan), np.where(y < 10, np.nan, y)
        svmp.Normal("r", mu=u[np.arange(12) % 3], tau=1, observed=train, missing=True)
    fit = svmp.fit(model, svmp.FullVB(), max_sweeps=5, tol=0, held_out={"r": test})
    bound, gap, held_out = fit.plot_trace()
    np.testing.assert_array_equal(bound.lines[0].get_ydata(), fit.trace["bound"])
    best = fit.trace["bound"].max()
    np.testing.assert_array_equal(gap.lines[0].get_ydata(), best - fit.trace["bound"][:-1])
    np.testing.assert_array_equal(held_out.lines[0].get_ydata(), fit.trace["held_out"])


def test_predictions_beside_observed_values() -> None:
    x = np.linspace(-1, 1, 60)
    with svmp.Model() as model:
        slope = svmp.Normal("slope", mu=0, tau=1)
        svmp.Normal("y", mu=slope * x, tau=4, observed=np.r_[np.nan, 2 * x[1:]], missing=True)
    fit = svmp.fit(model)
    prediction = fit.predict(model, "y")
    ax = fit.plot_predictive(model, "y", x=x[::-1])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), prediction.mean[::-1])
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), np.r_[np.nan, 2 * x[1:]][::-1])
    by_mean = fit.plot_predictive(prediction)
    np.testing.assert_allclose(by_mean.lines[0].get_ydata(), np.sort(prediction.mean))
    with pytest.raises(
        svmp.ModelError, match=r"x needs a number for each row of 'y', in the shape \(60,\)"
    ):
        fit.plot_predictive(prediction, x=[1.0])


def test_few_rows_have_their_labels() -> None:
    with svmp.Model(coords={"who": WHO}) as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        svmp.Normal("y", mu=mu, tau=1, dims="who", observed=[1.0, 2.0, 3.0])
    ax = svmp.fit(model).plot_predictive(model, "y")
    assert [text.get_text() for text in ax.get_xticklabels()] == WHO


def schools() -> tuple[svmp.Model, svmp.Fit, np.ndarray]:
    """Return a model of three effects in each of 20 schools, whose posteriors are known."""
    effect = np.random.default_rng(0).normal(size=(20, 3))
    names = [f"school {place}" for place in range(20)]
    with svmp.Model(coords={"school": names, "year": [2021, 2022, 2023]}) as model:
        theta = svmp.Normal("theta", mu=0, tau=1, dims=("school", "year"))
        svmp.Normal("y", mu=theta, tau=3, dims=("school", "year"), observed=effect)
    return model, svmp.fit(model), effect


def test_a_table_of_20_by_3_has_a_line_for_each_row_and_a_colour_for_each_column() -> None:
    _, fit, effect = schools()
    (ax,) = fit.plot_posterior("theta")
    assert [text.get_text() for text in ax.get_yticklabels()] == [f"school {i}" for i in range(20)]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["2021", "2022", "2023"]
    assert len({line.get_color() for line in ax.lines}) == 3
    for year, (line, bars) in enumerate(zip(ax.lines, ax.collections, strict=True)):
        np.testing.assert_allclose(line.get_xdata(), 0.75 * effect[:, year])  # 3 / (3 + 1)
        np.testing.assert_allclose(line.get_ydata(), np.arange(20), atol=0.5)
        ends = np.array([segment[:, 0] for segment in bars.get_segments()])
        half = stats.norm.ppf(0.95) / 2  # the sd is 1 / sqrt(4)
        expected = 0.75 * effect[:, year, None] + [-half, half]
        np.testing.assert_allclose(ends, expected)


def test_predictions_of_20_by_3_rows_have_labels_and_colours() -> None:
    model, fit, effect = schools()
    ax = fit.plot_predictive(model, "y")
    assert [text.get_text() for text in ax.get_xticklabels()] == [f"school {i}" for i in range(20)]
    predicted, observed = ax.lines[:3], ax.lines[3:]
    for year in range(3):
        np.testing.assert_allclose(predicted[year].get_ydata(), 0.75 * effect[:, year])
        np.testing.assert_array_equal(observed[year].get_ydata(), effect[:, year])
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == [*(f"predicted mean, year 202{y}" for y in "123"), "observed"]


def test_every_plot_returns_axes() -> None:
    model, fit, _ = schools()
    one = [fit.plot(), fit.plot_predictive(model, "y")]
    several = [*fit.plot_trace(), *fit.plot_posterior()]
    assert all(isinstance(ax, Axes) for ax in (*one, *several))


@pytest.mark.parametrize("factor", [1.5, 8, 1e3, 1e7])
def test_labels_of_a_logarithmic_axis_are_readable(factor: float) -> None:
    ax = new_axes()
    ax.plot([3000, 3000 * factor], [0, 1])
    log_axis(ax)
    ax.figure.canvas.draw()
    boxes = [
        text.get_window_extent() for text in ax.get_xticklabels(which="both") if text.get_text()
    ]
    low, high = ax.get_xlim()
    shown = [b for b, x in zip(boxes, ax.get_xticks(), strict=False) if low <= x <= high]
    assert len(shown) >= 2
    assert all(a.x1 < b.x0 for a, b in pairwise(shown))

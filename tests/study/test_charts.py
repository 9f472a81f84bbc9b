"""Charts have the paper's layout, and colours for every kind of colour vision."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from matplotlib.colors import to_rgb

from svmp.study import figures, on_paper
from svmp.study.chart import INK, PanelColumn, PanelRow, ordered
from svmp.study.runs import Clock, spread

PAPER, NIGHT = (1.0, 1.0, 1.0), to_rgb("#1b1f24")


def luminance(colour) -> float:
    """As WCAG defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(one, other) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_lightness_of_colours_rises_with_C():
    """So they are ordered with every kind of colour vision, and in greyscale print."""
    colours = [ordered(x) for x in np.linspace(0, 1, 20)]
    for theme in ("light", "dark"):
        assert (np.diff([luminance(getattr(c, theme)) for c in colours]) > 0).all()


def test_no_line_fades_into_its_background():
    for x in np.linspace(0, 1, 20):
        assert contrast(ordered(x).light, PAPER) > 1.5
        assert contrast(ordered(x).dark, NIGHT) > 1.9
    assert contrast(INK.light, PAPER) == 21


def run(number, method, option, size, status, bounds, ending, rho1=1.0):
    of = {"run": number, "method": method, "option": option, "size": size, "rho1": rho1}
    about = {
        **of, "policy": "robbins-monro", "status": status, "ending": ending, "start": -100.0,
        "bound": bounds[-1], "lowest": min(bounds), "label": f"{method} {size}",
    }  # fmt: skip
    frame = {"accesses": np.arange(len(bounds)) * 10.0, "bound": bounds}
    return about, pl.DataFrame(frame).with_columns(run=pl.lit(number))


@pytest.fixture
def figure2():
    full = run(0, "full", "a", 0, "budget", [-100.0, -60.0, -20.0], "converged")
    made = [full]
    for number, (option, size) in enumerate([(o, c) for o in "ab" for c in (1, 2, 10)], 1):
        lost = size == 1
        bounds = [-100.0, -300.0, -1e9] if lost else [-100.0, -900.0 / size, -19.0]
        status = ("diverged", "diverged") if lost else ("budget", "converged")
        made.append(run(number, "children", option, size, status[0], bounds, status[1]))
    traces = pl.concat([t.with_columns(accesses=pl.col("accesses")) for _, t in made])
    return figures.chart("figure2", traces, {"runs": [a for a, _ in made]}, 0.6)


def test_figure_2_has_the_papers_layout(figure2):
    assert [c.title[:10] for c in figure2.columns] == ["Option (a)", "Option (b)"]
    assert len(figure2.rows) == 3
    for column in figure2.columns:
        assert column.x_scale == "log"
        assert [line.label for line in column.lines] == ["C = 1", "C = 2", "C = 10", "full VB"]
        assert column.lines[-1].colour is INK
        assert all(x > 0 for line in column.lines for x in line.x)
        assert [line.lost for line in column.lines] == [True, False, False, False]


def test_rows_are_magnifications(figure2):
    spans = [row.high - row.low for row in figure2.rows]
    assert spans[0] > spans[1] > spans[2]
    falls, climb, ends = figure2.rows
    assert falls.low <= -450  # the deepest from which a run came back
    assert climb.low < -100  # the start
    assert ends.low < -20
    assert ends.high > -19


def test_every_line_begins_at_the_common_start(figure2):
    for column in figure2.columns:
        for line in column.lines:
            assert (line.x[0], line.y[0]) == (5.0, -100.0)


def test_the_matplotlib_figure_shows_the_chart(figure2):
    figure = on_paper.draw(figure2)
    assert len(figure.axes) == 6
    for axes, row in zip(figure.axes, np.repeat(figure2.rows, 2), strict=True):
        assert axes.get_ylim() == (row.low, row.high)
        assert axes.get_xscale() == "log"
        black = [line for line in axes.lines if line.get_color() == "#000000"]
        assert len(black) == 1


def test_log_axes_and_ticks_in_matplotlib():
    figure = on_paper.draw(
        figures.Chart("x", "t", "c", "a", "y", [PanelColumn("A", "C", [])],
                      [PanelRow(1 / 8, 1, "log", {1.0: "1", 0.25: "1/4"})])
    )  # fmt: skip
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["1", "1/4"]


def test_bounds_are_spread_evenly_over_a_log_axis():
    chosen = [t for t in range(1, 100_000) if spread(t)]
    ratios = np.array(chosen[30:]) / np.array(chosen[29:-1])
    assert chosen[:8] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert ratios.max() < 1.16
    assert 60 < len(chosen) < 130


def test_the_time_for_bounds_is_not_counted():
    clock = Clock(every=True)
    clock.asked = {1: 11.0, 2: 13.0}  # a run that began at 10, and computes bounds for a second
    net = clock.net(10.0, np.array([0, 1, 2]), np.array([1.5, 2.0, 4.0]))
    assert net == pytest.approx([0.5, 0.5, 1.0], abs=1e-6)

"""Draw the figure of the README: the bound of three runs from the same start on a million ratings.

    python docs/figures/divergence.py

Stochastic variational inference reads four ratings for each hidden number in an iteration, with
steps of t^-0.6, until svmp's guard ends the run. Full variational Bayes reads all ratings in every
sweep. `svmp.fit(model)` is the default.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

import svmp
from svmp.datasets import netflix_shaped
from svmp.study.netflix import beginning, matrix_factorization

FACTORS, SWEEPS, RATINGS = 5, 10, 1_000_000
GREEN, ORANGE, BLACK, GREY = "#009e73", "#d55e00", "#000000", "#666666"


def runs() -> dict[str, tuple[svmp.Fit, str]]:
    """Fit the same ratings from the same start in three ways, each with its colour."""
    ratings = netflix_shaped()
    model, start = matrix_factorization(ratings, FACTORS), beginning(ratings, FACTORS)
    accesses = SWEEPS * 2 * FACTORS * len(ratings)
    options = {"init": start, "tol": 0, "max_sweeps": None, "max_accesses": accesses}
    usual = svmp.RobbinsMonro(kappa=0.6)
    return {
        "stochastic VI diverges": (
            svmp.fit(model, svmp.Children(4), steps=usual, bound_every=1, **options),
            ORANGE,
        ),
        "full variational Bayes": (svmp.fit(model, svmp.FullVB(), **options), BLACK),
        "svmp.fit(model)": (svmp.fit(model, bound_every=1, **options), GREEN),
    }


def draw(found: dict[str, tuple[svmp.Fit, str]], path: Path) -> None:
    """Draw the bounds against the ratings read, with labels where lines end."""
    mpl.rcParams.update({"svg.hashsalt": "svmp", "svg.fonttype": "none", "font.size": 11})
    figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
    places = {
        "stochastic VI diverges": (0.15, 1.5e9),
        "full variational Bayes": (2.2, 4.2e6),
        "svmp.fit(model)": (1.15, 1.15e6),
    }
    for label, (fit, colour) in found.items():
        later = fit.trace["accesses"] > 0
        passes = fit.trace["accesses"][later] / (2 * FACTORS * RATINGS)
        loss = -fit.trace["bound"][later]
        axes.plot(passes, loss, "o-", color=colour, linewidth=2.2, markersize=3)
        if fit.status == "diverged":
            axes.plot(passes[-1], loss[-1], "x", color=colour, markersize=10, markeredgewidth=2.5)
        axes.text(*places[label], label, color=colour, fontweight="bold")
    axes.set(xscale="log", yscale="log", ylim=(5e9, 9e5))
    axes.set_yticks([1e6, 1e7, 1e8, 1e9], ["−1", "−10", "−100", "−1,000"])
    axes.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    axes.set_xlabel("passes over the million ratings")
    axes.set_ylabel("evidence lower bound\n(million nats, log scale)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_title("A million ratings, five factors, the same start", color=GREY, fontsize=11)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(runs(), Path(__file__).with_suffix(".svg"))

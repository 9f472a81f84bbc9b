"""`make demo`: see a stochastic algorithm diverge, full VB climb, and the default get there first.

It draws ratings of the shape of the paper's Netflix sample, at a third of its size, declares the
paper's matrix factorization, and fits it four ways. The figure is the bound against accesses.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import svmp
from svmp.inference.selection import Selection
from svmp.inference.steps import Steps
from svmp.study.netflix import matrix_factorization, netflix_shaped

COLOURS = {"diverged": "#d55e00", "full": "#000000", "nodewise": "#0072b2", "default": "#009e73"}


def main(path: Path, scale: float, sweeps: float) -> None:
    """Fit the model four ways; print a table and draw a figure."""
    console = Console()
    ratings = netflix_shaped(scale)
    console.print(
        f"{len(ratings.rating):,} ratings of {ratings.items:,} items by {ratings.users:,} users, "
        "drawn to be shaped like Netflix's"
    )
    model = matrix_factorization(ratings, factors=5)
    print(model, flush=True)
    one, five, paper = svmp.Children(1), svmp.Children(5), svmp.RobbinsMonro(kappa=0.6)
    runs: list[tuple[str, str, Selection | None, Steps | None]] = [
        ("Algorithm 1, C = 1, steps t^-0.6", "diverged", one, paper),
        ("Algorithm 1, C = 5, node-wise steps", "nodewise", five, svmp.Nodewise()),
        ("full VB", "full", svmp.FullVB(), None),
        ("svmp.fit(model), nothing to tune", "default", None, None),
    ]
    table = Table("algorithm", "ended", "bound", "sweeps' worth", "seconds", title="The same start")
    fits = []
    for label, colour, method, steps in runs:
        began = time.perf_counter()
        every = None if isinstance(method, svmp.FullVB) else 1
        with console.status(f"{label} (compiling the loops first, if it is the first run)"):
            fit = svmp.fit(
                model,
                method,
                steps=steps,
                max_sweeps=sweeps,
                tol=0,
                bound_every=every,
                progress=False,
            )
        spent = fit.trace["accesses"][-1] / (10 * len(ratings.rating))
        seconds = time.perf_counter() - began
        bound = f"{fit.bound:,.0f}" if fit.status != "diverged" else f"({fit.bound:,.0f})"
        table.add_row(label, fit.status, bound, f"{spent:.2f}", f"{seconds:.1f}")
        fits.append((label, COLOURS[colour], fit))
    console.print(table)
    console.print(
        "In brackets: the bound of the last sound q, which is what a diverged run returns."
    )
    draw(path, fits)
    console.print(f"The figure is in {path}")


def draw(path: Path, fits: list[tuple[str, str, svmp.Fit]]) -> None:
    """Draw the bound against accesses, as the paper does."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(11, 4.5), sharex=True, layout="constrained")
    for label, colour, fit in fits:
        accesses, bound = fit.trace["accesses"].astype(float), fit.trace["bound"]
        first = min(accesses[accesses > 0], default=2.0)
        accesses[accesses == 0] = first / 2  # a log axis has no zero
        for axes in panels:
            axes.plot(accesses, bound / 1000, color=colour, label=label, lw=2)
    start = min(fit.trace["bound"][0] for _, _, fit in fits) / 1000
    best = max(fit.bound for _, _, fit in fits) / 1000
    panels[0].set(ylim=(2 * start, 0), ylabel="evidence lower bound (thousand nats)")
    panels[0].legend(loc="lower right", frameon=False)
    panels[0].set_title("From the start: one run is lost at once", loc="left")
    panels[1].set(ylim=(1.3 * best, 0.985 * best))
    panels[1].set_title("The same, magnified", loc="left")
    for axes in panels:
        axes.set(xscale="log", xlabel="ratings accessed")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=Path("svmp-demo.png"), help="the figure's file")
    parser.add_argument("--scale", type=float, default=0.3, help="share of the paper's size")
    parser.add_argument("--sweeps", type=float, default=12, help="budget, in sweeps of full VB")
    arguments = parser.parse_args()
    main(arguments.out, arguments.scale, arguments.sweeps)

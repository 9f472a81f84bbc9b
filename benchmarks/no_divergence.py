"""Count divergences: node-wise steps over every C, option, algorithm, K, seed and data set.

    python benchmarks/no_divergence.py --factors 5 --seeds 0 --iterations 60
    python benchmarks/no_divergence.py --data gallery

Divergence occurs in the first iterations, when steps are longest. Each run takes `--iterations`,
and is counted by its status and by whether it ends above its start. The default, and all runs on
the networks of the gallery, take `--sweeps` sweeps' worth of accesses. Prints a Markdown table with
a line for each data set and K, or for each network.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from common import DATA

import svmp
from svmp.datasets import netflix_shaped
from svmp.ratings import Ratings, read_ratings
from svmp.study.netflix import matrix_factorization

ROOT = Path(__file__).parents[1]
METHODS = [svmp.Children(C, o) for C, o in product((1, 2, 3, 5, 10, 20), "ab")]
METHODS += [svmp.Batch(size, o) for size, o in product((100, 1000), "ab")]
Budgets = list[dict[str, float | None]]


def load(name: str) -> Ratings | None:
    if name == "netflix-shaped":
        return netflix_shaped()
    path = DATA / name / "ratings.npz"
    if not path.exists():
        return None
    return read_ratings(path)


def accesses(ratings: Ratings, factors: int, method: svmp.Children | svmp.Batch) -> int:
    """Return the number of accesses of one iteration."""
    if isinstance(method, svmp.Batch):
        return 2 * factors * method.size
    counts = np.concatenate([np.bincount(ratings.user), np.bincount(ratings.item)])
    return factors * int(np.minimum(counts, method.C).sum())


def models(settings: argparse.Namespace) -> Iterator[tuple[str, svmp.Model | None, Budgets]]:
    """Yield each network's name, the network (None without data), and the budget of each method."""
    for name in settings.data:
        if name == "gallery":
            sys.path.insert(0, str(ROOT))
            from tests.inference.tools import gallery

            for title, model in gallery().items():
                yield title, model, [{"max_sweeps": settings.sweeps}] * len(METHODS)
            continue
        ratings = load(name)
        for factors in settings.factors:
            title = f"{name}, K = {factors}"
            if ratings is None:
                yield title, None, []
                continue
            reads = [settings.iterations * accesses(ratings, factors, method) for method in METHODS]
            budgets: Budgets = [{"max_accesses": read, "max_sweeps": None} for read in reads]
            yield title, matrix_factorization(ratings, factors), budgets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", nargs="+", default=["netflix-shaped", "goodbooks", "movietweetings", "gallery"]
    )
    parser.add_argument("--factors", nargs="+", type=int, default=[5, 20])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--sweeps", type=float, default=6)
    settings = parser.parse_args()
    print("| network | runs of Nodewise | diverged | ended below their start | ", end="")
    print("runs of the default | diverged | ended below their start |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name, model, budgets in models(settings):
        if model is None:
            print(f"| {name} | 0 | the data are absent | | | | |", flush=True)
            continue
        quiet = {"tol": 0, "progress": False}
        nodewise = [
            svmp.fit(model, method, steps=svmp.Nodewise(), seed=seed, **budget, **quiet)
            for seed in settings.seeds
            for method, budget in zip(METHODS, budgets, strict=True)
        ]
        default = [
            svmp.fit(model, seed=seed, max_sweeps=settings.sweeps, **quiet)
            for seed in settings.seeds
        ]
        counted = " | ".join(
            f"{len(fits)} | {lost(fits)} | {below(fits)}" for fits in (nodewise, default)
        )
        print(f"| {name} | {counted} |", flush=True)


def lost(fits: list[svmp.Fit]) -> int:
    """Return how many diverged or were rolled back."""
    return sum(f.status == "diverged" or f.trace["rollbacks"][-1] > 0 for f in fits)


def below(fits: list[svmp.Fit]) -> int:
    """Return how many ended with a lower bound than the first."""
    return sum(not f.bound >= f.trace["bound"][0] for f in fits)


if __name__ == "__main__":
    main()

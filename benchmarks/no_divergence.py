"""Count divergences: node-wise steps over every C, option, algorithm, K, seed and data set.

    python benchmarks/no_divergence.py --factors 5 --seeds 0 --iterations 60

Divergence shows in the first iterations, when steps are longest; each run takes that many and is
counted by its status and by whether it ends above its start. The default takes so many sweeps'
worth of accesses. Prints a Markdown table, a line for each data set and K.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np

import svmp
from svmp.ratings import Ratings, read_ratings
from svmp.study.netflix import matrix_factorization, netflix_shaped

SHARED = Path(__file__).parents[2] / "shared" / "data"


def load(name: str) -> Ratings | None:
    if name == "netflix-shaped":
        return netflix_shaped()
    path = SHARED / name / "ratings.npz"
    if not path.exists():
        return None
    return read_ratings(path)


def accesses(ratings: Ratings, factors: int, method: svmp.Children | svmp.Batch) -> int:
    """Return what one iteration reads."""
    if isinstance(method, svmp.Batch):
        return 2 * factors * method.size
    counts = np.concatenate([np.bincount(ratings.user), np.bincount(ratings.item)])
    return factors * int(np.minimum(counts, method.C).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", nargs="+", default=["netflix-shaped", "goodbooks", "movietweetings"]
    )
    parser.add_argument("--factors", nargs="+", type=int, default=[5, 20])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--sweeps", type=float, default=6, help="of the default")
    settings = parser.parse_args()
    ways = [svmp.Children(C, o) for C, o in product((1, 2, 3, 5, 10, 20), "ab")]
    ways += [svmp.Batch(size, o) for size, o in product((100, 1000), "ab")]
    print("| data | K | runs of Nodewise | diverged | ended below their start | ", end="")
    print("runs of the default | diverged | ended below their start |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name, factors in product(settings.data, settings.factors):
        ratings = load(name)
        if ratings is None:
            print(f"| {name} | {factors} | 0 | the data are absent | | | | |", flush=True)
            continue
        model = matrix_factorization(ratings, factors)
        nodewise, default = [], []
        for seed in settings.seeds:
            for method in ways:
                budget = settings.iterations * accesses(ratings, factors, method)
                limits = {"max_accesses": budget, "max_sweeps": None, "steps": svmp.Nodewise()}
                nodewise.append(svmp.fit(model, method, seed=seed, tol=0, progress=False, **limits))
            sweeps = settings.sweeps
            default.append(svmp.fit(model, seed=seed, tol=0, max_sweeps=sweeps, progress=False))
        counted = " | ".join(
            f"{len(fits)} | {lost(fits)} | {below(fits)}" for fits in (nodewise, default)
        )
        print(f"| {name} | {factors} | {counted} |", flush=True)


def lost(fits: list[svmp.Fit]) -> int:
    """Return how many diverged, or had to be rolled back."""
    return sum(f.status == "diverged" or f.trace["rollbacks"][-1] > 0 for f in fits)


def below(fits: list[svmp.Fit]) -> int:
    """Return how many ended with a lower bound than the first that was computed."""
    return sum(not f.bound >= f.trace["bound"][0] for f in fits)


if __name__ == "__main__":
    main()

"""Count divergences of node-wise steps: every C, option, algorithm, K, seed and data set.

    python benchmarks/no_divergence.py --factors 5 --seeds 0 --iterations 60

Divergence shows in the first iterations, when steps are longest; each run takes that many and is
counted by its status and by whether it ends above its start. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np

import svmp
from svmp.study.netflix import Ratings, matrix_factorization, netflix_shaped

SHARED = Path(__file__).parents[2] / "shared" / "data"


def load(name: str) -> Ratings | None:
    if name == "netflix-shaped":
        return netflix_shaped()
    path = SHARED / name / "ratings.npz"
    if not path.exists():
        return None
    table = np.load(path)
    user, item = table["user"], table["item"]
    return Ratings(user, item, table["rating"], int(user.max()) + 1, int(item.max()) + 1)


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
    settings = parser.parse_args()
    ways = [svmp.Children(C, o) for C, o in product((1, 2, 3, 5, 10, 20), "ab")]
    ways += [svmp.Batch(size, o) for size, o in product((100, 1000), "ab")]
    print("| data | K | runs | diverged | ended below their start |")
    print("|---|---|---|---|---|", flush=True)
    for name, factors in product(settings.data, settings.factors):
        ratings = load(name)
        if ratings is None:
            print(f"| {name} | {factors} | 0 | the data are absent | |", flush=True)
            continue
        model = matrix_factorization(ratings, factors)
        diverged = below = runs = 0
        for method, seed in product(ways, settings.seeds):
            budget = settings.iterations * accesses(ratings, factors, method)
            fit = svmp.fit(
                model,
                method,
                steps=svmp.Nodewise(),
                seed=seed,
                tol=0,
                max_accesses=budget,
                max_sweeps=None,
                progress=False,
            )
            runs += 1
            diverged += fit.status == "diverged" or fit.trace["rollbacks"][-1] > 0
            below += not fit.bound > fit.trace["bound"][0]
        print(f"| {name} | {factors} | {runs} | {diverged} | {below} |", flush=True)


if __name__ == "__main__":
    main()

"""The speed of answers: fold-in, the first ten of 20,000 items for one user and for 100,000.

The factors are random, K = 32, and every user has seen 20 items. The batch runs in a separate
process, whose peak memory is measured, in turn with implicit's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from alone import in_new_process, peak_GB
from common import THREADS, Row, Unavailable, ask, seconds
from recommend_data import Settings
from runs import Runs

from svmp.recommend import RatingModel
from svmp.recommend.history import History
from svmp.recommend.side import EntityTable, Side
from svmp.recommend.spread import Spread

USERS, ITEMS, FACTORS, SEEN, RATED, FIRST = 100_000, 20_000, 32, 20, 50, 10
MOST_MS, MOST_GB = 1.0, 1.0
ROUNDS = 3
Found = dict[str, Any]


def drawn(users: int, seed: int = 0) -> RatingModel:
    """Return a model as if it had been fitted."""
    rng = np.random.default_rng(seed)
    model = RatingModel(FACTORS, progress=False)
    for name, what, size in (("users_", "user", users), ("items_", "item", ITEMS)):
        mean = 0.3 * rng.standard_normal((size, FACTORS), np.float32)
        bias, var = 0.3 * rng.standard_normal(size, np.float32), np.full(size, 0.1, np.float32)
        side = Side(bias, var, mean, np.full(mean.shape, 0.05, np.float32))
        prior = Side.prior(5.0, np.full(FACTORS, 10.0), full=False)
        setattr(model, name, EntityTable(what, np.arange(size), side, prior))
    seen = rng.integers(0, ITEMS // SEEN, (users, SEEN)) + np.arange(SEEN) * (ITEMS // SEEN)
    item, rating = seen.astype(np.int32).ravel(), np.full(seen.size, 4, np.float32)
    model.history_ = History(np.arange(users + 1) * SEEN, item, rating)
    model.offset_, model.range_, model.prior_noise_ = 3.6, (1.0, 5.0), 0.7
    model.noise_, model.spread_ = np.full(users, 0.7, np.float32), Spread.normal()
    return model


def one() -> Iterator[tuple[str, float]]:
    """Yield the milliseconds of single answers."""
    model, rng = drawn(1000), np.random.default_rng(1)
    rated = rng.choice(ITEMS, RATED, replace=False)
    ratings = rng.integers(1, 6, RATED).astype(float)
    person = model.fold_in(rated, ratings)
    for what, call in (
        (f"fold-in of a user with {RATED} ratings", lambda: model.fold_in(rated, ratings)),
        (f"first {FIRST} of {ITEMS:,} for a user", lambda: model.recommend(7, FIRST)),
        (f"first {FIRST} of {ITEMS:,} for a fold-in", lambda: model.recommend(person, FIRST)),
    ):
        call()
        yield what, 1000 * seconds(call, 300)


def batch(users: int) -> Found:
    """Return seconds and peak memory of recommendations for many users."""
    model = drawn(users)
    model.recommend(np.arange(10), FIRST, progress=False)  # compiles
    everybody = np.arange(users)
    least = seconds(lambda: model.recommend(everybody, FIRST, progress=False))
    return {"seconds": least, "peak_GB": peak_GB()}


def theirs(users: int) -> float:
    """Return implicit's seconds for the same."""
    model = drawn(users)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "factors.npz"
        np.savez(
            path,
            users=model.users_.side.mean,
            items=model.items_.side.mean,
            begin=model.history_.begin,
            seen=model.history_.item,
        )
        request = {"data": str(path), "threads": THREADS, "first": FIRST, "repeat": 2}
        return min(ask("implicit", request, "implicit_top")["seconds"])


def measure(settings: Settings) -> Iterator[tuple[Found, Found]]:
    for what, milliseconds in one():
        yield {"model": "svmp", "what": what}, {"ms": milliseconds}
    users = 2000 if settings.quick else USERS
    what = f"first {FIRST} of {ITEMS:,} for {users:,} users"
    own, others = [], []
    for _ in range(1 if settings.quick else ROUNDS):
        own.append(in_new_process(__file__, {"users": users}))
        try:
            others.append(theirs(users))
        except Unavailable as reason:
            yield {"model": "implicit", "what": what}, {"failed": str(reason)}
    best = min(own, key=lambda run: run["seconds"])
    yield {"model": "svmp", "what": what}, best
    if others:
        yield {"model": "implicit", "what": what}, {"seconds": min(others)}


def rows(runs: Runs) -> Iterator[Row]:
    for run in runs.of(model="svmp"):
        if "ms" in run:
            yield Row(run["what"], run["ms"], MOST_MS, "the limit", "ms", 1.0)
        else:
            its = next((r["seconds"] for r in runs.of(model="implicit", what=run["what"])), None)
            yield Row(run["what"], run["seconds"], its, "implicit", wanted=2.0)
            what = f"peak memory, {run['what']}"
            yield Row(what, run["peak_GB"], MOST_GB, "the limit", "GB", 1.0)


def grids(runs: Runs) -> list[Found]:
    return []


if __name__ == "__main__":
    print(json.dumps(batch(**json.load(sys.stdin))))

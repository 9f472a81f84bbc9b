"""Sweeps of full VB in a separate process: seconds of the fastest sweep, and peak memory.

The numbers of million ratings, factors and sweeps are read as JSON from standard input; the answer
is JSON. The ratings are drawn a million at a time, each million by other users of the same 16,015
items, as in the whole of the Netflix data.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from typing import Any

import numpy as np
from common import iteration_seconds

import svmp
from svmp.datasets.netflix import ITEMS, RATINGS, USERS
from svmp.ratings import Ratings
from svmp.study.netflix import matrix_factorization


def ratings(millions: float, seed: int = 0) -> Ratings:
    """Generate ratings in chunks, into arrays of the final size."""
    share = min(millions, 1.0)
    chunks = range(round(millions / share))
    users, count = round(USERS * share), round(RATINGS * share)
    user, item = (np.empty(len(chunks) * count, np.int32) for _ in range(2))
    rating = np.empty(len(user), np.float32)
    popularity = (np.arange(ITEMS) + 20.0) ** -0.9
    level = 0.45 * np.random.default_rng(seed).standard_normal(ITEMS)
    for chunk in chunks:
        rng, part = np.random.default_rng([seed, chunk]), slice(chunk * count, (chunk + 1) * count)
        activity = np.exp(1.1 * rng.standard_normal(users))
        user[part] = chunk * users + rng.choice(users, count, p=activity / activity.sum())
        item[part] = rng.choice(ITEMS, count, p=popularity / popularity.sum())
        score = 3.6 + level[item[part]] + rng.standard_normal(count)
        rating[part] = np.clip(np.rint(score), 1, 5)
    return Ratings.of_keys(user, item, rating, len(chunks) * users, ITEMS)


def peak_GB() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def sweeps(millions: float, factors: int, sweeps: int) -> dict[str, float]:
    imports = peak_GB()
    model = matrix_factorization(ratings(millions), factors)
    data = peak_GB()
    seconds = iteration_seconds(model, svmp.FullVB(), svmp.Constant(1.0), sweeps)
    return {"seconds": seconds, "imports_GB": imports, "data_GB": data, "peak_GB": peak_GB()}


def alone(millions: float, factors: int = 32, sweeps: int = 6, threads: int = 0) -> dict[str, Any]:
    """Run sweeps in a new process, by default with one thread per core."""
    request = {"millions": millions, "factors": factors, "sweeps": sweeps}
    return in_new_process(__file__, request, threads)


def in_new_process(script: str, request: dict[str, Any], threads: int = 0) -> dict[str, Any]:
    """Send a request as JSON to the standard input of a script; return the JSON that it prints."""
    path = os.pathsep.join(p for p in sys.path if p)
    environment = {**os.environ, "PYTHONPATH": path}
    if threads:
        environment["SVMP_THREADS"] = str(threads)
    done = subprocess.run(
        [sys.executable, script],
        input=json.dumps(request),
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    print(json.dumps(sweeps(**json.load(sys.stdin))))

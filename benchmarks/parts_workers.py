"""Rows in parts on Dask workers: seconds a sweep with one and with two workers, K = 32.

Ratings are generated in Parquet parts of a million, each with users of its own, and 5,000 items
that all parts share. A sweep visits all parts once, and solves the factors of all items from the
sums. Workers are processes with one thread on this machine, and parts stay in their memory.
Coordination is the time of a sweep during which the busiest worker did not compute: sending q,
exchanging sums, and fetching the items' new parameters. The users' q is fetched in every eighth
sweep, so times are means over eight sweeps in a row, of which the least is taken.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, main
from distributed import Client, LocalCluster, get_task_stream
from parts_data import write_ratings

import svmp

ITEMS, FACTORS, GROUPS, SWEEPS, ROUND = 5_000, 32, 4, 19, 8
FEW_SWEEPS = 11


def declare(part: Any) -> svmp.Model:
    """Declare the network of one part: users' factors are its own, items' are shared."""
    first = int(part["user"][0])
    users = int(part["user"][-1]) - first + 1  # rows are sorted by user
    coords = {"user": range(first, first + users), "item": ITEMS, "factor": FACTORS}
    with svmp.Model(coords=coords) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
        mean = svmp.dot(u[np.asarray(part["user"]) - first], v[part["item"]])
        svmp.Normal("r", mu=mean + 3.5, tau=1.2, dims="row", observed=part["rating"])
    return model


def sweep(paths: list[Path], workers: int, sweeps: int = SWEEPS) -> tuple[float, float]:
    """Return the seconds of a sweep, and those in which the busiest worker computed."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        return measured(paths, client, sweeps)


def measured(paths: list[Path], client: Any, sweeps: int) -> tuple[float, float]:
    times: list[float] = []
    parts = svmp.Parts(declare, svmp.parquet(paths), shared=["v"], groups=GROUPS, memory="8GB")
    with get_task_stream(client) as stream:
        svmp.fit(
            parts,
            svmp.Growing(1.0),
            tol=0,
            max_sweeps=sweeps,
            bound_every=1,
            client=client,
            progress=False,
            watch=lambda row: times.append(time.time()),
        )
    found = []
    for begin, end in pairwise(times[1:]):
        busy: dict[str, float] = defaultdict(float)
        for task in stream.data:
            for piece in task["startstops"]:
                if piece["action"] == "compute" and begin <= piece["start"] <= end:
                    busy[task["worker"]] += piece["stop"] - piece["start"]
        found.append((end - begin, max(busy.values())))
    rounds = [found[i : i + ROUND] for i in range(len(found) - ROUND + 1)]
    seconds, busiest = min((np.mean(some, axis=0) for some in rounds), key=lambda some: some[0])
    return float(seconds), float(busiest)


def generated(folder: str, ratings: int) -> tuple[list[Path], str]:
    """Write ratings in parts; return their files, and what they are."""
    paths = write_ratings(folder, ratings, max(1, ratings // 200), ITEMS)
    return paths, f"{ratings / 1e6:g} million ratings, K = {FACTORS}"


def coordination(what: str, name: str, found: tuple[float, float], goal: float) -> Row:
    seconds, busy = found
    title = f"coordination a sweep, {what}, {name}"
    return Row(title, seconds - busy, busy, "its computing", "s", goal)


def measure(quick: bool) -> Iterator[Row]:
    few, many = (2_000_000, 4_000_000) if quick else (10_000_000, 100_000_000)
    with tempfile.TemporaryDirectory() as folder:
        paths, what = generated(folder, few)
        one, two = sweep(paths, 1), sweep(paths, 2)
    yield Row(f"sweep, {what}: two workers / one", two[0], one[0], "one worker", "s", 0.65)
    yield coordination(what, "one worker", one, 0.2)
    yield coordination(what, "two workers", two, 0.2)
    with tempfile.TemporaryDirectory() as folder:
        paths, what = generated(folder, many)
        yield coordination(what, "two workers", sweep(paths, 2, FEW_SWEEPS), 0.1)


if __name__ == "__main__":
    main(measure, __doc__)

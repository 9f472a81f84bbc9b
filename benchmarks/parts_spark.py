"""Rows in parts beside Spark's ALS: time to the same held-out RMSE, a million ratings.

Spark runs on this machine, with a thread for each core; starting its session, warming it up and
reading the table are not counted. Its rank, regularisation and number of iterations are the best of
a grid on the held-out ratings; its time is that of its fastest fit within 0.0005 of its best RMSE.
svmp fits the parts by default: biases, factors and the precision of each are learned, and the rank
is Spark's. It is run anew for each number of sweeps until its RMSE is as low as Spark's; its time
includes dividing the table, declaring the parts and the bounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import LADDER, THREADS, Curve, Row, Unavailable, ask, first_at, main
from recommend_data import as_file, parts, table

import svmp
from svmp.network.dims.data_columns import Columns
from svmp.recommend.metrics import rmse
from svmp.recommend.split import Split

PARTS, NEAR = 8, 0.0005
GRID = {"ranks": [5, 6, 8, 16, 32], "regs": [0.05, 0.07, 0.1], "iterations": [3, 5, 7, 15, 20]}
QUICK = {"ranks": [4], "regs": [0.1], "iterations": [3]}


def network(items: int, factors: int, mean: float) -> Callable[[Any], svmp.Model]:
    """Return a function that declares the network of some users' ratings."""

    def declare(part: Columns) -> svmp.Model:
        coords = {"user": part.labels("user"), "item": range(items), "factor": factors}
        user, item = part.keys("user"), part["item"]
        with svmp.Model(coords=coords) as model:
            tau = svmp.Gamma("tau", alpha=1, beta=1)
            of = {name: svmp.Gamma(f"of_{name}", alpha=1, beta=1) for name in "abuv"}
            a = svmp.Normal("a", mu=0, tau=of["a"], dims="user")
            b = svmp.Normal("b", mu=0, tau=of["b"], dims="item")
            u = svmp.Normal("u", mu=0, tau=of["u"], dims=("user", "factor"))
            v = svmp.Normal("v", mu=0, tau=of["v"], dims=("item", "factor"))
            eta = a[user] + b[item] + svmp.dot(u[user], v[item]) + mean
            svmp.Normal("r", mu=eta, tau=tau, dims="rating", observed=part["rating"])
        return model

    return declare


def fit(data: Split, factors: int, sweeps: int) -> tuple[float, float, float]:
    """Return the seconds of a fit, its held-out RMSE, and its processor seconds."""
    train, test = data
    began, cpu = time.perf_counter(), time.process_time()
    columns = {"user": train.user, "item": train.item, "rating": train.rating}
    mean = float(train.rating.mean())
    rows = svmp.Parts(
        network(train.items, factors, mean), svmp.split(columns, by="user", parts=PARTS)
    )
    found = svmp.fit(rows, max_sweeps=sweeps, progress=False)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    rows.close()
    known = np.unique(train.user)
    at = np.searchsorted(known, test.user).clip(max=len(known) - 1)
    seen = known[at] == test.user
    guess = mean + found.mean("b")[test.item]
    theirs = found.mean("a")[at]
    theirs += np.einsum("rk,rk->r", found.mean("u")[at], found.mean("v")[test.item])
    guess += np.where(seen, theirs, 0)
    return seconds, rmse(test.rating, guess.clip(test.rating.min(), test.rating.max())), cpu


def spark(data: Split, quick: bool) -> list[dict[str, float]]:
    """Return Spark's fits."""
    train = data.train
    columns = {
        "user": train.user.astype(np.int32),
        "item": train.item.astype(np.int32),
        "rating": train.rating.astype(np.float32),
    }
    with as_file(data) as request:
        path = Path(request["data"]).with_name("train.parquet")
        pq.write_table(pa.table(columns), path)
        grid = QUICK if quick else GRID
        request |= {"table": str(path), "threads": THREADS, "seed": 0, **grid}
        runs: list[dict[str, float]] = ask("spark", request, "spark_als")["runs"]
        return runs


def compare(name: str, quick: bool) -> Iterator[Row]:
    data = parts(table(name, 0.02 if quick else 1.0), 0)
    what = f"time to equal held-out RMSE, {name}"
    try:
        runs = spark(data, quick)
    except Unavailable as reason:
        yield Row(what, against="Spark ALS", note=str(reason))
        return
    best = min(runs, key=lambda run: run["rmse"])
    near = [run for run in runs if run["rmse"] <= best["rmse"] + NEAR]
    chosen = min(near, key=lambda run: run["seconds"])
    curve: Curve = []
    fit(parts(table("Netflix-shaped", 0.01), 0), int(best["rank"]), 2)  # compiles
    for sweeps in LADDER:
        seconds, error, cpu = fit(data, int(best["rank"]), sweeps)
        curve.append((seconds, error))
        if curve[-1][1] <= best["rmse"] or curve[-1][0] > 2 * chosen["seconds"]:
            break
    its = (
        f"rank {chosen['rank']:.0f}, regParam {chosen['reg']:g}, maxIter {chosen['iterations']:.0f}"
    )
    note = f"RMSE {curve[-1][1]:.4f} and {chosen['rmse']:.4f} ({its}); "
    note += f"processor seconds {cpu:.3g} and {chosen['cpu']:.3g}: {cpu / chosen['cpu']:.3g}"
    mine = first_at(curve, best["rmse"])
    yield Row(what, mine, chosen["seconds"], "Spark ALS", "s", 1 / 3, note)


def measure(quick: bool) -> Iterator[Row]:
    for name in ("Netflix-shaped",) if quick else ("Netflix-shaped", "goodbooks"):
        yield from compare(name, quick)


if __name__ == "__main__":
    main(measure, __doc__)

"""Sweeps over parts, or over one table, in a separate process: seconds a sweep, and peak memory.

The request is read as JSON from standard input: a folder of Parquet parts, the number of factors
and of sweeps, the memory for parts, and how many of the parts to read into one table (0: none, the
parts stay in their files). The answer is JSON. A sweep lasts from one iteration's end to the next.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import svmp
from svmp.network.dims.data_columns import Columns


@dataclass
class Clock:
    """Notes when iterations end: `svmp.fit` asks it whether a bound is due, and it never is."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def __call__(self, iteration: int) -> bool:
        self.wall.append(time.perf_counter())
        self.cpu.append(time.process_time())
        return False

    def least(self) -> tuple[float, float]:
        """Return the least wall seconds and the least processor seconds of a sweep."""
        return float(np.diff(self.wall).min()), float(np.diff(self.cpu).min())


def paper_model(items: int, factors: int) -> Callable[[Any], svmp.Model]:
    """Return a function that declares the paper's factorization for some rows."""

    def declare(part: Columns) -> svmp.Model:
        coords = {"user": part.labels("user"), "item": range(items), "factor": factors}
        with svmp.Model(coords=coords) as model:
            u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
            v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
            mean = svmp.dot(u[part.keys("user")], v[part["item"]])
            svmp.Normal("r", mu=mean, tau=1, dims="rating", observed=part["rating"])
        return model

    return declare


def timed(
    data: svmp.Model | svmp.Parts, method: svmp.inference.methods.Method, sweeps: int
) -> tuple[float, float]:
    """Return the least wall and processor seconds of a sweep of a fit."""
    clock = Clock()
    svmp.fit(data, method, tol=0, max_sweeps=sweeps, bound_every=clock, progress=False)
    return clock.least()


def peak_GB() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def one_table(paths: list[Path]) -> Columns:
    """Read files into one table."""
    source = svmp.parquet(paths, by="user")
    tables = [source.load(part) for part in range(len(source))]
    names = tables[0].columns
    return Columns({name: np.concatenate([t[name] for t in tables]) for name in names})


def measure(request: dict[str, Any]) -> dict[str, float]:
    declare = paper_model(request["items"], request["factors"])
    paths = sorted(Path(request["folder"]).glob("*.parquet"))
    data: svmp.Model | svmp.Parts
    began = time.perf_counter()
    if request["in_memory"]:
        data = declare(one_table(paths[: request["in_memory"]]))
    else:
        source = svmp.parquet(paths, by="user")
        data = svmp.Parts(declare, source, own=["u"], memory=request["memory"])
    wall, cpu = timed(data, svmp.Growing(1.0), request["sweeps"])
    whole = time.perf_counter() - began
    return {"seconds": wall, "cpu": cpu, "peak_GB": peak_GB(), "whole": whole}


if __name__ == "__main__":
    print(json.dumps(measure(json.load(sys.stdin))))

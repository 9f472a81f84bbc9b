"""A fit over Parquet parts in a process of its own, which a test kills: `killed_fit.py folder`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import svmp

SWEEPS = 40


def declare(part: Any) -> svmp.Model:
    coords = {"user": part.labels("user"), "item": range(20), "factor": 3}
    with svmp.Model(coords=coords) as model:
        spread = svmp.Gamma("spread", alpha=1, beta=1)
        a = svmp.Normal("a", mu=0, tau=spread, dims="user")
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
        user = part.keys("user")
        mean = a[user] + svmp.dot(u[user], v[part.item])
        svmp.Normal("r", mu=mean, tau=2, dims="rating", observed=part.rating)
    return model


def write(folder: Path) -> None:
    """Write ratings as four Parquet files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    for part in range(4):
        columns = {
            "user": rng.integers(30, size=500) + 30 * part,
            "item": rng.integers(20, size=500),
            "rating": rng.normal(size=500),
        }
        pq.write_table(pa.table(columns), folder / f"part-{part}.parquet")


def parts(folder: Path, **options: Any) -> svmp.Parts:
    """Return the parts, of which two at most are in memory."""
    files = svmp.parquet(folder / "*.parquet", by="user")
    return svmp.Parts(declare, files, memory=1, groups=2, **options)


def main(folder: Path, keep: str) -> None:
    checkpoint = folder / "run.ckpt"
    svmp.fit(parts(folder, keep=keep), tol=0, max_sweeps=10**6, checkpoint=checkpoint, every=1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

"""Generated ratings in Parquet parts, for the benchmarks of rows in parts.

    python benchmarks/parts_data.py DIRECTORY [--ratings 300000000]

Part p has a contiguous range of users, so that no user is in two parts, and is generated on its
own from the seed and p: memory does not grow with the number of parts. A rating is
3.5 + a_user + b_item + u_user . v_item + noise, in half stars from 0.5 to 5; items are drawn with
the square of a uniform number as their rank, so that a few are rated often. Some pairs (4%) occur
twice.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

ROWS = 1_000_000
"""Number of rows of a part."""
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Shape:
    """Size and strength of the generated structure."""

    ratings: int = 300_000_000
    users: int = 1_500_000
    items: int = 10_000
    factors: int = 8
    seed: int = 0

    @property
    def parts(self) -> int:
        return max(1, round(self.ratings / ROWS))

    def users_of(self, part: int) -> tuple[int, int]:
        """Return the first user of a part, and the first of the next."""
        return part * self.users // self.parts, (part + 1) * self.users // self.parts

    def rows_of(self, part: int) -> int:
        first, end = part * self.ratings // self.parts, (part + 1) * self.ratings // self.parts
        return end - first


def write_ratings(
    directory: Path | str,
    ratings: int = 300_000_000,
    users: int = 1_500_000,
    items: int = 10_000,
    factors: int = 8,
    seed: int = 0,
) -> list[Path]:
    """Write the parts `part-00000.parquet` and so on; those that are there already are kept."""
    shape = Shape(ratings, users, items, factors, seed)
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    bias, vectors = item_side(shape)
    paths = [folder / f"part-{part:05}.parquet" for part in range(shape.parts)]
    for part, path in enumerate(paths):
        if not path.exists():
            draft = path.with_suffix(".draft")
            table = part_of(shape, part, bias, vectors)
            pq.write_table(table, draft, compression="zstd", compression_level=1)
            draft.replace(path)
    return paths


def item_side(shape: Shape) -> tuple[Floats, Floats]:
    """Return the biases and the factors of all items."""
    rng = np.random.default_rng([shape.seed, 0])
    bias = 0.4 * rng.standard_normal(shape.items, np.float32)
    return bias, _factors(rng, shape.items, shape.factors)


def part_of(shape: Shape, part: int, bias: Floats, vectors: Floats) -> pa.Table:
    """Generate one part: rows sorted by user, each user with about as many items."""
    rng = np.random.default_rng([shape.seed, 1, part])
    first, end = shape.users_of(part)
    rows, users = shape.rows_of(part), end - first
    activity = rng.standard_exponential(users, np.float32) + np.float32(0.1)
    counts = np.floor(activity * (rows / activity.sum())).astype(np.int64)
    counts[: rows - counts.sum()] += 1
    user = np.repeat(np.arange(users, dtype=np.int32), counts)
    item = (shape.items * rng.random(rows, np.float32) ** 2).astype(np.int32)
    np.minimum(item, shape.items - 1, out=item)
    own = 0.4 * rng.standard_normal(users, np.float32)
    mine = _factors(rng, users, shape.factors)
    rating = np.float32(0.8) * rng.standard_normal(rows, np.float32)
    rating += own[user] + bias[item] + np.float32(3.5)
    for k in range(shape.factors):  # one factor at a time: no array of rows by factors
        rating += mine[k][user] * vectors[k][item]
    rating = np.clip(np.round(2 * rating), 1, 10) / np.float32(2)
    return pa.table({"user": user + np.int32(first), "item": item, "rating": rating})


def _factors(rng: np.random.Generator, count: int, factors: int) -> Floats:
    """Return factors by elements; together they contribute a variance of about 0.5."""
    scale = np.float32((0.5 / max(factors, 1)) ** 0.25)
    return scale * rng.standard_normal((factors, count), np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--ratings", type=int, default=Shape.ratings)
    parser.add_argument("--users", type=int, default=None, help="by default one for 200 ratings")
    parser.add_argument("--items", type=int, default=Shape.items)
    parser.add_argument("--factors", type=int, default=Shape.factors)
    parser.add_argument("--seed", type=int, default=Shape.seed)
    given = vars(parser.parse_args())
    given["users"] = given["users"] or max(1, given["ratings"] // 200)
    start = time.perf_counter()
    paths = write_ratings(**given)
    seconds, size = time.perf_counter() - start, sum(path.stat().st_size for path in paths)
    millions = given["ratings"] / 1e6
    print(
        f"{len(paths)} parts, {size / 1e6:,.0f} MB ({size / given['ratings']:.2f} bytes a rating), "
        f"{seconds / millions:.3f} s a million"
    )


if __name__ == "__main__":
    main()

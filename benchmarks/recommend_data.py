"""Data of the recommender benchmarks, split 90/10, and the file that passes it to peers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from common import DATA, Unavailable

from svmp.datasets import netflix_shaped
from svmp.ratings import Ratings, read_ratings
from svmp.recommend import split
from svmp.recommend.split import Split

NAMES = ("goodbooks", "movietweetings", "Netflix-shaped")


@dataclass(frozen=True)
class Settings:
    """What to run."""

    data: Sequence[str] = NAMES
    factors: Sequence[int] = (5, 32)
    seeds: Sequence[int] = (0, 1, 2)
    models: Sequence[str] | None = None
    quick: bool = False

    def each(self) -> Iterator[tuple[str, int, int]]:
        """Yield every data set with every number of factors and every seed; only one if quick."""
        every = [(n, k, s) for n in self.data for k in self.factors for s in self.seeds]
        yield from every[:1] if self.quick else every

    def chosen(self, models: Sequence[str]) -> list[str]:
        """Return the models that were chosen."""
        return [m for m in models if self.models is None or m in self.models]


def table(name: str, share: float = 1.0) -> Ratings:
    """Return ratings by name, or by the path of a file; `share` keeps a part of them."""
    if name == "Netflix-shaped":
        return netflix_shaped(share)
    path = DATA / name / "ratings.npz" if name in NAMES else Path(name)
    if not path.exists():
        raise Unavailable(f"there is no {path.name} of {name} here")
    ratings = read_ratings(path, duplicates="last")
    return (
        ratings if share == 1 else compact(ratings, np.arange(len(ratings)) % round(1 / share) == 0)
    )


def compact(ratings: Ratings, keep: Any) -> Ratings:
    """Return some rows, with only the users and items that occur in them."""
    (users, user), (items, item) = (
        np.unique(keys[keep], return_inverse=True) for keys in (ratings.user, ratings.item)
    )
    return Ratings(
        user, item, ratings.rating[keep], ratings.user_ids[users], ratings.item_ids[items]
    )


def parts(ratings: Ratings, seed: int) -> Split:
    """Hold out every tenth rating at random."""
    return split.random(ratings, 0.1, seed)


@contextmanager
def as_file(data: Split, **more: Any) -> Iterator[dict[str, Any]]:
    """Write a split, by keys, to a temporary file; yield the request that names it."""
    train, test = data
    columns = {
        f"{part}_{x}": column
        for part, rows in (("train", train), ("held", test))
        for x, column in zip("uir", (rows.user, rows.item, rows.rating), strict=True)
    }
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.npz"
        np.savez(path, **columns, **more)
        yield {"data": str(path), "sizes": (train.users, train.items)}

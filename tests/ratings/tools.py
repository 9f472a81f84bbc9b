"""One table, written in every format."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

from svmp.ratings import Ratings

DAY = 86400


@dataclass(frozen=True)
class Plain:
    """A table as lists; times are whole days, since the Netflix files have dates."""

    user: list[Any]
    item: list[Any]
    rating: list[float]
    time: list[int]

    def lines(self, separator: str) -> str:
        rows = zip(self.user, self.item, self.rating, self.time, strict=True)
        return "".join(separator.join(map(str, row)) + "\n" for row in rows)

    def csv(self, separator: str = ",", header: str = "userId,movieId,rating,timestamp") -> str:
        head = header.replace(",", separator) + "\n" if header else ""
        return head + self.lines(separator)

    def frame(self) -> pl.DataFrame:
        return pl.DataFrame(
            {"user_id": self.user, "book_id": self.item, "rating": self.rating, "date": self.time}
        )


def text(name: str, make: Callable[[Plain], str]) -> Callable[[Plain, Path], Any]:
    def write(table: Plain, folder: Path) -> Path:
        path = folder / name
        path.write_text(make(table))
        return path

    return write


def gzipped(table: Plain, folder: Path) -> Path:
    path = folder / "ratings.csv.gz"
    path.write_bytes(gzip.compress(table.csv().encode()))
    return path


def parquet(table: Plain, folder: Path) -> Path:
    path = folder / "ratings.parquet"
    table.frame().write_parquet(path)
    return path


def npz(table: Plain, folder: Path) -> Path:
    path = folder / "ratings.npz"
    user_ids, user = np.unique(table.user, return_inverse=True)
    item_ids, item = np.unique(table.item, return_inverse=True)
    arrays = {"user": user, "item": item, "user_ids": user_ids, "item_ids": item_ids}
    np.savez(path, **arrays, rating=np.float32(table.rating), time=table.time)
    return path


def npz_of_ids(table: Plain, folder: Path) -> Path:
    path = folder / "plain.npz"
    np.savez(path, user=table.user, item=table.item, rating=table.rating, time=table.time)
    return path


FORMS: dict[str, Callable[[Plain, Path], Any]] = {
    "csv": text("ratings.csv", Plain.csv),
    "csv without header": text("ratings.csv", lambda t: t.csv(header="")),
    "tsv": text("u.data", lambda t: t.csv("\t", header="")),
    "semicolons": text("ratings.csv", lambda t: t.csv(";", "User-ID,ISBN,Book-Rating,Date")),
    "movielens": text("ratings.dat", lambda t: t.csv("::", header="")),
    "bars": text("ratings.txt", lambda t: t.csv("|")),
    "blanks": text("ratings.txt", lambda t: t.csv(" ", header="")),
    "with spaces and blank lines": text(
        "ratings.csv", lambda t: "\n" + t.csv().replace(",", " , ").replace("\n", "\r\n\n")
    ),
    "quoted": text(
        "r.csv", lambda t: '"' + t.csv(",")[:-1].replace(",", '","').replace("\n", '"\n"') + '"\n'
    ),
    "gzipped": gzipped,
    "parquet": parquet,
    "npz": npz,
    "npz of ids": npz_of_ids,
    "polars": lambda t, _: t.frame(),
    "lazy": lambda t, _: t.frame().lazy(),
    "pandas": lambda t, _: pd.DataFrame(t.frame().to_dict(as_series=False)),
    "pyarrow": lambda t, _: pa.table(t.frame().to_dict(as_series=False)),
    "dict": lambda t, _: t.frame().to_dict(as_series=False),
    "arrays": lambda t, _: tuple(map(np.array, (t.user, t.item, t.rating, t.time))),
    "lists": lambda t, _: [t.user, t.item, t.rating, t.time],
}


def dates(time: list[int]) -> list[str]:
    return [datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d") for t in time]


def netflix(table: Plain, items: list[Any]) -> str:
    """The rows of some items, in the format of the Netflix Prize."""
    rows = list(zip(table.user, table.item, table.rating, dates(table.time), strict=True))
    parts = []
    for movie in items:
        parts += [f"{movie}:"] + [f"{u},{r:g},{d}" for u, i, r, d in rows if i == movie]
    return "\n".join(parts) + "\n"


def expected(table: Plain) -> dict[tuple[Any, Any], tuple[float, float]]:
    rows = zip(table.user, table.item, table.rating, table.time, strict=True)
    return {(u, i): (float(np.float32(r)), float(t)) for u, i, r, t in rows}


def contents(ratings: Ratings) -> dict[tuple[Any, Any], tuple[float, float]]:
    """Return rating and time by pair of ids."""
    time = np.zeros(len(ratings)) if ratings.time is None else ratings.time
    users, items = ratings.user_ids[ratings.user], ratings.item_ids[ratings.item]
    rows = zip(users.tolist(), items.tolist(), ratings.rating.tolist(), time.tolist(), strict=True)
    return {(u, i): (r, t) for u, i, r, t in rows}


def random_table(seed: int, words: bool = False, count: int = 200) -> Plain:
    rng = np.random.default_rng(seed)
    pairs = rng.choice(40 * 30, count, replace=False)
    user, item = (pairs // 30).tolist(), (1000 * (pairs % 30) + 7).tolist()
    if words:
        user, item = [f"user {u:03}" for u in user], [f"é{i}" for i in item]
    rating = (rng.integers(1, 11, count) / 2).tolist()
    return Plain(user, item, rating, (DAY * rng.integers(10_000, 20_000, count)).tolist())


def matrix(table: Plain) -> sparse.csr_array:
    return sparse.csr_array((table.rating, (table.user, table.item)), shape=(50, 40_000))

"""The ratings that a study is about."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from svmp.datasets.netflix import RATINGS, USERS, netflix_shaped
from svmp.errors import RatingsError, StudyError
from svmp.ratings import Ratings, read_ratings
from svmp.study.settings import NETFLIX_SHAPED, Settings

COLUMNS = ("user", "item", "rating")


@dataclass(frozen=True)
class Data:
    """Ratings with their name and a digest that identifies them."""

    name: str
    ratings: Ratings
    digest: str

    @property
    def count(self) -> int:
        """Number of ratings."""
        return len(self.ratings)

    def sweep(self, factors: int) -> int:
        """Return the number of accesses of a sweep of full VB, 2 K |R|."""
        return 2 * factors * self.count

    def describe(self) -> str:
        """Return the numbers of ratings, items and users in words."""
        return (
            f"{self.count:,} ratings of {self.ratings.items:,} items "
            f"by {self.ratings.users:,} user{'s' * (self.ratings.users != 1)}"
        )

    def size_warning(self) -> str:
        """Return a warning if there are far more ratings than in the paper's sample, else ""."""
        times = self.count / RATINGS
        if times < 3:
            return ""
        return (
            f"That is {times:.0f} times the paper's million, and runs take {times:.0f} times as "
            f"long. --users {USERS} draws as many users as the paper's sample has, with all their "
            "ratings; --max-accesses makes every run shorter."
        )

    def save(self, folder: Path) -> None:
        """Write the arrays to a folder, for the workers."""
        try:
            for column in COLUMNS:
                np.save(folder / f"{column}.npy", getattr(self.ratings, column))
            np.save(folder / "sizes.npy", [self.ratings.users, self.ratings.items])
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else error
            raise StudyError(
                f"{folder.parent}: no space for a copy of the ratings ({reason}); TMPDIR can name "
                "another folder"
            ) from None


def load_arrays(folder: Path) -> Ratings:
    """Read what `Data.save` wrote."""
    user, item, rating = (np.load(folder / f"{column}.npy") for column in COLUMNS)
    users, items = np.load(folder / "sizes.npy").tolist()
    return Ratings.of_keys(user, item, rating, users, items)


def load(settings: Settings) -> Data:
    """Generate or read the ratings that the settings name."""
    source, name = settings.source, settings.source.data
    kind, colon, scale = name.partition(":")
    if kind == NETFLIX_SHAPED:
        ratings = netflix_shaped(_scale(name, scale) if colon else 1.0, settings.seed)
    else:
        try:
            ratings = read_ratings(
                Path(name),
                columns=_columns(source.columns),
                duplicates=source.duplicates,
                encoding=source.encoding,
                max_unpacked=source.max_unpacked,
            )
        except RatingsError as error:
            raise StudyError(str(error)) from None
    if source.users is not None:
        ratings = some_users(ratings, source.users, settings.seed)
    return Data(name, ratings, digest(ratings))


def some_users(ratings: Ratings, count: int, seed: int) -> Ratings:
    """Draw users with all their ratings, as in the paper's sample; drop items without a rating.

    >>> some_users(Ratings.of_keys([0, 0, 1, 2], [0, 1, 1, 2], [5, 4, 3, 2], 3, 3), 2, seed=3)
    <Ratings: 3 of 2 items by 2 users>
    """
    if count >= ratings.users:
        return ratings
    drawn = np.random.default_rng([seed, 2014]).choice(ratings.users, count, replace=False)
    among = np.zeros(ratings.users, bool)
    among[drawn] = True
    some = ratings.take(among[ratings.user])
    users, user = np.unique(some.user, return_inverse=True)
    items, item = np.unique(some.item, return_inverse=True)
    return Ratings.of_keys(user, item, some.rating, len(users), len(items))


def _columns(names: tuple[str, ...]) -> list[int | str] | None:
    """Return columns, with whole numbers as positions."""
    return [int(n) if n.isdecimal() else n for n in names] or None


def _scale(name: str, text: str) -> float:
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not 0.0005 <= scale <= 1:
        raise StudyError(f"--data {name:.60}: the scale must be a number from 0.0005 to 1")
    return scale


def digest(ratings: Ratings) -> str:
    """Return a hash of the ratings, of 16 digits."""
    found = hashlib.sha256()
    for column in COLUMNS:
        found.update(np.ascontiguousarray(getattr(ratings, column)).data)
    return found.hexdigest()[:16]

"""The ratings that a study is about, by name."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from svmp.errors import StudyError
from svmp.ratings import Ratings, read_ratings
from svmp.study.netflix import netflix_shaped
from svmp.study.settings import NETFLIX_SHAPED, Settings

COLUMNS = ("user", "item", "rating")


@dataclass(frozen=True)
class Data:
    """Ratings, what they are called, and a digest that tells them from all others."""

    name: str
    ratings: Ratings
    digest: str

    @property
    def count(self) -> int:
        """How many ratings there are."""
        return len(self.ratings)

    def sweep(self, factors: int) -> int:
        """Return the accesses of a sweep of full VB, 2 K |R|."""
        return 2 * factors * self.count

    def describe(self) -> str:
        """Say how much there is of it."""
        return (
            f"{self.count:,} ratings of {self.ratings.items:,} items "
            f"by {self.ratings.users:,} users"
        )

    def save(self, folder: Path) -> None:
        """Write the arrays for workers to read."""
        try:
            for column in COLUMNS:
                np.save(folder / f"{column}.npy", getattr(self.ratings, column))
            np.save(folder / "sizes.npy", [self.ratings.users, self.ratings.items])
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else error
            raise StudyError(
                f"{folder.parent}: no place for a copy of the ratings ({reason}); TMPDIR can name "
                "another folder"
            ) from None


def load_arrays(folder: Path) -> Ratings:
    """Read what `Data.save` wrote."""
    user, item, rating = (np.load(folder / f"{column}.npy") for column in COLUMNS)
    users, items = np.load(folder / "sizes.npy").tolist()
    return Ratings.of_keys(user, item, rating, users, items)


def load(settings: Settings) -> Data:
    """Draw or read the ratings that the settings name."""
    name = settings.data
    kind, colon, scale = name.partition(":")
    if kind == NETFLIX_SHAPED:
        ratings = netflix_shaped(_scale(name, scale) if colon else 1.0, settings.seed)
    else:
        ratings = read_ratings(
            Path(name), columns=_columns(settings.columns), duplicates=settings.duplicates
        )
    return Data(name, ratings, digest(ratings))


def _columns(names: tuple[str, ...]) -> list[int | str] | None:
    """Take names that are numbers as positions."""
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
    """Return 16 digits that the ratings determine."""
    found = hashlib.sha256()
    for column in COLUMNS:
        found.update(np.ascontiguousarray(getattr(ratings, column)).data)
    return found.hexdigest()[:16]

"""The ratings that a run can be about: where they come from, and how many they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from typing import Any, Protocol

from svmp.datasets.netflix import ITEMS, RATINGS, USERS, netflix_shaped
from svmp.ratings import Ratings, read_ratings


class Source(Protocol):
    """Where ratings come from.

    Attributes
    ----------
    title
        What the page calls it.
    fields
        The settings that it has; methods are given their values.
    """

    title: str
    fields: tuple[str, ...]

    def describe(self, values: Mapping[str, Any]) -> str:
        """Say in a few words which ratings these are."""
        ...

    def size(self, values: Mapping[str, Any]) -> tuple[int, int]:
        """Return about how many users and items together there are, and how many ratings."""
        ...

    def load(self, values: Mapping[str, Any]) -> Ratings:
        """Return the ratings."""
        ...

    def code(self, values: Mapping[str, Any]) -> tuple[list[str], str]:
        """Return Python: lines that import what it takes, and a call that returns the ratings."""
        ...


@dataclass(frozen=True)
class NetflixShaped(Source):
    """Ratings drawn to be shaped like the paper's."""

    title: str = "Netflix-shaped draw"
    fields: tuple[str, ...] = ("scale", "data_seed")

    def describe(self, values: Mapping[str, Any]) -> str:
        return f"{self.size(values)[1]:,} Netflix-shaped ratings (seed {values['data_seed']})"

    def size(self, values: Mapping[str, Any]) -> tuple[int, int]:
        scale = values["scale"]
        return round((USERS + ITEMS) * sqrt(scale)), round(RATINGS * scale)

    def load(self, values: Mapping[str, Any]) -> Ratings:
        return netflix_shaped(values["scale"], values["data_seed"])

    def code(self, values: Mapping[str, Any]) -> tuple[list[str], str]:
        call = f"netflix_shaped(scale={values['scale']!r}, seed={values['data_seed']})"
        return ["from svmp.datasets import netflix_shaped"], call


@dataclass(frozen=True)
class RatingsFile(Source):
    """Ratings of the user's own, named on the command line."""

    path: str
    title: str
    users: int
    items: int
    count: int
    fields: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    """How `read_ratings` is to read it, where that is not the default."""

    @classmethod
    def of(cls, path: Path, **options: Any) -> RatingsFile:
        """Read a file once, which says what is wrong with it before there is a page."""
        ratings = read_ratings(path, **options)
        sizes = ratings.users, ratings.items, len(ratings)
        return cls(str(path.resolve()), path.name, *sizes, options=options)

    def describe(self, values: Mapping[str, Any]) -> str:
        return f"{self.count:,} ratings of {self.title}"

    def size(self, values: Mapping[str, Any]) -> tuple[int, int]:
        return self.users + self.items, self.count

    def load(self, values: Mapping[str, Any]) -> Ratings:
        return read_ratings(self.path, **self.options)

    def code(self, values: Mapping[str, Any]) -> tuple[list[str], str]:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return ["from svmp.ratings import read_ratings"], f"read_ratings({self.path!r}{options})"


def find_sources(file: RatingsFile | None = None) -> dict[str, Source]:
    """Return the data that a run can choose from, by the names that the page sends."""
    drawn: dict[str, Source] = {"netflix-shaped": NetflixShaped()}
    return drawn if file is None else {"file": file, **drawn}

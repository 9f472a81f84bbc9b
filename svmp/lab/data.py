"""Sources of the ratings that a run can use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from typing import Any, Protocol

from svmp.datasets.netflix import ITEMS, RATINGS, USERS, netflix_shaped
from svmp.ratings import Ratings, read_ratings


class Source(Protocol):
    """A source of ratings.

    Attributes
    ----------
    title
        Name on the page.
    fields
        Names of its fields; the methods take their values.
    """

    title: str
    fields: tuple[str, ...]

    def describe(self, values: Mapping[str, Any]) -> str:
        """Describe the ratings in a few words."""
        ...

    def size(self, values: Mapping[str, Any]) -> tuple[int, int]:
        """Return the number of users and items together, and the number of ratings, roughly."""
        ...

    def load(self, values: Mapping[str, Any]) -> Ratings:
        """Return the ratings."""
        ...

    def code(self, values: Mapping[str, Any]) -> tuple[list[str], str]:
        """Return Python source: import lines, and an expression that returns the ratings."""
        ...


@dataclass(frozen=True)
class NetflixShaped(Source):
    """Generated ratings of the shape of the paper's sample."""

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
    """A file of ratings that the command line names."""

    path: str
    title: str
    users: int
    items: int
    count: int
    fields: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    """Arguments of `read_ratings` that are not its defaults."""

    @classmethod
    def of(cls, path: Path, **options: Any) -> RatingsFile:
        """Read a file once, so that errors in it are reported before the page opens."""
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
    """Return the sources by the names that the page sends."""
    drawn: dict[str, Source] = {"netflix-shaped": NetflixShaped()}
    return drawn if file is None else {"file": file, **drawn}

"""Settings of a study: its data, sizes and budgets. The same settings give the same numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from svmp.errors import StudyError
from svmp.ratings.lines import MOST
from svmp.ratings.table import Duplicates

CHILDREN = tuple(range(1, 21))
BATCHES = tuple(range(100, 1001, 100))
NETFLIX_SHAPED = "netflix-shaped"
HOW_TO_READ = ("encoding", "max_unpacked")
"""Settings that two studies of the same numbers may differ in: the ratings have a digest."""


@dataclass(frozen=True)
class DataSettings:
    """Which ratings a study is about, and how a file of them is read.

    Attributes
    ----------
    data
        `netflix-shaped`, `netflix-shaped:0.1`, or the path of a file of ratings.
    columns, duplicates
        User, item and rating columns of the file, if its header does not name them; and what
        happens to a second rating of the same item by the same user.
    encoding, max_unpacked
        Encoding of a text file; largest number of bytes that a packed file may unpack to.
    users
        Number of users to draw, with all their ratings; None for all users.
    """

    data: str = NETFLIX_SHAPED
    columns: tuple[str, ...] = ()
    duplicates: Duplicates = "error"
    encoding: str = "utf-8"
    max_unpacked: int = MOST
    users: int | None = None

    def __post_init__(self) -> None:
        if self.users is not None and self.users < 1:
            raise StudyError(f"--users must be at least 1, not {self.users}")


@dataclass(frozen=True)
class Settings:
    """Everything that the numbers of a study depend on, except the versions of the software.

    Attributes
    ----------
    source
        The ratings.
    seed
        Seed of the generated ratings, of the users drawn, of the start, and of the rows read.
    factors, kappa
        K of the matrix factorization; the forgetting rate of the paper's schedule.
    children, batches
        C of Algorithm 1 and C_global of Algorithm 2, for the figures.
    thresholds
        Those of them whose largest first step is searched for.
    sweeps
        Budgets, in accesses of a sweep of full VB: of Algorithm 1, Algorithm 2, the answer, and
        full VB alone.
    max_accesses
        Largest number of accesses of any run.
    """

    source: DataSettings = DataSettings()
    seed: int = 0
    factors: int = 5
    kappa: float = 0.6
    children: tuple[int, ...] = CHILDREN
    batches: tuple[int, ...] = BATCHES
    thresholds: tuple[int, ...] = (1, 2, 3, 5, 10, 20, 100, 500, 1000)
    sweeps: tuple[float, float, float, float] = (6, 4, 25, 100)
    max_accesses: float | None = None

    def __post_init__(self) -> None:
        if not 0.5 < self.kappa <= 1:
            raise StudyError(f"--kappa must be in (1/2, 1], not {self.kappa}")
        if self.factors < 1:
            raise StudyError(f"--factors must be at least 1, not {self.factors}")
        if self.seed < 0:
            raise StudyError(f"--seed must not be negative, not {self.seed}")
        if self.max_accesses is not None and not self.max_accesses > 0:
            raise StudyError(f"--max-accesses must be positive, not {self.max_accesses}")

    def quick(self) -> Settings:
        """Return the settings of a study of the same ratings with fewer and shorter runs.

        >>> Settings().quick().children
        (1, 2, 3, 5, 10, 20)
        """
        few = (1, 2, 3, 5, 10, 20) if self.children == CHILDREN else self.children
        some = (200, 500, 1000) if self.batches == BATCHES else self.batches
        return replace(
            self, children=few, batches=some, thresholds=(1, 1000), sweeps=(4, 2, 12, 30)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON types, in one dictionary."""
        values = {**asdict(self.source), **asdict(self)}
        del values["source"]
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    def differences(self, other: dict[str, Any]) -> list[str]:
        """Describe each setting that differs from settings that were saved."""
        return [
            f"{name} {other.get(name)}, not {value}"
            for name, value in self.to_dict().items()
            if other.get(name) != value and name not in HOW_TO_READ
        ]


def whole_numbers(text: str, what: str) -> tuple[int, ...]:
    """Parse a list of whole numbers and ranges.

    >>> whole_numbers("1-3,10,100-300/100", "--children")
    (1, 2, 3, 10, 100, 200, 300)
    """
    numbers: list[int] = []
    for part in text.split(","):
        span, _, step = part.strip().partition("/")
        first, dash, last = span.partition("-")
        digits = [first, last if dash else first, step or "1"]
        if not all(d.strip().isdecimal() and d.strip().isascii() for d in digits):
            raise StudyError(f"{what} must be numbers as 1,2,5 or 1-20, not '{text:.60}'")
        low, high, by = (int(d) for d in digits)
        if not 1 <= low <= high <= 10**9 or by < 1 or (high - low) // by >= 1000:
            raise StudyError(f"{what} must be rising numbers of at least 1, not '{text:.60}'")
        numbers.extend(range(low, high + 1, by))
    return tuple(sorted(set(numbers)))

"""Ratings in a zip archive or a folder, as distributed by MovieLens and the Netflix Prize."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from svmp.errors import FileError, RatingsError
from svmp.ratings.library_errors import reading
from svmp.ratings.lines import refusing, too_much

PRIZE = ("mv_*.txt", "mv_*.txt.gz", "combined_data_*.txt", "combined_data_*.txt.gz")
"""Names of the files of the Netflix Prize, which are read together."""
MOVIELENS = ("ratings.csv", "ratings.dat", "u.data")
"""Names of the file of ratings in MovieLens."""
KNOWN = "mv_*.txt, combined_data_*.txt, ratings.csv, ratings.dat or u.data"
LOCKED = 1
"""Flag of an encrypted file in an archive."""


def parts(names: Iterable[str]) -> list[str]:
    """Return the names of the files that hold ratings, in order.

    >>> parts(["ml-1m/movies.dat", "ml-1m/ratings.dat", "ml-1m/README"])
    ['ml-1m/ratings.dat']
    """
    known = sorted(names)
    for pattern in (*PRIZE, *MOVIELENS):
        found = [name for name in known if fnmatch(PurePosixPath(name).name, pattern)]
        if len(found) == 1 or (found and pattern in PRIZE):
            return found
    return []


def files_of(folder: Path) -> list[Path]:
    """Return the files of a folder that hold ratings."""
    with refusing(folder):
        found = parts(path.name for path in folder.iterdir())
    if not found:
        raise RatingsError(f"{folder}: a folder without {KNOWN}; name a file in it")
    return [folder / name for name in found]


def is_archive(path: Path) -> bool:
    """Whether a file is a zip archive, but not an `.npz` file."""
    try:
        with refusing(path), zipfile.ZipFile(path) as archive:
            return not all(name.endswith(".npy") for name in archive.namelist())
    except RatingsError:
        return False


def check_members(path: Path, members: list[zipfile.ZipInfo], most: int) -> None:
    """Raise if files of an archive are encrypted, or exceed the limit of the unpacked size.

    zipfile never unpacks more than the size that the archive states.
    """
    if any(member.flag_bits & LOCKED for member in members):
        raise RatingsError(f"{path}: the archive needs a password; unpack it first")
    if sum(member.file_size for member in members) > most:
        raise too_much(path, most)


@contextmanager
def unpacked(path: Path, most: int) -> Iterator[list[Path]]:
    """Unpack the files of an archive that hold ratings, into a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="svmp-ratings-") as place:
        try:
            with reading(), zipfile.ZipFile(path) as archive:
                names = [name for name in archive.namelist() if not name.endswith("/")]
                found = parts(names) or (names if len(names) == 1 else [])
                if not found:
                    raise RatingsError(f"{path}: an archive without {KNOWN}; unpack it first")
                check_members(path, [archive.getinfo(name) for name in found], most)
                files = [Path(archive.extract(name, place)) for name in found]
        except FileError as error:
            raise RatingsError(f"{path}: the archive cannot be read: {error}") from None
        try:
            yield files
        except RatingsError as error:
            raise RatingsError(str(error).replace(place, str(path))) from None

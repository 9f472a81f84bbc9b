"""Titles of items, and search by title."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import FileError
from svmp.recommend.factor_model import FactorModel
from svmp.recommend.side import Keys

Titles = dict[int | str, str]
LONGEST = 300
"""Length limit of a title, in characters."""


class Catalogue:
    """The items of a model, with titles if there are any."""

    def __init__(self, model: FactorModel, titles: Titles | None) -> None:
        self.ids: NDArray[Any] = model.items_.ids
        self.titles = titles
        self.ratings = np.bincount(model.history_.item, minlength=len(self.ids))
        self._order: list[int] = np.argsort(-self.ratings, kind="stable").tolist()
        names = titles or {}
        self._folded = [str(names.get(id, id)).casefold() for id in self.ids.tolist()]

    def __len__(self) -> int:
        return len(self.ids)

    def search(self, text: str, n: int) -> Keys:
        """Return at most n items whose title contains all words, by number of ratings."""
        words = text.casefold().split()
        found: list[int] = []
        for key in self._order:
            name = self._folded[key]
            if all(word in name for word in words):
                found.append(key)
                if len(found) == n:
                    break
        return np.array(found, np.int64)

    def entitled(self, row: dict[str, Any]) -> dict[str, Any]:
        """Add the title of its item to a row."""
        if self.titles is not None and (title := self.titles.get(row["item"])) is not None:
            row["title"] = title
        return row


def read_titles(path: Path, model: FactorModel, encoding: str = "utf-8") -> Titles:
    """Read the titles of the items of a model from a CSV file.

    The first column has the ids; the titles are in the column "title", or else in the second. Ids
    that are not in the model, and the header, are ignored.
    """
    known = set(model.items_.ids.tolist())
    numbers = model.items_.ids.dtype.kind != "U"
    titles: Titles = {}
    try:
        utf8 = encoding.lower() in ("utf-8", "utf8")
        with path.open(encoding="utf-8-sig" if utf8 else encoding, newline="") as file:
            rows = csv.reader(file)
            column = 1
            for row in rows:
                if rows.line_num == 1 and "title" in row[1:]:
                    column = row.index("title")
                if row and len(row) <= column:
                    raise FileError(f"{path}, line {rows.line_num}: there is no title")
                if row and (id := _id(row[0], numbers)) in known:
                    titles[id] = row[column].strip()[:LONGEST]
    except UnicodeError:
        raise FileError(
            f"{path}: the titles cannot be read: this is not {encoding} text; name its "
            "encoding, as --encoding latin-1"
        ) from None
    except LookupError:
        raise FileError(f"{path}: there is no encoding {encoding!r:.60}") from None
    except (OSError, ValueError, csv.Error) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}: the titles cannot be read ({error!s:.100})") from None
    if not titles:
        raise FileError(f"{path}: no id in the first column is that of an item of the model")
    return titles


def _id(text: str, numbers: bool) -> int | str:
    return int(text) if numbers and text.strip().lstrip("-").isdecimal() else text

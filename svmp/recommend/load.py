"""A saved recommender, of whichever kind it is."""

from __future__ import annotations

import os

from svmp.errors import FileError
from svmp.recommend import files
from svmp.recommend.events import EventModel
from svmp.recommend.rating import RatingModel

KINDS = {kind.__name__: kind for kind in (RatingModel, EventModel)}


def load(path: str | os.PathLike[str], *, mapped: bool = True) -> RatingModel | EventModel:
    """Return a model that was saved, of the kind that it is.

    Its arrays are mapped from the folder, and read-only; with `mapped=False` they are read into
    memory, and it does not matter what becomes of the folder.
    """
    kind = files.kind_of(path)
    if kind not in KINDS:
        raise FileError(f"{path}: a {kind!s:.40} is no model that this version of svmp knows")
    return KINDS[kind].load(path, mapped=mapped)

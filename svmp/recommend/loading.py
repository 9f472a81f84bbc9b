"""`svmp.recommend.load`: load a saved recommender of any kind."""

from __future__ import annotations

import os

from svmp.errors import FileError
from svmp.recommend import files
from svmp.recommend.events import EventModel
from svmp.recommend.rating import RatingModel

KINDS = {kind.__name__: kind for kind in (RatingModel, EventModel)}


def load(path: str | os.PathLike[str], *, mapped: bool = True) -> RatingModel | EventModel:
    """Load a saved model of either kind.

    Its arrays are memory-mapped from the folder and read-only; with `mapped=False` they are read
    into memory, so that the folder may change afterwards.
    """
    kind = files.kind_of(path)
    if kind not in KINDS:
        raise FileError(f"{path}: {kind!s:.40} is not a model of this version of svmp")
    return KINDS[kind].load(path, mapped=mapped)

"""What a recommender has learned, as arrays and a description, and back, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from svmp.ratings.table import Ids
from svmp.recommend.files import Arrays, need
from svmp.recommend.history import History
from svmp.recommend.side import Known, Side

FIELDS = ("bias", "bias_var", "mean", "cov")


def of_known(name: str, known: Known) -> Arrays:
    """Return the arrays of users or items."""
    arrays: Arrays = {}
    for part, side in (("side", known.side), ("prior", known.prior)):
        arrays |= {f"{name}/{part}/{f}": a for f, a in zip(FIELDS, side.arrays(), strict=True)}
    return arrays


def to_known(name: str, ids: Ids, arrays: Arrays) -> Known:
    """Return users or items from their arrays."""
    what = name.removesuffix("s")
    need(len(np.unique(ids)) == len(ids), f"damaged: there are two {name} of one id")
    side = _side(f"{name}/side", len(ids), arrays)
    prior = _side(f"{name}/prior", 1, arrays)
    need(side.cov.shape[1:] == prior.cov.shape[1:], f"damaged: {name} are not like their prior")
    return Known(what, ids, side, prior)


def of_history(history: History) -> Arrays:
    """Return the arrays of a history."""
    arrays: Arrays = {
        "history/begin": history.begin,
        "history/item": history.item,
        "history/rating": history.rating,
    }
    return arrays if history.time is None else {**arrays, "history/time": history.time}


def to_history(arrays: Arrays, users: int, items: int) -> History:
    """Return a history from its arrays."""
    begin = array(arrays, "history/begin", np.int64, (users + 1,))
    item = array(arrays, "history/item", np.int32, (None,))
    need(begin[0] == 0 and begin[-1] == len(item) and (np.diff(begin) >= 0).all(), BROKEN)
    need(not len(item) or (item.min() >= 0 and item.max() < items), BROKEN)
    rating = array(arrays, "history/rating", np.float32, item.shape)
    need(np.isfinite(rating).all(), BROKEN)
    time = None
    if "history/time" in arrays:
        time = array(arrays, "history/time", np.float64, item.shape)
    return History(begin, item, rating, time)


BROKEN = "damaged: the history makes no sense"


def array(arrays: Arrays, name: str, kind: Any, shape: tuple[int | None, ...]) -> Any:
    """Return an array if it is there, of the right type and shape."""
    need(name in arrays, f"damaged: there is no array {name!r:.60}")
    found = arrays[name]
    fits = len(shape) == found.ndim and all(
        wanted is None or wanted == size for wanted, size in zip(shape, found.shape, strict=True)
    )
    need(found.dtype == kind and fits, f"damaged: the array {name!r:.60} is of another kind")
    return found


def _side(name: str, size: int, arrays: Arrays) -> Side:
    bias, var = (array(arrays, f"{name}/{f}", np.float32, (size,)) for f in FIELDS[:2])
    mean = array(arrays, f"{name}/mean", np.float32, (size, None))
    factors = mean.shape[1]
    full = f"{name}/cov" in arrays and arrays[f"{name}/cov"].ndim == 3
    shape = (size, factors, factors) if full else (size, factors)
    cov = array(arrays, f"{name}/cov", np.float32, shape)
    variances = np.diagonal(cov, axis1=1, axis2=2) if full else cov
    sound = all(np.isfinite(x).all() for x in (bias, var, mean, cov))
    need(sound and (var >= 0).all() and (variances >= 0).all(), f"damaged: {name} is no q")
    return Side(bias, var, mean, cov)

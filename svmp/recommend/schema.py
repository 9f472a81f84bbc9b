"""Schema of a saved recommender: which arrays there are, and what they may contain.

Data from a folder is checked against this schema, and the `ARRAYS` of each model, before it is
used: names, types, shapes and ranges of values. The ranges are wide, and such that no score of a
valid model overflows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from svmp.ratings.table import Ids
from svmp.recommend.files import Arrays, need
from svmp.recommend.history import History
from svmp.recommend.network import BIAS_AND_SLOPE
from svmp.recommend.side import EntityTable, Side

FIELDS = ("bias", "bias_var", "mean", "cov")
LARGE = 1e15
"""Largest mean of a rating; factors scale like square roots of ratings."""
SMALL = 1e-37
"""Smallest variance: its inverse is finite in single precision."""
UNEVEN = 1e-3
"""Allowed asymmetry of a covariance matrix by rounding, relative to the largest variance."""


class ArraySpec(NamedTuple):
    """Type, shape and range of an array.

    Attributes
    ----------
    dtype
        Its data type.
    shape
        Length of each axis, as a number or as the name of a size.
    least, most
        Bounds of its values.
    """

    dtype: type[np.generic]
    shape: tuple[str | int, ...]
    least: float = -LARGE
    most: float = LARGE


def _sides(name: str, cov: tuple[str, ...]) -> dict[str, ArraySpec]:
    """Declare the arrays of users or items, and of their prior."""
    found = {}
    for part, size in (("side", name), ("prior", 1)):
        found[f"{name}/{part}/bias"] = ArraySpec(np.float32, (size,))
        found[f"{name}/{part}/bias_var"] = ArraySpec(np.float32, (size,), 0, LARGE**2)
        found[f"{name}/{part}/mean"] = ArraySpec(
            np.float32, (size, "factors"), -(LARGE**0.5), LARGE**0.5
        )
        least = SMALL if len(cov) == 1 else -LARGE
        found[f"{name}/{part}/cov"] = ArraySpec(np.float32, (size, *cov), least, LARGE)
    return found


def declared(full: bool) -> dict[str, ArraySpec]:
    """Return the arrays of every model, by name."""
    cov = ("factors", "factors") if full else ("factors",)
    return {
        **_sides("users", cov),
        **_sides("items", cov),
        "history/begin": ArraySpec(np.int64, ("users + 1",), 0, np.inf),
        "history/item": ArraySpec(np.int32, ("rows",), 0, np.inf),
        "history/rating": ArraySpec(np.float32, ("rows",), -np.inf, np.inf),
        "history/time": ArraySpec(np.float64, ("rows",), -np.inf, np.inf),
    }


OPTIONAL = ("history/time", "learned")


def check(arrays: Arrays, ids: dict[str, Ids], own: Mapping[str, ArraySpec]) -> None:
    """Raise unless the arrays match the schema and those that the model itself declares."""
    for name, known in ids.items():
        need(len(known), f"damaged: there are no {name}")
        need(len(np.unique(known)) == len(known), f"damaged: the ids of {name} are not unique")
    mean, cov = arrays.get("users/side/mean"), arrays.get("users/side/cov")
    need(mean is not None and mean.ndim == 2, "damaged: there are no factors of users")
    need(cov is not None, "damaged: there are no variances of users")
    assert mean is not None
    assert cov is not None
    rows = arrays.get("history/item", np.zeros(0)).size
    users, items = len(ids["users"]), len(ids["items"])
    sizes = {"users": users, "users + 1": users + 1, "items": items}
    sizes |= {"factors": mean.shape[1], "rows": rows}
    for name, kind in {**declared(cov.ndim == 3), **own}.items():
        if name in arrays or name not in OPTIONAL:
            _check_array(arrays, name, kind, sizes)
    sides = ("users/side", "users/prior", "items/side", "items/prior")
    for name in sides:
        if cov.ndim == 3:
            _check_covariances(arrays[f"{name}/cov"], name)
    _check_biases([(arrays[f"{x}/bias"], arrays[f"{x}/bias_var"]) for x in sides], mean)
    begin, item = arrays["history/begin"], arrays["history/item"]
    sound = begin[0] == 0 and begin[-1] == len(item) and (np.diff(begin) >= 0).all()
    need(sound and item.max(initial=0) < items, "damaged: the history is invalid")


def _check_array(arrays: Arrays, name: str, kind: ArraySpec, sizes: dict[str, int]) -> None:
    need(name in arrays, f"damaged: there is no array {name!r:.60}")
    found = arrays[name]
    shape = tuple(size if isinstance(size, int) else sizes[size] for size in kind.shape)
    fits = found.dtype == kind.dtype and found.shape == shape
    need(fits, f"damaged: the array {name!r:.60} has another type or shape")
    what = (
        f"damaged: {name} is not a valid distribution"
        if "/side/" in name or "/prior/" in name
        else ""
    )
    what = what or f"damaged: {name} has invalid values"
    if found.size:
        low, high = found.min(), found.max()  # NaN if any value is NaN
        need(np.isfinite(low) and np.isfinite(high), what)
        need(kind.least <= low and high <= kind.most, what)


def _check_covariances(cov: Any, name: str) -> None:
    """Raise unless all matrices are symmetric and positive definite."""
    variances = np.diagonal(cov, axis1=1, axis2=2)
    uneven = np.abs(cov - np.swapaxes(cov, 1, 2)).max(axis=(1, 2), initial=0)
    sound = (uneven <= UNEVEN * variances.max(axis=1, initial=0)).all()
    need(sound and (variances >= SMALL).all(), f"damaged: {name} is not a valid distribution")
    try:
        np.linalg.cholesky(cov)
    except np.linalg.LinAlgError:
        need(False, f"damaged: {name} is not a valid distribution")


def _check_biases(found: list[tuple[Any, Any]], mean: Any) -> None:
    """Raise unless all biases have a variance, or none has and they are among the factors."""
    if all((var >= SMALL).all() for _, var in found):
        return
    joined = not any(bias.any() or var.any() for bias, var in found)
    sound = joined and mean.shape[1] > BIAS_AND_SLOPE
    need(sound, "damaged: the variances of biases are not those of a valid distribution")


def number(about: Mapping[str, Any], name: str, least: float, most: float) -> float:
    """Return a number of model.json, if it is one and within bounds."""
    value: Any = about.get(name)
    real = isinstance(value, int | float) and not isinstance(value, bool)
    need(real and least <= value <= most, f"damaged: model.json is invalid (its {name})")
    return float(value)


def of_known(name: str, known: EntityTable) -> Arrays:
    """Return the arrays of users or items."""
    arrays: Arrays = {}
    for part, side in (("side", known.side), ("prior", known.prior)):
        arrays |= {f"{name}/{part}/{f}": a for f, a in zip(FIELDS, side.arrays(), strict=True)}
    return arrays


def to_known(name: str, ids: Ids, arrays: Arrays) -> EntityTable:
    """Return users or items from their checked arrays."""
    side, prior = (
        Side(*(arrays[f"{name}/{part}/{field}"] for field in FIELDS)) for part in ("side", "prior")
    )
    return EntityTable(name.removesuffix("s"), ids, side, prior)


def of_history(history: History) -> Arrays:
    """Return the arrays of a history."""
    arrays: Arrays = {
        "history/begin": history.begin,
        "history/item": history.item,
        "history/rating": history.rating,
    }
    return arrays if history.time is None else {**arrays, "history/time": history.time}


def to_history(arrays: Arrays) -> History:
    """Return a history from its checked arrays."""
    names = ("begin", "item", "rating", "time")
    begin, item, rating, time = (arrays.get(f"history/{name}") for name in names)
    assert begin is not None
    assert item is not None
    assert rating is not None
    return History(begin, item, rating, time)

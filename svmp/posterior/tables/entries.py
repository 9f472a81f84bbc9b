"""The numbers of one posterior, entry by entry, with the dims and labels of each.

    dims of a mean     the dims of the variable; a Categorical has its categories as one dim more
    dims of a draw     the dims of the variable

A matrix has the same dim twice; the second is called `dim_2`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.families import Categorical
from svmp.families.family import Array
from svmp.network.dims.labels import LabelIndex, object_array
from svmp.network.partly_known import base_of
from svmp.network.validation import shown
from svmp.posterior.marginals.posterior import Posterior
from svmp.posterior.marginals.rows import ENTRIES
from svmp.posterior.record.run_record import RunRecord


@dataclass(frozen=True)
class Dim:
    """One axis of an array: its name, its size, and its labels or None."""

    name: str
    size: int
    labels: list[Any] | None

    @property
    def values(self) -> NDArray[Any]:
        """The labels as an array, or the places where there are none."""
        return np.arange(self.size) if self.labels is None else label_array(self.labels)

    def text(self, place: int) -> str:
        """Return one label, or place, as it is printed."""
        return str(place if self.labels is None else self.labels[place])


def label_array(labels: list[Any]) -> NDArray[Any]:
    """Return labels as numbers, times or objects."""
    index = LabelIndex(labels)
    types = set(map(type, labels))
    if types and types <= {int, float, bool} and (bool not in types or len(types) == 1):
        return np.array(labels)
    zoned = any(getattr(label, "tzinfo", None) is not None for label in labels)
    return (
        np.array(labels, dtype="datetime64[us]")
        if index.times and not zoned
        else object_array(labels)
    )


def checked_names(fit: RunRecord, names: str | Collection[str] | None) -> list[str]:
    """Return the hidden variables that are asked for, by default all."""
    if names is None:
        return list(fit.posteriors)
    if not isinstance(names, Collection):
        raise ModelError(f"names must be hidden variables, one or several, not {shown(names)}")
    given: list[Any] = [names] if isinstance(names, str) else list(names)
    known = LabelIndex(list(fit.posteriors))
    for name in given:
        if isinstance(name, str) and name in fit.bound_terms.keys() - fit.posteriors.keys():
            raise ModelError(
                f"'{name}' is observed, so that the fit has no q of it; its rows are predicted by "
                f"fit.predict(model, '{name}')"
            )
        if not isinstance(name, str) or name not in fit.posteriors:
            raise ModelError(
                f"the fit has no hidden variable {shown(name)}; there are {known.sample}"
                f"{known.near(name)}"
            )
    return given


def dims_of(fit: RunRecord, q: Posterior) -> list[Dim]:
    """Return the dims of the mean of a posterior."""
    shape = np.shape(q.mean)
    names = list(q.dims)
    if is_categorical(q):
        names.append(_category_dim(fit, q, shape[-1]))
    found: list[Dim] = []
    for name, size in zip(names, shape, strict=True):
        extent = fit.coords.get(name, size)
        labels = None if isinstance(extent, int) or len(extent) != size else list(extent)
        taken = {dim.name for dim in found}
        found.append(Dim(f"{name}_2" if name in taken else name, size, labels))
    return found


def labelled(fit: RunRecord, q: Posterior, entries: int = ENTRIES) -> Posterior:
    """Return a posterior with the labels of its entries, if there are few."""
    if not q.is_small(entries):
        return q
    labels = [tuple(map(dim.text, range(dim.size))) for dim in dims_of(fit, q)]
    return replace(q, labels=tuple(labels))


def _category_dim(fit: RunRecord, q: Posterior, size: int) -> str:
    """Return the dim of the Dirichlet that a Categorical depends on, or a name of its own."""
    for parent in fit.parents.get(q.name, []):
        above = fit.posteriors.get(parent)
        if above is None or not above.family.simplex or above.dims[-1] in q.dims:
            continue
        if above.mean.shape[-1] == size:
            return above.dims[-1]
    return f"{q.name}_category"


def statistics(q: Posterior, prob: float) -> dict[str, Array]:
    """Return mean, sd and the ends of the central interval, which a Categorical does not have."""
    found = {"mean": q.mean, "sd": q.std}
    interval = interval_of(q, prob)
    if interval is not None:
        found["lower"], found["upper"] = interval
    return found


def interval_of(q: Posterior, prob: float) -> Array | None:
    """Return the ends of the central interval of each entry, None if its values have no order."""
    return None if is_categorical(q) else q.interval(prob)


def is_categorical(q: Posterior) -> bool:
    """Return whether the mean of a posterior has probabilities of categories."""
    return isinstance(base_of(q.family), Categorical)

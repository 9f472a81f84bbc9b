"""The dims of a model: their sizes and labels, and the keys that variables are indexed by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.network.validation import dim_name, shown


class Coords:
    """The named dimensions of one model.

    Attributes
    ----------
    sizes
        Size of each dimension.
    labels
        Labels along each dimension that has them.
    """

    def __init__(self, coords: Mapping[str, int | Sequence[Any]] | None) -> None:
        self.sizes: dict[str, int] = {}
        self.labels: dict[str, Sequence[Any]] = {}
        self._keys: list[NDArray[Any]] = []
        if not isinstance(coords, Mapping | None):
            raise ModelError(
                f"coords must map each dimension to its size or labels, not be {shown(coords)}"
            )
        for dim, extent in (coords or {}).items():
            self._add(dim_name(dim), extent)

    def _add(self, dim: str, extent: Any) -> None:
        """Add a dimension by its size or its labels."""
        if isinstance(extent, int | np.integer) and not isinstance(extent, bool):
            if not 0 <= extent < 2**63:
                what = "a negative" if extent < 0 else "too large a"
                raise ModelError(f"dimension '{dim}' has {what} size, {shown(extent)}")
            self.sizes[dim] = int(extent)
            return
        try:
            if isinstance(extent, bool | str | bytes | Mapping):
                raise TypeError
            labels = list(extent)
        except Exception:  # an iterator of the user's may raise anything
            raise ModelError(
                f"dimension '{dim}' needs a size or a list of labels, not {shown(extent)}"
            ) from None
        places: dict[Any, int] = {}
        for place, label in enumerate(labels):
            try:
                first = places.setdefault(label, place)
            except TypeError:  # not hashable
                first = places.setdefault(repr(label), place)
            if first != place:
                raise ModelError(
                    f"dimension '{dim}' has the label {shown(label)} at {first} and at "
                    f"{place}; give each place another label, or the size {len(labels)} alone"
                )
        self.labels[dim], self.sizes[dim] = labels, len(labels)

    def kept(self, key: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of an index array; equal arrays share one copy."""
        for known in self._keys:
            if known.dtype == key.dtype and np.array_equal(known, key):
                return known
        self._keys.append(key.copy())
        return self._keys[-1]

    def shape(
        self, name: str, dims: tuple[str, ...], observed: tuple[int, ...] | None
    ) -> tuple[int, ...]:
        """Look up the sizes of a variable's dims; an observed array gives those not yet known."""
        if observed is not None and len(observed) != len(dims):
            raise ModelError(
                f"'{name}' has dims {dims} but its observed values have shape {observed}"
            )
        sizes = []
        for axis, dim in enumerate(dims):
            if dim not in self.sizes and observed is None:
                raise ModelError(
                    f"dimension '{dim}' of '{name}' has no size; add it to the model's coords"
                )
            size = self.sizes[dim] if observed is None else self.sizes.get(dim, observed[axis])
            if observed is not None and observed[axis] != size:
                raise ModelError(
                    f"the observed values of '{name}' have length {observed[axis]} along '{dim}', "
                    f"which has size {size}"
                )
            sizes.append(size)
        return tuple(sizes)

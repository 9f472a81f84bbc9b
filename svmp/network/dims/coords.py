"""The dims of a model: their sizes and labels, and the keys that variables are indexed by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.network.dims.data_columns import Columns
from svmp.network.dims.labels import LabelIndex, plain_labels
from svmp.network.validation import dim_name, shown

Extent = int | Sequence[Any]
"""The size of a dim, or its labels."""


class Coords(Mapping[str, Extent]):
    """The named dimensions of one model: `coords["user"]` are its labels, or its size.

    Parameters
    ----------
    coords
        By dim its size, its labels, or the name of a column of the data that has the labels.
    data
        Columns; a dim that is named as one of them has its distinct values as labels.

    Attributes
    ----------
    sizes
        Size of each dimension.
    labels
        Labels along each dimension that has them.
    """

    def __init__(
        self,
        coords: Mapping[str, int | str | Sequence[Any]] | None,
        data: Columns | None = None,
    ) -> None:
        self.sizes: dict[str, int] = {}
        self.labels: dict[str, Sequence[Any]] = {}
        self.data = data
        self._indices: dict[str, LabelIndex] = {}
        self._keys: list[NDArray[Any]] = []
        if not isinstance(coords, Mapping | None):
            frame = "; a data frame is data=" if hasattr(coords, "columns") else ""
            raise ModelError(
                f"coords must map each dimension to its size or labels, not be {shown(coords)}"
                f"{frame}"
            )
        for dim, extent in (coords or {}).items():
            self._add(dim_name(dim), extent)

    def __getitem__(self, dim: str) -> Extent:
        if dim not in self.sizes:
            if self.data is not None and dim in self.data:
                return plain_labels(self.data.labels(dim))  # which no variable has used yet
            raise KeyError(f"no dimension {shown(dim)}; there are {list(self.sizes)}")
        return list(self.labels[dim]) if dim in self.labels else self.sizes[dim]

    def __contains__(self, dim: object) -> bool:
        return dim in self.sizes

    def __iter__(self) -> Iterator[str]:
        return iter(self.sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{dim!r}: {self._shown(dim)}" for dim in self.sizes) + "}"

    def _shown(self, dim: str) -> str:
        index = self.index(dim)
        return f"{self.sizes[dim]:,}" if index is None else f"[{index.sample}]"

    def add(self, dim: str, extent: Any) -> None:
        """Add a dimension by its size or its labels, unless it is known."""
        if dim not in self.sizes:
            self._add(dim, extent)

    def _add(self, dim: str, extent: Any) -> None:
        """Add a dimension by its size, its labels, or the column that has them."""
        if isinstance(extent, int | np.integer) and not isinstance(extent, bool):
            if not 0 <= extent < 2**63:
                what = "a negative" if extent < 0 else "too large a"
                raise ModelError(f"dimension '{dim}' has {what} size, {shown(extent)}")
            self.sizes[dim] = int(extent)
            return
        if isinstance(extent, str) and self.data is not None:
            extent = self.data.labels(extent)
        try:
            if isinstance(extent, bool | str | bytes | Mapping):
                raise TypeError
            if isinstance(extent, set | frozenset):
                raise ModelError(
                    f"dimension '{dim}' has its labels in a set, which has no order; give a list, "
                    "as sorted(labels)"
                )
            labels = plain_labels(extent)
        except ModelError:
            raise
        except Exception:  # an iterator of the user's may raise anything
            raise ModelError(
                f"dimension '{dim}' needs a size or a list of labels, not {shown(extent)}"
            ) from None
        index = LabelIndex(labels)
        unwritable = index.not_unicode()
        if unwritable is not None:
            raise ModelError(
                f"dimension '{dim}' has the label {shown(labels[unwritable])} at {unwritable}, "
                "whose lone surrogate is not a character; decode the text with its own encoding"
            )
        gap = index.missing()
        if gap is not None:
            raise ModelError(
                f"dimension '{dim}' has no label at {gap}, but {shown(labels[gap])}; name it, or "
                "leave out the rows that have none"
            )
        twice = index.repeated()
        if twice is not None:
            raise ModelError(
                f"dimension '{dim}' has the label {shown(labels[twice[1]])} at {twice[0]} and at "
                f"{twice[1]}; give each place another label, or the size {len(labels)} alone"
            )
        self._indices[dim] = index
        self.labels[dim], self.sizes[dim] = labels, len(labels)

    def index(self, dim: str) -> LabelIndex | None:
        """Return the places of the labels along a dim, None if it has none."""
        if dim in self.labels and dim not in self._indices:
            self._indices[dim] = LabelIndex(self.labels[dim])
        return self._indices.get(dim)

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
                f"'{name}' has dims {dims} but its observed values have shape {observed}; "
                "give each axis a dim"
            )
        sizes = []
        for axis, dim in enumerate(dims):
            if dim not in self.sizes and self.data is not None and dim in self.data:
                self._add(dim, dim)
            if dim not in self.sizes and observed is None:
                near = LabelIndex([*self.sizes, *(self.data or ())]).near(dim)
                raise ModelError(
                    f"dimension '{dim}' of '{name}' has no size; add it to the model's coords{near}"
                )
            size = self.sizes[dim] if observed is None else self.sizes.get(dim, observed[axis])
            if observed is not None and observed[axis] != size:
                raise ModelError(
                    f"the observed values of '{name}' have length {observed[axis]} along '{dim}', "
                    f"which has size {size}"
                )
            sizes.append(size)
        return tuple(sizes)

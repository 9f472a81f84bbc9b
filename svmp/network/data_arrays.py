"""Arrays of numbers or labels that are given, with names for their axes: `svmp.data`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from svmp.errors import ModelError
from svmp.network.dims.column_arrays import source_of
from svmp.network.dims.labels import object_array
from svmp.network.expressions import Expression, Sum, Term, constant, sparse_rows
from svmp.network.grid import Labelled
from svmp.network.keywords import known_keywords
from svmp.network.refusals import Symbolic
from svmp.network.validation import array, dim_names, large_integers, numeric, text


@dataclass(frozen=True, eq=False, repr=False)
class LabelArray(Symbolic):
    """Labels with names for their axes, for use as an index: `u[svmp.data(names, dims="row")]`."""

    hint: ClassVar[str] = "; it holds labels, which are keys, as in u[...]"
    values: NDArray[Any]
    axes: tuple[str | None, ...]
    source: str | None = None

    def in_words(self) -> str:
        return "the array of labels of svmp.data"


@known_keywords
def data(
    values: ArrayLike, dims: str | tuple[str, ...] | None = None, *, name: str | None = None
) -> Expression | LabelArray:
    """Name the axes of an array of numbers or labels, for use in an expression or as an index.

    Only needed where the axes should not be aligned with the last axes of the variable, or where
    the values are to be replaced.

    Parameters
    ----------
    values
        Numbers, keys or labels; or a scipy.sparse design, with two dims.
    dims
        Names of the axes. Without them, they are aligned with the last axes of the variable.
    name
        A name by which `model.with_data` replaces the values.

    >>> import svmp
    >>> with svmp.Model(coords={"year": 3, "city": 2}):
    ...     trend = svmp.Normal("trend", mu=0, tau=1, dims="city")
    ...     x = svmp.Normal(
    ...         "x",
    ...         mu=trend * svmp.data([-1, 0, 1], dims="year"),
    ...         tau=1,
    ...         dims=("year", "city"),
    ...         observed=[[-1, -2], [0, 0], [1, 2]],
    ...     )
    >>> x.shape
    (3, 2)
    """
    if name is not None:
        text(name, "the name of data")
    elif dims is None:
        raise ModelError("data needs dims, a name, or both")
    names = None if dims is None else dim_names(dims)
    source = name or source_of(values)
    if sparse.issparse(values):
        if names is None or len(names) != 2:
            raise ModelError("a sparse design needs two dims, as dims=('row', 'feature')")
        return Sum((Term(design=Labelled(sparse_rows(values), names, name)),))
    found = array(values)
    labels = labels_of(values) if found is None else large_integers(values, found)
    keys = found is not None and found.dtype.kind in "iu"
    copy = labels if labels is not None else np.array(found) if keys else numeric(values)
    if names is not None and copy.ndim != len(names):
        raise ModelError(f"data has {copy.ndim} axes but {len(names)} names: {names}")
    if name is not None and copy.ndim == 0:
        raise ModelError(f"data '{name}' is a single number; give an array to replace it later")
    axes = names or (None,) * copy.ndim
    return constant(copy, axes, source) if labels is None else LabelArray(labels, axes, source)


def labels_of(values: Any) -> NDArray[Any] | None:
    """Return a copy of an array or list of labels, which are no numbers; None for anything else."""
    if isinstance(values, list | tuple):
        listed = object_array(values) if values and isinstance(values[0], tuple) else values
        found = np.array(listed, dtype=object)
    elif hasattr(values, "__array__") and not isinstance(values, Symbolic):
        found = np.array(values)
    else:
        return None
    nested = found.dtype.kind == "O" and any(isinstance(x, list | np.ndarray) for x in found.flat)
    return found if found.ndim and found.dtype.kind in "OUM" and not nested else None

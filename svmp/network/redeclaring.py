"""`Model.with_data`: the same network with other data.

A model keeps its parameters as expressions. They are written anew, variable by variable, with the
new variables in place of the old ones and new values in place of the named arrays of `svmp.data`.
Everything is checked as if it were declared for the first time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from svmp.errors import ModelError
from svmp.network.chains.chain_variable import ChainVariable
from svmp.network.data_arrays import labels_of
from svmp.network.declaration import Declaration
from svmp.network.dims.column_arrays import Computed
from svmp.network.dims.coords import Coords
from svmp.network.dims.data_columns import Columns
from svmp.network.expressions import DiagonalMatrix
from svmp.network.grid import Labelled
from svmp.network.partly_known import PartlyKnown
from svmp.network.rewriting import Writer
from svmp.network.validation import PRIME, array, shown
from svmp.network.variable import Variable

Filled = TypeVar("Filled", bound=Declaration)


def redeclare(
    model: Declaration, empty: Filled, values: Mapping[str, Any], coords: Mapping[str, Any] | None
) -> Filled:
    """Declare the network of a model in an empty one, with other values."""
    named: dict[str, list[tuple[Variable, Labelled]]] = {}
    for variable in model.variables.values():
        for found in sources(variable):
            named.setdefault(found.source or "", []).append((variable, found))
    for name in values:
        check_name(model, named, name)
    data = new_data(model, values)
    values = {**values, **computed(model, named, values, data)}
    sizes = new_sizes(model, named, values, coords or {})
    empty.coords = new_coords(model, sizes, coords, data)
    writer = Writer(model, empty, values)
    for variable in model.variables.values():
        try:
            empty.add(writer.variable(variable))
        except ModelError as error:
            raise ModelError(f"with_data: {error}{hint(model, variable, sizes)}") from None
    return empty


def new_data(model: Declaration, values: Mapping[str, Any]) -> Columns | None:
    """Return the columns of the new model: given ones, and the others if they have as many rows."""
    old = model.coords.data
    new = {name: plain_array(values[name]) for name in given_columns(model, values)}
    if old is None or not new:
        return old
    for name, column in new.items():
        if column.ndim != 1:
            raise ModelError(f"with_data: '{name}' has shape {column.shape}; a column has one axis")
    given = Columns(new, "with_data")
    return Columns({**{n: c for n, c in old.items() if len(c) == len(given)}, **new}, old.name)


def given_columns(model: Declaration, values: Mapping[str, Any]) -> list[str]:
    """Return the columns of a model's data that have new values."""
    columns = model.coords.data or ()
    return [name for name in values if name in columns and name not in model.variables]


def computed(
    model: Declaration, named: Mapping[str, Any], values: Mapping[str, Any], data: Columns | None
) -> dict[str, Any]:
    """Return the arrays that were computed from columns that are given, computed anew."""
    found: dict[str, Any] = {}
    given = set(given_columns(model, values))
    for source in named:
        if isinstance(source, Computed) and source.columns & given:
            absent = [column for column in source.columns if column not in (data or ())]
            if absent:
                raise ModelError(
                    f"with_data: {source} needs {', '.join(f'{a}=' for a in sorted(absent))} too"
                )
            assert data is not None
            found[source] = source.compute(dict(data.items()))
    return found


def plain_array(values: Any) -> NDArray[Any]:
    """Return the new values of a column as an array, of objects if they are no numbers."""
    numbers = array(values)
    if numbers is not None:
        return numbers
    names = labels_of(values if hasattr(values, "__array__") else list(values))
    return np.asarray(values) if names is None else names


def sources(variable: Variable) -> Iterator[Labelled]:
    """Yield the named arrays in the parameters of a variable."""
    for found in arrays(variable):
        if found.source is not None:
            yield found


def arrays(variable: Variable) -> Iterator[Labelled]:
    """Yield all arrays and keys in the parameters of a variable."""
    given = variable.conditional
    chooser = [] if given.chooser is None else [given.chooser]
    for value in (*given.parameters.values(), *chooser):
        for term in (value.entries if isinstance(value, DiagonalMatrix) else value).terms:
            yield from term.constants
            yield from (i for o in term.operands for i in o.index if isinstance(i, Labelled))
            if term.design is not None:
                yield term.design


def check_name(model: Declaration, named: Mapping[str, Any], name: str) -> None:
    """Refuse a name of nothing that can be replaced, or of two things."""
    variable = model.variables.get(name)
    if name in named and variable is not None:
        raise ModelError(
            f"with_data: '{name}' is the name of an array and of a variable; rename the array, as "
            f"in svmp.data(..., name='{name}_data')"
        )
    if name in named:
        first = named[name][0][1]
        if any(np.shape(f.values) != np.shape(first.values) for _, f in named[name]):
            raise ModelError(
                f"with_data: two arrays of different shapes are named '{name}'; give each "
                "svmp.data another name"
            )
    elif variable is None:
        every = [sorted(s.columns) if isinstance(s, Computed) else [str(s)] for s in named]
        read = list(dict.fromkeys(column for columns in every for column in columns))
        if name in read:
            return
        there = [*read, *(n for n, v in model.variables.items() if has_values(v))]
        raise ModelError(
            f"with_data: nothing is named '{name}'; there are {there}: columns of the model's "
            "data and arrays of svmp.data(..., name=) that it reads, and observed variables"
        )


def has_values(variable: Variable) -> bool:
    """Whether some values of a variable are observed."""
    return not variable.hidden or isinstance(variable.family, PartlyKnown)


def new_sizes(
    model: Declaration,
    named: Mapping[str, list[tuple[Variable, Labelled]]],
    values: Mapping[str, Any],
    coords: Mapping[str, Any],
) -> dict[str, tuple[int, str]]:
    """Return the size that new values give to each of their dims, and the name of the first."""
    sizes: dict[str, tuple[int, str]] = {}

    def claim(dim: str, length: int, name: str) -> None:
        known = sizes.setdefault(dim, (length, name))
        if known[0] != length:
            raise ModelError(
                f"with_data: '{name}' has length {length} along '{dim}', and '{known[1]}' has "
                f"{known[0]}"
            )

    for name, given in values.items():
        shape = shape_of(given)
        for variable, found in named.get(name, ()):
            if len(shape) != len(found.axes):
                raise ModelError(
                    f"with_data: '{name}' has {len(shape)} axes instead of {len(found.axes)}"
                )
            plate = variable.plate.labels
            last = iter(plate[len(plate) - found.axes.count(None) :])
            axes = [next(last) if axis is None else axis for axis in found.axes]
            for dim, length, own in zip(axes, shape, found.axes, strict=True):
                if own is not None or length != 1:
                    claim(dim.rstrip(PRIME), length, name)
        if name in model.variables and given is not None:
            dims = model.variables[name].dims
            if len(shape) != len(dims):
                raise ModelError(
                    f"with_data: '{name}' has dims {dims} but its new values have shape {shape}"
                )
            for dim, length in zip(dims, shape, strict=True):
                claim(dim, length, name)
    for dim, (length, name) in sizes.items():
        labels = model.labels.get(dim)
        if dim not in coords and labels is not None and len(labels) != length:
            raise ModelError(
                f"with_data: '{dim}' has {len(labels)} labels, and '{name}' has length {length} "
                f"along it; give the new labels, as in coords={{'{dim}': [...]}}"
            )
    return sizes


def shape_of(values: Any) -> tuple[int, ...]:
    """Return the shape of new values, which are checked later."""
    if sparse.issparse(values):
        return tuple(values.shape)
    found = array(values)
    if found is None:
        found = labels_of(values)
    return () if found is None else found.shape


def new_coords(
    model: Declaration,
    sizes: Mapping[str, tuple[int, str]],
    coords: Mapping[str, Any] | None,
    data: Columns | None,
) -> Coords:
    """Return the dims of the new model."""
    Coords(coords)  # which refuses what is no mapping of dims
    for dim in coords or {}:
        if dim not in model.sizes:
            raise ModelError(
                f"with_data: coords names {shown(dim)}, which is no dim of the model; there are "
                f"{list(model.sizes)}"
            )
    whole: dict[str, Any] = dict(model.coords)
    whole |= {d: n for d, (n, _) in sizes.items() if d not in model.labels}
    found = Coords({**whole, **(coords or {})}, data)
    for dim, (length, name) in sizes.items():
        if found.sizes[dim] != length:
            raise ModelError(
                f"with_data: '{name}' has length {length} along '{dim}', and coords gives "
                f"{found.sizes[dim]}"
            )
    return found


def hint(model: Declaration, variable: Variable, sizes: Mapping[str, tuple[int, str]]) -> str:
    """Say which arrays of a variable did not change with the size of a dim."""
    changed = [d for d, (n, _) in sizes.items() if model.sizes.get(d) != n and d in variable.dims]
    if not changed:
        return ""
    if isinstance(variable, ChainVariable):
        return (
            f" ('{changed[0]}' has another size: a chain with arrays of rows must be declared "
            "again; write a function that declares the network, and call it)"
        )
    names = [f.source for f in sources(variable)]
    kept = [str(name) if isinstance(name, Computed) else f"'{name}'" for name in names]
    also = f"; it reads {', '.join(dict.fromkeys(kept))}" if kept else ""
    return (
        f" ('{changed[0]}' has another size: every array along it must be a column of the model's "
        f"data or a svmp.data(..., name=), and be given anew{also})"
    )

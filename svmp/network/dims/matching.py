"""Which elements of a new declaration are the same as those of an earlier one.

Elements along a dim with labels are the same if their labels are. Without labels, those of the rows
of an observed table are all new, and all others are matched by position:

    dim of the new model                              its elements are
    labels                                            the same by label, else new
    no labels, the rows of an observed table          all new
    no labels, any other                              the same by position; the size must be equal
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from svmp.errors import ModelError
from svmp.network.declaration import Declaration
from svmp.network.dims.coords import Extent
from svmp.network.dims.labels import LabelIndex, label_kinds, object_array
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.validation import shown
from svmp.network.variable import Variable


@dataclass(frozen=True, eq=False)
class DimMatch:
    """The elements along one dim, beside the earlier ones.

    Attributes
    ----------
    known
        The earlier place of each element; -1 if it is new.
    place
        The place of each element among all: the earlier ones first, then the new ones.
    extent
        Size or labels of all.
    fresh
        Whether the elements are new rows, so that earlier ones are not kept.
    """

    known: Ints
    place: Ints
    extent: Extent
    fresh: bool = False

    @property
    def size(self) -> int:
        """Number of all elements."""
        return size_of(self.extent)

    @property
    def same(self) -> bool:
        """Whether the elements are exactly the earlier ones, in the same order."""
        return len(self.known) == self.size and np.array_equal(self.known, np.arange(self.size))


@dataclass(frozen=True, eq=False)
class VariableMatch:
    """The elements of a hidden variable, beside the earlier ones.

    Attributes
    ----------
    known
        The earlier place of each element in the flattened plate; -1 if it is new.
    place
        The place of each element in the flattened plate of all elements.
    earlier
        The place of each earlier element in the flattened plate of all elements; empty if they are
        not kept, as those of earlier rows.
    plate
        Shape of the plate of all elements.
    categories
        How the categories of a Dirichlet match; None in other families.
    """

    known: Ints
    place: Ints
    earlier: Ints
    plate: tuple[int, ...]
    categories: DimMatch | None = None


def size_of(extent: Extent) -> int:
    """Return the size of a dim."""
    return extent if isinstance(extent, int) else len(extent)


def hidden_coords(network: Network) -> dict[str, Extent]:
    """Return the size or the labels of each dim of the hidden variables."""
    return coords_now(network.model, network.hidden.values())


def coords_now(model: Declaration, variables: Iterable[Symbol]) -> dict[str, Extent]:
    """Return the size or the labels of each dim of some variables."""
    found: dict[str, Extent] = {}
    for dim in {dim: None for variable in variables for dim in variable.dims}:
        labels = model.labels.get(dim)
        found[dim] = model.sizes[dim] if labels is None else list(labels)
    return found


def match_dims(
    network: Network, earlier: Mapping[str, Extent], new: Collection[str] = ()
) -> dict[str, DimMatch]:
    """Match the dims of the hidden variables with the earlier ones.

    Parameters
    ----------
    network, earlier
        The new network, and the earlier sizes or labels.
    new
        Dims whose elements are all new, or the dims of sequences that begin anew.
    """
    coords = hidden_coords(network)
    sequences = {chain.sequences.dim for chain in network.chains.values()}
    unknown = [dim for dim in new if dim not in coords and dim not in sequences]
    if unknown:
        raise ModelError(f"new names {shown(unknown[0])}, which is no dim of a hidden variable")
    tables = network.observed.values()
    fresh = {*new, *new_rows(network.model, network.hidden.values(), tables, new)}
    fresh |= coords.keys() - earlier.keys()
    return {
        dim: match_extent(dim, extent, None if dim in fresh else earlier[dim])
        for dim, extent in coords.items()
    }


def new_rows(
    model: Declaration,
    variables: Iterable[Symbol],
    tables: Iterable[Symbol],
    told: Collection[str] = (),
    earlier: Mapping[str, int] | None = None,
) -> set[str]:
    """Return the dims without labels, of hidden variables, that number the rows of a table.

    Parameters
    ----------
    model, variables, tables
        The model, its hidden variables and its tables of rows.
    told
        Dims of which it is known already whether they are new.
    earlier
        Earlier sizes. Where either of two dims may number the rows, it is the one with another
        size; without earlier sizes, that is refused.
    """
    hidden = {dim for variable in variables for dim in variable.dims}
    found: set[str] = set()
    for table in tables:
        plain = [dim for dim in table.plate.labels if dim not in model.labels]
        if len(plain) == 1:
            found |= {*plain} & hidden
        elif plain and set(plain) <= hidden and not set(plain) & set(told):
            changed = {d for d in plain if earlier and earlier.get(d) != model.sizes[d]}
            found |= changed
            if not changed:
                these = " and ".join(f"'{dim}'" for dim in plain)
                raise ModelError(
                    f"either of {these} may number the new rows of '{table.name}': give labels in "
                    "coords to the dims whose elements stay the same, or name the others in new="
                )
    return found


def match_extent(dim: str, extent: Extent, earlier: Extent | None) -> DimMatch:
    """Match the elements of one dim with the earlier ones; all are new if there are none."""
    return _fresh(extent) if earlier is None else _matched(dim, extent, earlier)


def _fresh(extent: Extent) -> DimMatch:
    """Return the match of new rows."""
    size = size_of(extent)
    return DimMatch(np.full(size, -1), np.arange(size), extent, fresh=True)


def _matched(dim: str, extent: Extent, earlier: Extent) -> DimMatch:
    """Match the elements of one dim."""
    if isinstance(extent, int) and isinstance(earlier, int):
        if extent != earlier:
            raise ModelError(
                f"dimension '{dim}' had size {earlier} and now has {extent}: give labels in coords "
                f"to both models, or say new=['{dim}'] if all of its elements are new"
            )
        every = np.arange(extent)
        return DimMatch(every, every, earlier)
    if isinstance(extent, int) or isinstance(earlier, int):
        has, had = ("no labels", "some") if isinstance(extent, int) else ("labels", "none")
        raise ModelError(
            f"dimension '{dim}' has {has} in coords, but had {had} earlier, so that its elements "
            f"cannot be matched; say new=['{dim}'] if all of them are new"
        )
    now, then = label_kinds(extent), label_kinds(earlier)
    if now and then and not {*now} & {*then}:
        raise ModelError(
            f"the labels of dimension '{dim}' are {' and '.join(now)}, but were "
            f"{' and '.join(then)} earlier, so that none of them is known; convert them, or say "
            f"new=['{dim}'] if all of its elements are new"
        )
    known = LabelIndex(earlier).find(object_array(extent))
    added = np.flatnonzero(known < 0)
    place = known.copy()
    place[added] = len(earlier) + np.arange(len(added))
    return DimMatch(known, place, [*earlier, *(extent[int(i)] for i in added)])


def match_variable(
    variable: Variable, dims: Mapping[str, DimMatch], earlier: tuple[int, ...]
) -> VariableMatch:
    """Match the elements of a hidden variable.

    Parameters
    ----------
    variable, dims
        The variable, and the match of each dim.
    earlier
        Shape of the earlier plate.
    """
    if any(dims[dim].fresh for dim in variable.dims):
        every = np.arange(variable.size)
        return VariableMatch(np.full(variable.size, -1), every, every[:0], variable.plate.shape)
    axes = [dims[dim] for dim in variable.plate.labels]
    plate = tuple(axis.size for axis in axes)
    known, place, new = (np.zeros(1, dtype=np.int64) for _ in range(3))
    for axis, then in zip(axes, earlier, strict=True):
        known = (known[:, None] * then + axis.known).ravel()
        place = (place[:, None] * axis.size + axis.place).ravel()
        new = (new[:, None] | (axis.known < 0)).ravel()
    before = np.arange(int(np.prod(plate))).reshape(plate)
    before = before[tuple(slice(length) for length in earlier)].ravel()
    categories = _categories(variable, dims)
    _check_covered(variable, dims, (*variable.plate.labels, *variable.event_dims))
    return VariableMatch(np.where(new, -1, known), place, before, plate, categories)


def _check_covered(variable: Variable, dims: Mapping[str, DimMatch], axes: Sequence[str]) -> None:
    """Refuse labels that are new along one dim while earlier ones are absent along another.

    An element with a new label and an absent one would be declared neither earlier nor now.
    """
    grown = [dim for dim in axes if (dims[dim].known < 0).any()]
    absent = [dim for dim in axes if len(dims[dim].known) < dims[dim].size]
    for dim in grown:
        for other in absent:
            if dim != other:
                raise ModelError(
                    f"'{variable.name}' has new labels along '{dim}', so that all earlier labels "
                    f"of '{other}' must be declared again, in any order"
                )


def _categories(variable: Variable, dims: Mapping[str, DimMatch]) -> DimMatch | None:
    """Return how the categories of a Dirichlet match; in other families they must be the same."""
    if variable.family.simplex:
        return dims[variable.event_dims[0]]
    within = {*variable.event_dims}
    if variable.category_axis is not None:
        within |= {dim for dim in dims if dim == variable.category_axis[0]}
    for dim in within:
        if not dims[dim].same:
            raise ModelError(
                f"'{variable.name}' has an entry for each '{dim}', so that its labels must be the "
                "same as earlier, in the same order"
            )
    return None

"""Which hidden variables parts share, which belong to one part, and which elements are the same.

Elements are the same in two parts if their labels are. A dim whose labels differ in all parts
divides the data: its variables are *own* to their part, as are those that depend on them. All other
variables are *shared*. Without labels, a dim that only counts (factors, topics, components) is
shared, and the rows of observed tables are new in each part; anything else must be named.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.network.dims.labels import label_kinds
from svmp.network.grid import Ints
from svmp.network.validation import shown
from svmp.parts.description import Labels, PartDims, VariableShape, as_labels


@dataclass(frozen=True, eq=False)
class Sharing:
    """The division of a network's hidden variables among its parts.

    Attributes
    ----------
    own
        Variables that belong to one part, in the order of their declaration.
    shared
        All others.
    labels
        By dim of a shared variable its labels in all parts together, or its size.
    places
        By part and dim of a shared variable, the place of each of the part's labels in `labels`;
        dims that have the same labels in the same order are left out.
    divided
        By other dim of an own variable the labels of all parts, one after the other, or their sum.
    """

    own: tuple[str, ...]
    shared: tuple[str, ...]
    labels: dict[str, Labels]
    places: tuple[dict[str, Ints], ...]
    divided: dict[str, Labels]

    @classmethod
    def of(
        cls,
        parts: Sequence[PartDims],
        own: Collection[str] | None = None,
        shared: Collection[str] | None = None,
    ) -> Sharing:
        """Find which variables are shared, or refuse a network that cannot be divided."""
        check_alike(parts)
        check_label_kinds(parts)
        first = parts[0]
        names = _named(first, own, "own"), _named(first, shared, "shared")
        if names[0] is not None and names[1] is not None and names[0] & names[1]:
            both = sorted(names[0] & names[1])
            raise ModelError(f"own and shared both name {shown(both)}")
        if names[0] is not None:
            found = names[0]
        elif names[1] is not None:
            found = set(first.hidden) - names[1]
        else:
            found = find_own(parts)
        for name, shape in first.hidden.items():
            above = [p for p in shape.parents if p in found]
            if above and name not in found:
                raise ModelError(
                    f"'{name}' is shared by all parts, but depends on '{above[0]}', which belongs "
                    f"to one part; name '{name}' in own=, or '{above[0]}' in shared="
                )
        shared_names = tuple(name for name in first.hidden if name not in found)
        if not shared_names:
            raise ModelError(
                "every hidden variable belongs to one part, so the parts have nothing to learn "
                "from each other; fit each part by itself"
            )
        dims = list(dict.fromkeys(d for name in shared_names for d in first.hidden[name].dims))
        others = dict.fromkeys(d for n in found for d in first.hidden[n].dims if d not in dims)
        check_disjoint(parts, others)
        divided = {dim: _joined([part.labels[dim] for part in parts]) for dim in others}
        labels: dict[str, Labels] = {}
        places: list[dict[str, Ints]] = [{} for _ in parts]
        for dim in dims:
            labels[dim] = _united(parts, dim, places)
        own_names = tuple(n for n in first.hidden if n in found)
        return cls(own_names, shared_names, labels, tuple(places), divided)


def _joined(every: Sequence[Labels]) -> Labels:
    """Return the labels of all parts, one part after the other."""
    arrays = [labels for labels in every if not isinstance(labels, int)]
    if len(arrays) < len(every):
        return sum(labels if isinstance(labels, int) else len(labels) for labels in every)
    return as_labels([label for labels in arrays for label in labels.tolist()])


def check_alike(parts: Sequence[PartDims]) -> None:
    """Refuse parts whose networks differ in more than their rows and elements."""
    first = parts[0]
    for part in parts[1:]:
        for mine, yours in ((part.hidden, first.hidden), (part.observed, first.observed)):
            for name in {**mine, **yours}:
                if name not in mine or name not in yours:
                    lacking = part.name if name not in mine else first.name
                    raise ModelError(
                        f"all parts must declare the same network, but '{name}' is missing (or "
                        f"hidden in one and observed in the other) in {lacking}"
                    )
                for what, here, there in zip(
                    VariableShape._fields, mine[name], yours[name], strict=True
                ):
                    if here != there:
                        raise ModelError(
                            f"all parts must declare the same network, but the {what} of '{name}' "
                            f"is {here} in {part.name} and {there} in {first.name}"
                        )


def check_label_kinds(parts: Sequence[PartDims]) -> None:
    """Refuse labels of other types than in the parts before: none could be the same."""
    for dim in parts[0].labels:
        before: list[str] = []
        for part in parts:
            labels = part.labels.get(dim, 0)
            here = [] if isinstance(labels, int) else label_kinds(labels)
            if before and here and not {*before} & {*here}:
                raise ModelError(
                    f"the labels of dimension '{dim}' are {' and '.join(here)} in "
                    f"{part.name} and {' and '.join(before)} in the parts before it; convert them "
                    "to one type"
                )
            before = sorted({*before, *here})


def _named(part: PartDims, given: Collection[str] | None, what: str) -> set[str] | None:
    """Return the hidden variables that a user named, by their names or by a dim."""
    if given is None:
        return None
    names = [given] if isinstance(given, str) else list(given)
    found: set[str] = set()
    for name in names:
        by_dim = {v for v, shape in part.hidden.items() if name in shape.dims}
        if name in part.hidden:
            found.add(name)
        elif by_dim:
            found |= by_dim
        else:
            raise ModelError(
                f"{what} names {shown(name)}, which is no hidden variable and no dimension of one; "
                f"the hidden variables are {list(part.hidden)}"
            )
    return found


def find_own(parts: Sequence[PartDims]) -> set[str]:
    """Return the variables that belong to one part, found from dims and labels."""
    first = parts[0]
    if len(parts) == 1:
        return set(first.per_row)
    divided, unclear = set[str](), set[str]()
    for dim in first.labels:
        every = [part.labels.get(dim, 0) for part in parts]
        if all(isinstance(labels, int) for labels in every):
            if len(set(every)) > 1:
                divided.add(dim)
            elif dim in first.keyed or dim in first.rows:
                unclear.add(dim)
        elif any(isinstance(labels, int) for labels in every):
            raise ModelError(f"dimension '{dim}' has labels in some parts and none in others")
        elif is_disjoint(every):  # type: ignore[arg-type]
            divided.add(dim)
    for dim in sorted(unclear - first.keyed):  # beside a dim that divides the table it is shared
        tables = [set(shape.dims) for shape in first.observed.values() if dim in shape.dims]
        if all(dims & divided for dims in tables):
            unclear.remove(dim)
    own: set[str] = set()
    per_row = frozenset.intersection(*(part.per_row for part in parts))
    for name, shape in first.hidden.items():  # parents are declared before their children
        if set(shape.dims) & divided or set(shape.parents) & own or name in per_row:
            own.add(name)
        elif set(shape.dims) & unclear:
            dim = next(d for d in shape.dims if d in unclear)
            raise ModelError(
                f"cannot tell whether the {first.labels[dim]} elements of '{dim}' are the same in "
                f"every part or others in each; give their labels in coords, or name '{name}' in "
                "own= or shared="
            )
    return own


def is_disjoint(every: Sequence[NDArray[Any]]) -> bool:
    """Return whether no label is in two parts."""
    if len({labels.dtype.kind for labels in every}) == 1 and every[0].dtype != object:
        joined = np.concatenate(every)
        return len(np.unique(joined)) == len(joined)
    return len({label for labels in every for label in labels}) == sum(map(len, every))


def check_disjoint(parts: Sequence[PartDims], dims: Collection[str]) -> None:
    """Refuse an element of an own variable that is in two parts."""
    for dim in sorted(dims):
        every = [part.labels[dim] for part in parts]
        arrays = [labels for labels in every if not isinstance(labels, int)]
        if len(arrays) < len(every) or len(every) == 1 or is_disjoint(arrays):
            continue
        seen: dict[Any, str] = {}
        for part, labels in zip(parts, arrays, strict=True):
            for label in labels.tolist():
                if label in seen:
                    raise ModelError(
                        f"{shown(label)} of dimension '{dim}' is in {seen[label]} and in "
                        f"{part.name}, but its variables belong to one part; put all of its rows "
                        f"into one part, or name the variables in shared="
                    )
                seen[label] = part.name


def _united(parts: Sequence[PartDims], dim: str, places: list[dict[str, Ints]]) -> Labels:
    """Return all labels along a dim, and note the place of each part's."""
    first = parts[0].labels[dim]
    if isinstance(first, int):
        for part in parts[1:]:
            if not isinstance(part.labels[dim], int) or part.labels[dim] != first:
                raise ModelError(
                    f"dimension '{dim}' has {first} elements in {parts[0].name} and others in "
                    f"{part.name}; give its labels in coords, so that it is known which are "
                    "the same"
                )
        return first
    known: dict[Any, int] | None = None
    for part, noted in zip(parts, places, strict=True):
        labels = part.labels[dim]
        if isinstance(labels, int):
            raise ModelError(f"dimension '{dim}' has labels in some parts and none in others")
        if known is None and np.array_equal(labels, first):
            continue
        if known is None:
            known = {label: place for place, label in enumerate(first.tolist())}
        noted[dim] = np.array(
            [known.setdefault(label, len(known)) for label in labels.tolist()], dtype=np.int64
        )
    if known is None:
        return first
    if len(known) > len(first):
        for noted in places:
            noted.setdefault(dim, np.arange(len(first)))
    return as_labels(list(known))


def element_places(
    dims: Sequence[str], sizes: Sequence[int], whole: Sequence[int], places: Mapping[str, Ints]
) -> Ints | None:
    """Return the place of each element of a part's variable among all; None if all are the same.

    `sizes` and `whole` are the lengths of its plate in the part and in all parts together.
    """
    if not any(dim in places for dim in dims):
        return None
    found = np.zeros(1, dtype=np.int64)
    for dim, size, length in zip(dims, sizes, whole, strict=True):
        along = places.get(dim, np.arange(size))
        found = (found[:, None] * length + along).ravel()
    return found

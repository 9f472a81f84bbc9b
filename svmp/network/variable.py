"""A variable of the network: a name, dims, a conditional density, and observed values if any."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from svmp.errors import EmptyTableError, ModelError
from svmp.factors.factor import Factor
from svmp.families import Categorical, Multinomial, MvNormal, Normal
from svmp.families.family import Family
from svmp.network.conditional import Conditional
from svmp.network.coords import Coords
from svmp.network.expressions import Expression, Index, Operand, Sum, Symbol, Term
from svmp.network.grid import Grid, Labelled
from svmp.network.lookup import Lookup
from svmp.network.refusals import Symbolic
from svmp.network.validation import LARGEST, array, dim_names, shown, whole

Dims = str | tuple[str, ...] | list[str] | None


FARTHEST = 1e6
"""Largest distance of observed values from 0, in standard deviations."""


@dataclass(frozen=True, eq=False, repr=False)
class Component(Symbolic):
    """A density without a name, for the components of a Mixture: `svmp.Normal.dist(...)`."""

    hint: ClassVar[str] = "; it is the component of an svmp.Mixture"
    factor: Factor
    parameters: Mapping[str, Any]

    def in_words(self) -> str:
        return f"the Component of svmp.{type(self.factor).__name__}.dist"


class Variable(Symbol):
    """An array of hidden or observed variables that share a family and a density.

    Attributes
    ----------
    conditional
        Its density given its parents.
    """

    def __init__(
        self,
        coords: Coords,
        name: str,
        component: Component,
        dims: Dims = None,
        observed: ArrayLike | None = None,
        missing: bool | ArrayLike = False,
        selector: Any = None,
    ) -> None:
        self.coords, self.name = coords, name
        factor = component.factor
        values, absent = _values(name, factor, observed, missing)
        self.dims = _dims(name, dims, values, factor)
        shape = coords.shape(name, self.dims, None if values is None else values.shape)
        events = factor.child.event_ndim
        cut = len(self.dims) - events
        if cut < 0:
            raise ModelError(
                f"a value of '{name}' has {events} axes of its own, so dims needs as many; "
                f"{self.dims} was given"
            )
        if 0 in shape[cut:] or len(set(shape[cut:])) > 1:
            raise ModelError(
                f"a value of '{name}' has the shape {shape[cut:]} along {self.dims[cut:]}, but "
                "needs entries, and as many rows as columns"
            )
        self.shape = shape
        self.plate = Grid(self.dims[:cut], shape[:cut])
        self.event_dims = self.dims[cut:]
        density = Lookup if factor.child is Categorical and values is not None else Conditional
        self.conditional = density(
            self, factor, component.parameters, shape[-1] if events else None, selector
        )
        self.family = self.conditional.family
        self.category_axis = self.conditional.category_axis
        self.observed = values
        self.present = self._present(absent)
        if isinstance(self.family, Normal | MvNormal) and values is not None:
            self._check_distance()

    def observing(self, values: Any) -> Variable:
        """Return a copy with other observed values, missing where they are NaN or masked.

        The copy is not added to the model, so no other variable depends on it.
        """
        given, absent = _values(self.name, self.conditional.factor, values, missing=True)
        assert given is not None
        if given.shape != self.shape:
            raise ModelError(
                f"the values of '{self.name}' have shape {given.shape} instead of {self.shape}"
            )
        other = copy.copy(self)
        other.conditional = self.conditional.of(other)
        other.observed = given
        other.present = other._present(absent)
        return other

    def __getitem__(self, key: Any) -> Expression:
        """Index the first axes by integers, arrays of integers (foreign keys) or `:`."""
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) > len(self.dims):
            raise ModelError(
                f"'{self.name}' has {len(keys)} indices, but only the dims {self.dims}"
            )
        full = keys + (slice(None),) * (len(self.dims) - len(keys))
        index = tuple(
            self._index(k, d, n) for k, d, n in zip(full, self.dims, self.shape, strict=True)
        )
        return Sum((Term(operands=(Operand(self, index),)),))

    def _index(self, key: Any, dim: str, length: int) -> Index:
        where = f"the index of '{self.name}' along '{dim}'"
        if isinstance(key, slice):
            if key != slice(None):
                raise ModelError(f"{where} is a slice; give the whole numbers, as in x[[0, 1]]")
            return dim
        axes: tuple[str | None, ...] | None = None
        if isinstance(key, Expression):
            term = key.terms[0]
            if any(t.operands for t in key.terms):
                raise ModelError(
                    f"{where} is random; to choose by a Categorical z, write "
                    "svmp.Mixture(name, z, component), with the parameter itself in the component"
                )
            if len(key.terms) > 1 or len(term.constants) != 1 or term.scale != 1 or term.summed:
                raise ModelError(f"{where} is an expression; compute the keys before svmp.data")
            axes, key = term.constants[0].axes, term.constants[0].values
        key = whole(key, length, where)
        if key.ndim == 0:
            return int(key)
        return Labelled(self.coords.kept(key), axes or (None,) * key.ndim)

    def _present(self, absent: NDArray[np.bool_] | None) -> NDArray[np.int64] | None:
        """Check the observed values; return the rows that are not missing, None if none is."""
        if self.observed is None:
            return None
        if self.size == 0:
            raise EmptyTableError(f"'{self.name}' is observed but its table is empty")
        rows, events = None, self.family.event_ndim
        if absent is not None and absent.any():
            cells = absent.reshape(*self.plate.shape, -1) if events else absent[..., None]
            missing = cells.any(axis=-1)
            if events and not np.array_equal(missing, cells.all(axis=-1)):
                raise ModelError(
                    f"a value of '{self.name}' is missing in part, but a vector or matrix is "
                    "observed as a whole or not at all"
                )
            rows = np.flatnonzero(~missing)
            if rows.size == 0:
                raise ModelError(
                    f"every value of '{self.name}' is missing; without observed= it is hidden"
                )
        flat = self.observed.reshape(-1, *self.shape[len(self.plate.shape) :])
        values = flat if rows is None else flat[rows]

        def first(wrong: NDArray[np.bool_]) -> int:
            place = int(np.flatnonzero(wrong)[0])
            return place if rows is None else int(rows[place])

        each = np.arange(self.size) if rows is None else rows
        sound = self.family.at(each).in_support(values)
        if not sound.all():
            raise ModelError(self._strange(flat, first(~sound)))
        if max(float(values.max()), -float(values.min())) > LARGEST:
            row = first(np.abs(values).reshape(len(values), -1).max(axis=1) > np.float64(LARGEST))
            raise ModelError(
                f"'{self.name}' holds {shown(flat[row].tolist())} at {self.plate.locate(row)}, "
                f"but beyond {LARGEST:g} squares overflow; use other units"
            )
        self.observed = flat
        return rows

    def _check_distance(self) -> None:
        """Refuse values so far from 0 that squares leave no digits for a variance."""
        values = self.values
        centre = np.abs(values.mean(axis=0, dtype=np.float64))
        spread = values.std(axis=0, dtype=np.float64)
        far = (spread > 0) & (centre > FARTHEST * spread)
        if np.any(far):
            raise ModelError(
                f"the values of '{self.name}' lie more than {FARTHEST:g} standard deviations from "
                "0, where their squares have no digits left for a variance; subtract a constant"
            )

    def _strange(self, flat: NDArray[Any], row: int) -> str:
        """Return the error message for a value outside the support of the family."""
        bad, family, why = flat[row], self.family.at(np.array([row])), ""
        if np.isnan(bad.astype(np.float64)).any():
            why = "; say missing=True if NaN means missing"
        elif isinstance(family, Multinomial) and bad.sum() != family.trials:
            why = f": it adds up to {bad.sum():g}, where n is {np.ravel(family.trials)[0]}"
        return (
            f"'{self.name}' holds {bad.tolist()!r:.60} at {self.plate.locate(row)}, which is not a "
            f"possible value of the family {_kind(self.family)}{why}"
        )

    def in_words(self) -> str:
        family = self.__dict__.get("family")  # missing while the variable is being declared
        return f"'{self.name}'" if family is None else f"the {_kind(family)} '{self.name}'"

    def __repr__(self) -> str:
        state = "hidden" if self.hidden else "observed"
        sizes = dict(zip(self.dims, self.shape, strict=True))
        return f"<{state} {_kind(self.family)} '{self.name}' {sizes}>"


def _kind(family: Family) -> str:
    return type(family).__name__


def _values(
    name: str, factor: Factor, observed: Any, missing: bool | ArrayLike
) -> tuple[NDArray[Any] | None, NDArray[np.bool_] | None]:
    """Return a copy of the observed array, and a mask of its missing entries."""
    if observed is None:
        if missing is not False:
            raise ModelError(f"'{name}' has missing values but no observed ones")
        return None, None
    absent = np.ma.getmaskarray(observed) if np.ma.isMaskedArray(observed) else None
    given = array(observed)
    if given is None:
        raise ModelError(f"the observed values of '{name}' are not numbers, but {shown(observed)}")
    kept = given.dtype.kind in "iuf" and given.dtype.itemsize <= 8 and given.dtype != np.float16
    values = np.array(given, dtype=given.dtype if kept else np.float64)
    if missing is True:
        gaps = np.isnan(values)
        absent = gaps if absent is None else absent | gaps
    elif missing is not False:
        mask = array(missing)
        if mask is None or mask.dtype != bool or mask.shape != values.shape[: mask.ndim]:
            raise ModelError(
                f"missing of '{name}' must be True, or booleans of shape {values.shape}; got "
                + (shown(missing) if mask is None else f"{mask.dtype} of shape {mask.shape}")
            )
        mask = mask.reshape(mask.shape + (1,) * (values.ndim - mask.ndim))
        mask = np.broadcast_to(mask, values.shape)
        absent = mask if absent is None else absent | mask
    return values, absent


def _dims(name: str, dims: Dims, values: NDArray[Any] | None, factor: Factor) -> tuple[str, ...]:
    """Return the dims as a tuple; an observed array without dims gets generated names."""
    if dims is None:
        ndim = factor.child.event_ndim if values is None else values.ndim
        if values is None and ndim:
            raise ModelError(f"'{name}' is an array: name its axes with dims=")
        return tuple(f"{name}_dim_{i}" for i in range(ndim))
    try:
        return dim_names(dims, repeated=factor.child.event_ndim == 2)
    except ModelError as error:
        raise ModelError(f"dims of '{name}': {error}") from None

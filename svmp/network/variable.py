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
from svmp.families import Categorical
from svmp.families.family import Family
from svmp.network.conditional import Conditional
from svmp.network.data_arrays import LabelArray, labels_of
from svmp.network.dims.column_arrays import ColumnArray
from svmp.network.dims.coords import Coords
from svmp.network.dims.data_columns import Columns
from svmp.network.dims.keys import Axis, Reading
from svmp.network.dims.labels import missing_rows, object_array
from svmp.network.expressions import Expression, Index, Operand, Sum, Symbol, Term
from svmp.network.grid import Grid, Labelled
from svmp.network.lookup import Lookup
from svmp.network.memory import check_memory
from svmp.network.partly_known import PartlyKnown, base_of
from svmp.network.refusals import Symbolic
from svmp.network.validation import LARGEST, array, dim_names, shown

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
        if isinstance(observed, str) and coords.data is not None:
            observed = _column(coords.data, observed)
        names = (
            labels_of(observed) if factor.child is Categorical and array(observed) is None else None
        )
        values, absent = _values(name, observed if names is None else _blank(names), missing)
        self.dims = _dims(name, dims, values, factor)
        shape = coords.shape(name, self.dims, None if values is None else values.shape)
        if values is not None and absent is not None and absent.size and absent.all():
            values = names = absent = None  # nothing is observed: it is hidden
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
        if values is None:
            check_memory(name, shape, self.dims, factor.child.gaussian == "vector")
        self.shape = shape
        self.plate = Grid(self.dims[:cut], shape[:cut])
        self.event_dims = self.dims[cut:]
        self.observed = values
        self._declared = (component, shape[-1] if events else None, selector)
        self.conditional = self._density(*self._declared)
        self.family = self.conditional.family
        self.category_axis = self.conditional.category_axis
        self.observed = values if names is None else self._categories(names, absent)
        self.present = self._present(absent)
        if self.family.gaussian is not None and values is not None:
            self._check_distance()

    def _density(self, component: Component, length: int | None, selector: Any) -> Conditional:
        """Return the density of the variable given its parents."""
        factor, observed = component.factor, self.observed is not None
        kind = Lookup if factor.child is Categorical and observed else Conditional
        return kind(self, factor, component.parameters, length, selector)

    def hide_missing(self) -> None:
        """Make it a hidden variable whose observed elements are known, if some are missing.

        A variable that others depend on needs a q for its missing elements.
        """
        if self.observed is None or self.present is None:
            return
        known = np.zeros(self.size, dtype=bool)
        known[self.present] = True
        values, self.observed, self.present = self.observed, None, None
        self.conditional = self._density(*self._declared)
        self.family = self.conditional.family = PartlyKnown(self.family, known, values)

    def observing(self, values: Any) -> Variable:
        """Return a copy with other observed values, missing where they are NaN or masked.

        The copy is not added to the model, so no other variable depends on it.
        """
        given, absent = _values(self.name, values, missing=True)
        if given is None:
            raise ModelError(f"the values of '{self.name}' must be an array, and not None")
        if given.shape != self.shape:
            raise ModelError(
                f"the values of '{self.name}' have shape {given.shape} instead of {self.shape}"
            )
        other = copy.copy(self)
        other.conditional = self.conditional.of(other)
        other.observed = given
        other.present = other._present(absent)
        return other

    def redeclared(
        self,
        coords: Coords,
        component: Component,
        observed: Any,
        missing: bool | ArrayLike,
        selector: Any,
    ) -> Variable:
        """Return the same variable of another model, with other parameters and values."""
        other = Variable.__new__(type(self))
        Variable.__init__(
            other, coords, self.name, component, self.dims, observed, missing, selector
        )
        return other

    def __getitem__(self, key: Any) -> Expression:
        """Index the first axes by labels, integers, arrays of them (foreign keys), slices, masks.

        Whole numbers are places, unless some labels of the dim are numbers: those are read as
        labels or as places, whichever is possible, and refused if both are. `loc` says labels, and
        `iloc` says places.
        """
        return self._indexed(key, "any")

    @property
    def loc(self) -> Indexer:
        """Index by labels alone, as in pandas: `u.loc[ids]`."""
        return Indexer(self, "label")

    @property
    def iloc(self) -> Indexer:
        """Index by places alone, as in pandas: `u.iloc[keys]`."""
        return Indexer(self, "place")

    def _indexed(self, key: Any, reading: Reading) -> Expression:
        """Return the elements that keys refer to."""
        keys = key if isinstance(key, tuple) else (key,)
        first = self.coords.index(self.dims[0]) if self.dims and isinstance(key, tuple) else None
        if first is not None and first.tuples:  # x["a", 1] may be a single label, ("a", 1)
            known = first.find(object_array([key]))[0] >= 0
            keys = (key,) if known or len(keys) > len(self.dims) else keys
        if len(keys) > len(self.dims):
            several = "; for several elements give a list, as x[[...]]" if self.dims else ""
            raise ModelError(
                f"'{self.name}' has {len(keys)} indices, but only the dims {self.dims}{several}"
            )
        columns = self.coords.data or ()
        full = keys + (slice(None),) * (len(self.dims) - len(keys))
        index = tuple(
            self._index(k, Axis(self.name, d, n, self.coords.index(d), reading, columns))
            for k, d, n in zip(full, self.dims, self.shape, strict=True)
        )
        return Sum((Term(operands=(Operand(self, index),)),))

    def _index(self, key: Any, axis: Axis) -> Index:
        if isinstance(key, slice) and key == slice(None):
            return axis.dim
        axes: tuple[str | None, ...] | None = None
        source: str | None = None
        if isinstance(key, ColumnArray):
            source, key = key.source, np.asarray(key)
        elif isinstance(key, LabelArray):
            axes, source, key = key.axes, key.source, key.values
        elif isinstance(key, Expression):
            term = key.terms[0]
            if any(t.operands for t in key.terms):
                raise ModelError(
                    f"{axis.where} is random; to choose by a Categorical z, write "
                    "svmp.Mixture(name, z, component), with the parameter itself in the component"
                )
            if len(key.terms) > 1 or len(term.constants) != 1 or term.scale != 1 or term.summed:
                raise ModelError(
                    f"{axis.where} is an expression; compute the keys before svmp.data"
                )
            (found,) = term.constants
            axes, source, key = found.axes, found.source, found.values
        places = axis.places(key)
        if places.ndim == 0:
            return int(places)
        if axes is not None and places.shape != np.shape(key):
            raise ModelError(f"{axis.where} is a mask; give svmp.data the places themselves")
        return Labelled(self.coords.kept(places), axes or (None,) * places.ndim, source)

    def _categories(self, names: NDArray[Any], absent: NDArray[np.bool_] | None) -> NDArray[Any]:
        """Return the places of observed categories that are given by their labels."""
        dim, length = self.category_axis or (None, 0)
        labels = None if dim is None else self.coords.index(dim)
        if labels is None:
            where = "its probabilities have no dim" if dim is None else f"'{dim}' has no labels"
            raise ModelError(
                f"the observed values of '{self.name}' are names of categories, but {where}; give "
                "the labels of the categories in coords, or whole numbers from 0"
            )
        found = np.zeros(names.shape)
        there = ~missing_rows(names.ravel()).reshape(names.shape)
        if absent is None and not there.all():
            found[~there] = np.nan
        if absent is not None:
            there &= ~absent
        found[there] = Axis(self.name, str(dim), length, labels, "label").places(names[there])
        return found

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
        else:
            reason = family.why_impossible(bad)
            why = f"; {reason}" if reason else ""
        return (
            f"'{self.name}' holds {bad.tolist()!r:.60} at {self.plate.locate(row)}, which is not a "
            f"possible value of the family {_kind(self.family)}{why}"
        )

    def in_words(self) -> str:
        family = self.__dict__.get("family")  # missing while the variable is being declared
        return f"'{self.name}'" if family is None else f"the {_kind(family)} '{self.name}'"

    def __repr__(self) -> str:
        state = "hidden" if self.hidden else "observed"
        state = "partly observed" if isinstance(self.family, PartlyKnown) else state
        sizes = dict(zip(self.dims, self.shape, strict=True))
        return f"<{state} {_kind(self.family)} '{self.name}' {sizes}>"


@dataclass(frozen=True)
class Indexer:
    """`x.loc` and `x.iloc`: keys that are read in one way.

    Attributes
    ----------
    variable
        The variable that is indexed.
    reading
        Whether keys are labels or places.
    """

    variable: Variable
    reading: Reading

    def __getitem__(self, key: Any) -> Expression:
        return self.variable._indexed(key, self.reading)


def _kind(family: Family) -> str:
    return type(base_of(family)).__name__


def _column(data: Columns, column: str) -> NDArray[Any]:
    """Return the column of observed values."""
    try:
        return data[column]
    except ModelError as error:
        raise ModelError(
            f"{error}; to predict it, add the column with NaN and say missing=True, or leave out "
            "observed= and give dims="
        ) from None


def _blank(names: NDArray[Any]) -> NDArray[np.float64]:
    """Return zeros in the places of names of categories, NaN where there is none."""
    return np.where(missing_rows(names.ravel()), np.nan, 0.0).reshape(names.shape)


def _values(
    name: str, observed: Any, missing: bool | ArrayLike
) -> tuple[NDArray[Any] | None, NDArray[np.bool_] | None]:
    """Return a copy of the observed array, and a mask of its missing entries."""
    if observed is None:
        if not isinstance(missing, bool):
            raise ModelError(
                f"'{name}' has missing= but no observed values; leave it out, or give observed="
            )
        return None, None
    absent = np.ma.getmaskarray(observed) if np.ma.isMaskedArray(observed) else None
    given = array(observed)
    if given is None:
        names = labels_of(observed)
        what = (
            shown(observed) if names is None or not names.size else f"{shown(names.flat[0])}, ..."
        )
        hint = "" if names is None else "; convert them, as by values.astype(float)"
        raise ModelError(f"the observed values of '{name}' are not numbers, but {what}{hint}")
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

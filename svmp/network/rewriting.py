"""Expressions of one model, written in terms of the variables and values of another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from svmp.errors import ModelError
from svmp.network.chains.chain_variable import ChainVariable
from svmp.network.data_arrays import labels_of
from svmp.network.declaration import Declaration
from svmp.network.dims.column_arrays import Computed
from svmp.network.dims.keys import Axis
from svmp.network.dims.labels import object_array
from svmp.network.expressions import (
    DiagonalMatrix,
    Expression,
    Index,
    Operand,
    Sum,
    Term,
    sparse_rows,
)
from svmp.network.grid import Labelled
from svmp.network.partly_known import PartlyKnown
from svmp.network.validation import array, numeric, shown
from svmp.network.variable import Component, Variable


@dataclass(frozen=True)
class Writer:
    """Writes the variables of one model in another.

    Attributes
    ----------
    old, new
        The models; the variables of the new one are added in order.
    values
        New values by name.
    """

    old: Declaration
    new: Declaration
    values: Mapping[str, Any]
    made: dict[str, Any] = field(default_factory=dict)

    def variable(self, variable: Variable) -> Variable:
        """Return a variable of the new model."""
        given = variable.conditional
        if isinstance(variable, ChainVariable):
            return variable.with_parameters(self.new.coords, self.given)
        parameters = {name: self.parameter(value) for name, value in given.parameters.items()}
        selector = None if given.chooser is None else self.parameter(given.chooser)
        component = Component(given.factor, parameters)
        observed, missing = self.observed(variable)
        return variable.redeclared(self.new.coords, component, observed, missing, selector)

    def given(self, value: Any) -> Any:
        """Return a parameter of a chain as it was given: in terms of variables of the new model."""
        if isinstance(value, Component):
            parameters = {name: self.given(part) for name, part in value.parameters.items()}
            return Component(value.factor, parameters)
        if isinstance(value, Expression | DiagonalMatrix):
            return self.parameter(value)
        return value

    def observed(self, variable: Variable) -> tuple[Any, Any]:
        """Return the observed values of a variable, and which are missing."""
        name = variable.name
        if name in self.values:
            return self.values[name], self.values[name] is not None
        if isinstance(variable.family, PartlyKnown):
            return self.kept(variable, variable.family.values, variable.family.known)
        if variable.observed is None:
            return None, False
        present = np.ones(variable.size, dtype=bool)
        if variable.present is not None:
            present[:] = False
            present[variable.present] = True
        return self.kept(variable, variable.observed, present)

    def kept(self, variable: Variable, values: Any, present: Any) -> tuple[Any, Any]:
        """Return observed values that stay, and which are missing."""
        name = variable.name
        shape = tuple(
            self.new.sizes.get(d, n) for d, n in zip(variable.dims, variable.shape, strict=True)
        )
        if shape != variable.shape:
            raise ModelError(
                f"'{name}' was observed with shape {variable.shape}, and its dims now have "
                f"{shape}; give {name}= new values, or {name}=None to leave it hidden"
            )
        missing = False if present.all() else ~present.reshape(variable.plate.shape)
        return values.reshape(variable.shape), missing

    def parameter(self, value: Expression | DiagonalMatrix) -> Expression | DiagonalMatrix:
        """Return a parameter, in terms of variables of the new model."""
        if isinstance(value, DiagonalMatrix):
            return DiagonalMatrix(Sum(tuple(self.term(t) for t in value.entries.terms)))
        return Sum(tuple(self.term(t) for t in value.terms))

    def term(self, term: Term) -> Term:
        """Return a term, in terms of variables of the new model."""
        return replace(
            term,
            constants=tuple(self.array(c) for c in term.constants),
            operands=tuple(self.operand(o) for o in term.operands),
            design=None if term.design is None else self.design(term.design),
        )

    def array(self, found: Labelled) -> Labelled:
        """Return an array with its new values."""
        if found.source is None or found.source not in self.values:
            return found
        given = self.values[found.source]
        try:
            dense = given.toarray() if sparse.issparse(given) else given
            return replace(found, values=self.once(found.source, lambda: numeric(dense)))
        except ModelError as error:
            name = found.source
            what = name if isinstance(name, Computed) else f"the values of '{name}'"
            raise ModelError(f"{what}: {error}") from None

    def design(self, found: Labelled) -> Labelled:
        """Return a sparse design with its new values."""
        if found.source is None or found.source not in self.values:
            return found
        given = self.values[found.source]
        if not sparse.issparse(given):
            given = sparse.csr_array(self.array(found).values)
        return replace(
            found, values=self.once(f"{found.source} by rows", lambda: sparse_rows(given))
        )

    def once(self, name: str, make: Any) -> Any:
        """Return a checked copy of values, the same one each time."""
        if name not in self.made:
            self.made[name] = make()
        return self.made[name]

    def operand(self, operand: Operand) -> Operand:
        """Return a variable of the new model in a product, with its keys."""
        old, new = self.old.variables[operand.variable.name], self.new.variables
        variable = new[old.name]
        index = tuple(
            self.key(variable, dim, length, place)
            for dim, length, place in zip(variable.dims, variable.shape, operand.index, strict=True)
        )
        return Operand(variable, index)

    def key(self, variable: Variable, dim: str, length: int, place: Index) -> Index:
        """Return a key along a dim: new values, or the old places by label."""
        if isinstance(place, str):
            return place
        if isinstance(place, Labelled) and place.source in self.values:
            return self.new_key(variable, dim, length, place)
        places = np.asarray(place.values if isinstance(place, Labelled) else place)
        places = self.moved(variable, dim, length, places)
        if isinstance(place, Labelled):
            return replace(place, values=self.new.coords.kept(places))
        return int(places)

    def new_key(self, variable: Variable, dim: str, length: int, place: Labelled) -> Labelled:
        """Return a key with its new values."""
        labels, given = self.new.coords.index(dim), self.values[place.source or ""]
        axis = Axis(variable.name, dim, length, labels, columns=self.new.coords.data or ())
        names = labels_of(given) if array(given) is None else None
        places = axis.places(given if names is None else names)
        return replace(place, values=self.new.coords.kept(places))

    def moved(
        self, variable: Variable, dim: str, length: int, places: NDArray[Any]
    ) -> NDArray[Any]:
        """Return where the elements at old places are along a dim that may have changed."""
        old, new = self.old.labels.get(dim), self.new.coords.index(dim)
        where = f"a key of '{variable.name}' along '{dim}'"
        if old is not None and new is not None and list(old) != list(self.new.labels[dim]):
            found = new.find(object_array([old[int(i)] for i in places.ravel()]))
            if (found < 0).any():
                label = old[int(places.ravel()[int(np.argmin(found))])]
                raise ModelError(
                    f"{where} is {shown(label)}, which is not among the new labels; give the key "
                    "by svmp.data(..., name=) and its new values"
                )
            return found.reshape(places.shape)
        if places.size and places.max() >= length:
            raise ModelError(
                f"{where} is {places.max()}, but must be in 0..{length - 1}; give the key by "
                "svmp.data(..., name=) and its new values"
            )
        return places

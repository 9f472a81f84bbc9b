"""Declaring a chain of vectors: what its parameters may be, and the slots that they become."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from svmp import factors, families
from svmp.errors import ModelError
from svmp.factors.factor import Factor
from svmp.families.family import Array, Bools, Family
from svmp.network.binding import Binder
from svmp.network.chains.chain import Chain, by_sequence
from svmp.network.chains.sequences import Sequences
from svmp.network.components import check_components, component_axis
from svmp.network.expressions import (
    DiagonalMatrix,
    Expression,
    Index,
    Operand,
    Sum,
    Symbol,
    Term,
    unused,
)
from svmp.network.grid import Grid, Labelled, Scope
from svmp.network.matrices import Diagonal
from svmp.network.means.coefficients import Coefficients, DiagonalEntries, FixedMatrix, MatrixRows
from svmp.network.parameter_forms import check_parents, check_size, largest, plain
from svmp.network.reader import Reader
from svmp.network.slot import Fixed, Slot
from svmp.network.validation import array, shown
from svmp.network.variable import Component

ROW, ENTRY = "matrix row", "matrix entry"
"""Names of the axes along which the rows of a matrix, or the entries of a diagonal, are read."""


class LinearChainParameters(Chain):
    """The parameters of a chain of vectors.

    Attributes
    ----------
    size, width
        Length K of its vectors, and number of columns of (A, B).
    moving
        Number D of their first entries that A, B and tau are about. It is K, or 1 if the others are
        exact copies: entry k of a state is entry k - 1 of the state before.
    matrices
        A, and B if there are inputs.
    inputs, step
        u_t of each row, and the factor s_t of its covariance, which is 1 at first rows.
    first_step
        s_t as given: at the first rows of sequences that go on from an earlier fit it counts.
    least_step
        The least s_t.
    """

    def __init__(
        self,
        variable: Symbol,
        sequences: Sequences,
        parameters: dict[str, Any],
        inputs: Any,
        step: Any,
        switch: Any,
        *,
        lags: bool = False,
    ) -> None:
        self.variable, self.sequences = variable, sequences
        self.factor: Factor = factors.MvNormal()
        self.constants: dict[str, Labelled] = {}
        self.size = variable.shape[-1]
        self.moving = 1 if lags else self.size
        self.category_axis = None
        self.family: Family = families.MvNormal(self.size)
        plate = variable.plate
        binder = Binder(
            variable.coords,
            variable.name,
            plate,
            plate,
            self.size,
            event_dim=variable.event_dims[-1],
            dims=variable.dims,
        )
        self.inputs = self._inputs(inputs, parameters.get("B"))
        self.first_step = self._given_steps(step)
        self.step = self._steps()
        self.least_step = float(self.step.min(initial=1.0))
        start = _start(variable.name, parameters.pop("init"))
        given = {"init mu": start["mu"], "init tau": start["tau"], **parameters}
        given = {name: value for name, value in given.items() if value is not None}
        bound = binder.parameters(given)
        self.parameters = {name: by_sequence(value, self) for name, value in bound.items()}
        self.slots: dict[str, Slot] = {
            "init mu": binder.slot("init mu", self.parameters["init mu"], families.MvNormal),
            "init tau": self._tau(binder, "init tau"),
        }
        self.selector: Slot | None = None
        self.chooser: Expression | DiagonalMatrix | None = None
        self.components, self.component_axis = 1, None
        if switch is not None:
            self.chooser = binder.parameters({"switch": switch})["switch"]
            self.selector = binder.slot("switch", self.chooser, families.Categorical)
            axis, self.components = component_axis(variable, self.selector)
            rows = Grid((*plate.labels, axis), (*plate.shape, self.components))
            binder, self.component_axis = replace(binder, rows=rows), axis
        self.scope = binder.scope
        columns = {"A": self.size} | ({"B": self.inputs.shape[1]} if "B" in given else {})
        self.matrices = {name: self._coefficients(binder, name, n) for name, n in columns.items()}
        self.width = sum(columns.values())
        self.slots |= self.matrices
        self.slots["tau"] = self._tau(replace(binder, length=self.moving), "tau")
        self.transition_slots = (*self.matrices, "tau")
        if self.component_axis is not None and self.components > 1:
            slots = [self.slots[name] for name in self.transition_slots]
            check_components(
                variable.name, self.factor, (self.component_axis, self.components), (), slots
            )
        self._check_parents()

    @property
    def title(self) -> str:
        """Name of the density, for people."""
        name = "LinearGaussianChain"
        return name if self.selector is None else f"{name} with {self.components} dynamics"

    @property
    def has_diagonal_precision(self) -> bool:
        """Whether E[tau] is diagonal, so that the rows of A and B are independent."""
        slot = self.slots["tau"]
        if isinstance(slot, Fixed):
            size = self.moving
            values = slot.statistics.values[..., :-1]
            return not (values.reshape(-1, size, size) * (1 - np.eye(size))).any()
        return isinstance(slot, Diagonal) or self.moving == 1

    def _check_parents(self) -> None:
        """Refuse a variable that is in two parameters."""
        slots = [*self.slots.values(), *([] if self.selector is None else [self.selector])]
        names = [v.name for slot in slots for v in slot.variables]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ModelError(
                f"'{twice[0]}' is in two parameters of '{self.variable.name}'; declare one for each"
            )

    # --- constants ----------------------------------------------------------------------------

    def _inputs(self, inputs: Any, B: Any) -> Array:
        name, rows = self.variable.name, self.variable.size
        if (inputs is None) != (B is None):
            raise ModelError(f"'{name}' needs both B and its inputs u, or neither")
        if inputs is None:
            return np.zeros((rows, 0))
        found = array(inputs)
        if found is None or found.dtype.kind not in "biuf" or not np.isfinite(found).all():
            raise ModelError(f"u of '{name}' must be finite numbers, not {shown(inputs)}")
        found = found[:, None] if found.ndim == 1 else found
        if found.ndim != 2 or len(found) != rows or not found.shape[1]:
            raise ModelError(
                f"u of '{name}' has shape {found.shape}; it needs a line of inputs for each of the "
                f"{rows} rows"
            )
        check_size(float(np.abs(found).max()))
        return np.array(found, dtype=np.float64)

    def _given_steps(self, step: Any) -> Array:
        name, rows = self.variable.name, self.variable.size
        if step is None:
            return np.ones(rows)
        found = array(step)
        if found is None or found.dtype.kind not in "iuf" or found.shape not in ((), (rows,)):
            raise ModelError(
                f"step of '{name}' must be a number or one for each of the {rows} rows, not "
                f"{shown(step)}"
            )
        return np.array(np.broadcast_to(found, (rows,)), dtype=np.float64)

    def _steps(self) -> Array:
        name, values = self.variable.name, self.first_step.copy()
        values[self.sequences.firsts] = 1.0  # no step leads to a first row
        if not is_step(values).all():
            row = int(np.argmin(is_step(values)))
            raise ModelError(
                f"step of '{name}' is {values[row]:g} at row {row}; the time since the row before "
                "must be positive (rows out of order? give order=)"
            )
        return values

    # --- slots --------------------------------------------------------------------------------

    def _tau(self, binder: Binder, parameter: str) -> Slot:
        """Return the slot of a precision matrix; numbers and Gammas are those of a diagonal."""
        value = self.parameters[parameter]
        if not isinstance(value, DiagonalMatrix):
            known = plain(value)
            gammas = [o.variable.family.precision == "number" for o in _operands(value)]
            matrix = known is not None and known.values.shape[-2:] == (binder.length,) * 2
            if (known is None and gammas and all(gammas)) or (known is not None and not matrix):
                self.parameters[parameter] = value = DiagonalMatrix(self._by_row(value))
        return binder.slot(parameter, value, families.Wishart)

    def _by_row(self, value: Expression) -> Expression:
        """Let plain keys have the axis of the rows, and not that of the vectors."""
        (row,) = self.variable.plate.labels

        def named(place: Index) -> Index:
            if isinstance(place, Labelled) and place.axes == (None,):
                return Labelled(place.values, (row,))
            return place

        def term(given: Term) -> Term:
            operands = (Operand(o.variable, tuple(map(named, o.index))) for o in given.operands)
            return replace(given, operands=tuple(operands))

        return Sum(tuple(map(term, value.terms)))

    def _coefficients(self, binder: Binder, parameter: str, columns: int) -> Coefficients:
        value, shape = self.parameters[parameter], (self.moving, columns)
        with binder.about(parameter):
            if isinstance(value, DiagonalMatrix):
                if parameter == "B" and columns != self.size:
                    raise ModelError("a diagonal matrix needs as many inputs as states")
                return self._diagonal_matrix(binder, value.entries, shape)
            known = plain(value)
            if known is not None:
                return self._fixed_matrix(binder, known, parameter, shape)
            return self._random_matrix(binder, value, shape)

    def _fixed_matrix(
        self, binder: Binder, known: Labelled, parameter: str, shape: tuple[int, int]
    ) -> FixedMatrix:
        values, axes = np.asarray(known.values, dtype=np.float64), known.axes
        if sparse.issparse(known.values) or not np.isfinite(values).all():
            raise ModelError("it holds NaN or infinity")
        if values.ndim == 0 and parameter == "A":
            values, axes = values * np.eye(self.size), (None, None)
        if values.shape[-2:] != shape:
            raise ModelError(f"its last axes must have shape {shape}, not {values.shape}")
        check_size(largest(known))
        found = binder.scope.align(Labelled(values, axes[:-2]), binder.plate)
        return FixedMatrix(found, binder.scope, shape)

    def _random_matrix(
        self, binder: Binder, value: Expression, shape: tuple[int, int]
    ) -> MatrixRows:
        operand = _one_operand(value, families.MvNormal)
        variable, index = operand.variable, operand.index
        cut = len(variable.plate.labels)
        if self.moving == 1 and not cut and variable.shape == shape[1:]:
            scope = Scope(binder.rows, Grid((), ()))
            return MatrixRows(Reader.of(Operand(variable, ()), scope, binder.plate), None, shape)
        full = cut > 0 and isinstance(index[cut - 1], str) and index[cut:] == variable.event_dims
        if not full or (variable.shape[cut - 1], variable.shape[-1]) != shape:
            raise ModelError(
                f"the last two dims of '{variable.name}' are those of the matrix, and must have "
                f"lengths {shape}; they have {variable.shape[-2:]}"
            )
        axis = unused(ROW, binder.rows.labels)
        places = (*index[: cut - 1], axis)
        scope = Scope(binder.rows, Grid((axis,), (shape[0],)))
        reader = Reader.of(Operand(variable, places), scope, binder.plate)
        return MatrixRows(reader, axis, shape)

    def _diagonal_matrix(
        self, binder: Binder, entries: Expression, shape: tuple[int, int]
    ) -> Coefficients:
        known = plain(entries)
        if known is not None:
            values = np.asarray(known.values, dtype=np.float64)
            if values.ndim and values.shape[-1] not in (1, self.size):
                raise ModelError(f"its diagonal must have {self.size} entries, not {values.shape}")
            full = values[..., None] * np.eye(self.size) if values.ndim else values
            axes = (*known.axes, None) if values.ndim else ()
            return self._fixed_matrix(binder, Labelled(np.asarray(full), axes), "A", shape)
        operand = _one_operand(entries, families.Normal)
        dim, axis = binder.event_dim, unused(ENTRY, binder.rows.labels)
        places = tuple(axis if place == dim else place for place in operand.index)
        scope = Scope(binder.rows, Grid((axis,), (self.size,)))
        around = Grid((*binder.plate.labels, axis), (*binder.plate.shape, self.size))
        keyed = any(isinstance(p, Labelled) and p.axes.count(None) for p in places)
        plate = binder.plate if keyed else around
        reader = Reader.of(Operand(operand.variable, places), scope, plate)
        return DiagonalEntries(reader, axis, shape)


def is_step(values: Array) -> Bools:
    """Return which numbers can multiply a covariance."""
    return np.asarray((values > 1e-100) & (values < 1e100))


def _operands(value: Expression) -> list[Operand]:
    return [operand for term in value.terms for operand in term.operands]


def _one_operand(value: Expression, kind: type[families.Normal | families.MvNormal]) -> Operand:
    """Return the variable of an expression that is one variable, as it is."""
    wanted = (
        "a matrix of coefficients needs numbers, an MvNormal whose elements are its rows, or "
        "svmp.diag of a Normal"
    )
    term: Term
    (term, *more) = value.terms
    check_parents(term, (kind,), wanted)
    other = term.constants or term.scale != 1 or term.summed or term.design is not None
    if more or len(term.operands) != 1 or other:
        raise ModelError(f"it is a sum or a product; {wanted}")
    return term.operands[0]


def _start(name: str, init: Any) -> dict[str, Any]:
    """Return mean and precision of the first state."""
    if isinstance(init, Component) and isinstance(init.factor, factors.MvNormal):
        return dict(init.parameters)
    if isinstance(init, Component) and isinstance(init.factor, factors.Normal):
        return dict(init.parameters)
    raise ModelError(
        f"init of '{name}' must be the density of the first state, as "
        f"svmp.MvNormal.dist(mu=0, tau=np.eye(2)), not {shown(init)}"
    )

"""The rows of a density in the form that loops read: which densities have one, sorted keys, means.

Loops serve Normals, and Bernoullis with a logit, whose mean or logit is a sum of products with each
variable in one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from svmp import factors
from svmp.families.family import Array
from svmp.kernels.machine.simd import EIGHT
from svmp.kernels.machine.sorting import by_key, take
from svmp.kernels.machine.threads import STREAM, share, threads_for
from svmp.kernels.multilinear import terms
from svmp.kernels.multilinear.table import (
    Column,
    Keyed,
    Numbers,
    Precision,
    is_centred,
    place_of,
    precision_of,
    side_by_side,
    stride,
)
from svmp.kernels.multilinear.terms import ALL, OWN, ROW, LoopRows, Mean
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import Conditional
from svmp.network.grid import Ints
from svmp.network.means.linear import Linear, LinearTerm, dimension
from svmp.network.partly_known import PartlyKnown
from svmp.network.reader import Reader
from svmp.network.slot import Single

FEW = 8
"""Where there are more keys than this many times the rows, only keys of these rows are packed."""
CACHED_ROWS = 1024
"""Most rows whose keys and coefficients are kept for the next call."""


@dataclass(frozen=True, eq=False)
class LoopOperand:
    """A variable in a term; element key * width + k is in slot k of a key."""

    reader: Reader
    term: int
    width: int
    column: int

    @property
    def name(self) -> str:
        return self.reader.variable.name


@dataclass(frozen=True, eq=False)
class LoopTable:
    """The rows of one conditional density, and what their mean is made of.

    Attributes
    ----------
    operands
        The variables of all terms, in the order of the terms.
    columns
        The different keys of the table's rows.
    present
        The rows of the table that count; None for all.
    """

    FACTORS: ClassVar[tuple[type, ...]] = (factors.Normal, factors.BernoulliLogit)
    conditional: Conditional
    present: Ints | None
    linear: Linear
    terms: tuple[LinearTerm, ...]
    operands: tuple[LoopOperand, ...]
    columns: tuple[Column, ...]
    intercept: float

    @classmethod
    def why_not(cls, conditional: Conditional) -> str | None:
        """Return why the loops do not serve a density, or None if they do."""
        if conditional.selector is not None:
            return "they are a mixture"
        if not isinstance(conditional.factor, cls.FACTORS):
            return "they are not Normal, nor Bernoulli with a logit"
        if conditional.linear is None:
            return "their mean is not a sum of products"
        if conditional.pools:
            return "they are pooled, since many have the same parameters"
        if conditional.variable.size >= 2**31:
            return "there are more than 2^31"
        terms = [t for t in conditional.linear.terms if not is_number(t)]
        variables = [conditional.variable, *(r.variable for t in terms for r in t.readers)]
        if any(isinstance(v.family, PartlyKnown) for v in variables):
            return "one of their variables is observed in part"
        names = [r.variable.name for t in terms for r in t.readers]
        if len(set(names)) < len(names):
            return "a variable stands in their mean twice"
        if any(is_grid(term, conditional) for term in terms):
            return "their rows are all combinations of three plates: products of matrices"
        if not terms or not all(map(cls.serves, terms)):
            return "a term of their mean is not a product of Normals over one axis"
        return None

    @classmethod
    def of(cls, conditional: Conditional, present: Ints | None) -> Self | None:
        """Return the loops of a density, or None if they do not serve it."""
        linear = conditional.linear
        if linear is None or cls.why_not(conditional) is not None:
            return None
        terms = tuple(t for t in linear.terms if not is_number(t))
        columns: list[Column] = []
        operands = []
        for number, term in enumerate(terms):
            for reader in term.readers:
                width = term.scope.inner.size if reader.carried else 1
                column = place_of(Column.of(reader, width), columns)
                operands.append(LoopOperand(reader, number, width, column))
        intercept = sum((t.scale for t in linear.terms if is_number(t)), 0.0)
        found = (linear, terms, tuple(operands), tuple(columns), intercept)
        return cls(conditional, present, *found)

    @classmethod
    def serves(cls, term: LinearTerm) -> bool:
        """Whether a term is a product, perhaps with a coefficient, summed over at most one axis."""
        slots = term.scope.inner.labels
        if term.design is not None or len(slots) > 1 or not term.scope.inner.size:
            return False
        if any(set(slots) & set(map(str, c.axes)) for c in term.constants):
            return False
        plain = bool(term.readers) and not any(r.keyed_by_inner for r in term.readers)
        return plain and all(cls.reads(r, slots) for r in term.readers)

    @staticmethod
    def reads(reader: Reader, slots: tuple[str, ...]) -> bool:
        """Whether an operand has one Normal for each slot."""
        every = reader.carried == set(slots) and (not slots or reader.index[-1] == slots[0])
        return dimension(reader.variable) == 1 and every

    @property
    def table(self) -> str:
        """Name of the variable whose rows these are."""
        return self.conditional.variable.name

    @cached_property
    def logit(self) -> bool:
        """Whether the rows are Bernoullis, and the mean is their logit."""
        return isinstance(self.conditional.factor, factors.BernoulliLogit)

    def operand(self, name: str) -> LoopOperand:
        """Return the operand of that name."""
        return next(o for o in self.operands if o.name == name)

    @cached_property
    def precision(self) -> Precision:
        """The precision in which rows are read: single if all of their numbers allow it."""
        variable = self.conditional.variable
        found = precision_of(variable)
        if found is np.float32:
            rows = np.arange(0, variable.size, stride(variable.size))
            for line in self.coefficients(rows, np.float64):
                if not (is_centred(line) or np.all(line == line[:1])):
                    return np.float64
        return found

    def packed_width(self, term: LinearTerm) -> int:
        """Return the number of means that the loops read of each key: K padded to eights, or 1."""
        width = term.scope.inner.size
        return width if width == 1 else -(-width // EIGHT) * EIGHT

    def packed_size(self, term: LinearTerm) -> int:
        """Return the number of floats that they read of each key of a term's operands."""
        return 2 * self.packed_width(term)

    def pack(self, moments: Array, operand: LoopOperand, centred: bool, out: Numbers) -> None:
        """Write K means and then K variances of each key of an operand."""
        padded = self.packed_width(self.terms[operand.term])
        with threads_for(out.size // (4 * STREAM)):  # eight at a time
            share(terms.pack, moments, operand.width, padded, out)

    def mean(
        self,
        q: Beliefs,
        own: int | None,
        dtype: Precision,
        without: str | None = None,
        only: list[Ints] | None = None,
        centred: str | None = None,
    ) -> Mean:
        """Return the mean as the loops read it, for rows by the key of one column.

        The moments of one operand can be left out, since its own update does not need them. With
        `only`, the moments of some keys of each column are packed, renumbered from 0. The second
        moments of one vector can be `centred`: covariances.
        """
        keys = [c.size for c in self.columns] if only is None else list(map(len, only))
        sizes = [
            0 if o.name == without else self.packed_size(self.terms[o.term]) * keys[o.column]
            for o in self.operands
        ]
        packed, starts = side_by_side(sizes, dtype)
        for operand, size, start in zip(self.operands, sizes, starts, strict=True):
            if size:
                moments = q.moments[operand.name]
                if only is not None:
                    lines = moments.reshape(self.columns[operand.column].size, -1)
                    moments = lines[only[operand.column]].reshape(-1, moments.shape[1])
                about_mean = operand.name == centred
                self.pack(moments, operand, about_mean, packed[start : start + size])
        if (own, dtype) not in self._layouts:
            self._layouts[own, dtype] = self.layout(own, dtype)
        return Mean(*(packed, starts, *self._layouts[own, dtype], centred is not None))

    @cached_property
    def _layouts(self) -> dict[tuple[int | None, Precision], tuple[Any, ...]]:
        return {}

    def layout(self, own: int | None, dtype: Precision) -> tuple[Any, ...]:
        """Return the fields of a mean other than the moments, for rows by the key of one column."""
        scaled = np.array([bool(t.constants) for t in self.terms])
        return (
            np.array([self.line(o.column, own) for o in self.operands]),
            np.searchsorted([o.term for o in self.operands], np.arange(len(self.terms) + 1)),
            np.array([self.packed_width(t) for t in self.terms]),
            np.array([self.packed_size(t) for t in self.terms]),
            np.where(scaled, np.cumsum(scaled) - 1, -1),
            np.array([1.0 if t.constants else t.scale for t in self.terms], dtype=dtype),
            self.intercept,
        )

    def keyed(self, column: int, rows: Ints | None = None) -> Keyed:
        """Sort rows, or all of the table, by the key of a column."""
        variable = self.conditional.variable
        if rows is None:
            rows = self.present
        key = take(self.columns[column].key, rows)
        pointers, order = by_key(key, self.columns[column].size)
        if order is not None:
            rows = order if rows is None else rows[order]
        target = None
        if variable.observed is not None:
            target = take(variable.observed, rows, self.precision)
        others = [c for i, c in enumerate(self.columns) if i != column]
        lines = np.empty((len(others), len(key)), dtype=np.int32)
        for line, other in zip(lines, others, strict=True):
            line[:] = take(other.key, rows)
        numbers = np.arange(variable.size) if rows is None else rows
        coefficients = self.coefficients(numbers, self.precision)
        return Keyed(rows, pointers[:-1], pointers[1:], lines, target, coefficients)

    def coefficients(self, rows: Ints, dtype: Precision) -> Numbers:
        """Return the coefficients of the terms that have some, (terms, rows)."""
        terms = [t for t in self.terms if t.constants]
        lines = np.empty((len(terms), len(rows)), dtype=dtype)
        for line, term in zip(lines, terms, strict=True):
            line[:] = term.scale
            for array in term.constants:
                line *= term.scope.look_up(array, rows, np.zeros_like(rows))
        return lines

    @cached_property
    def _sorted(self) -> dict[int, Keyed]:
        return {}

    def all_rows(self, column: int) -> Keyed:
        """Return all rows by the key of a column, sorted once."""
        if column not in self._sorted:
            self._sorted[column] = self.keyed(column)
        return self._sorted[column]

    def share_sorted(self, other: LoopTable) -> None:
        """Take the order of the rows from another table with the same keys; values are its own."""
        same = len(self.columns) == len(other.columns) and self.precision is other.precision
        whole = self.present is None and other.present is None
        constant = not any(t.constants for t in (*self.terms, *other.terms))
        pairs = zip(self.columns, other.columns, strict=False)
        if same and whole and constant and all(place_of(a, [b]) == 0 for a, b in pairs):
            self._sorted.update(other._sorted)
            self.reread()

    def reread(self) -> None:
        """Read the observed values again, after they were replaced; the order of rows stays."""
        values = self.conditional.variable.observed
        for column, keyed in self._sorted.items():
            if values is not None:
                target = take(values, keyed.rows, self.precision)
                self._sorted[column] = replace(keyed, target=target)

    def rows(self, q: Beliefs, keyed: Keyed, keys: Ints, column: int) -> LoopRows:
        """Return the rows of some keys of a column as the loops read them."""
        target, variable = keyed.target, self.conditional.variable
        every = slice(None) if keyed.rows is None else keyed.rows
        if target is None:
            target = np.ascontiguousarray(q.moments[variable.name][every, 0])
        places = keyed.begin, keyed.end
        if len(keys) < len(keyed.begin):
            places = keyed.begin[keys], keyed.end[keys]
        weights = self.weights(q, keyed, column)
        return LoopRows(*places, keyed.columns, target, keyed.coefficients, *weights, self.logit)

    def weights(
        self, q: Beliefs, keyed: Keyed, column: int, dtype: Precision | None = None
    ) -> tuple[Numbers, int]:
        """Return precisions, and what they are indexed by; the loops compute those of logits."""
        slot, dtype = self.conditional.slots.get("tau"), dtype or self.precision
        if slot is None:
            return np.ones(1, dtype=dtype), ALL
        if not (slot.varies or slot.variables):
            return self._weight.astype(dtype, copy=False), ALL
        if not slot.varies:
            tau, weigher = slot.moments(q, np.zeros(1, dtype=np.int64)), ALL
        elif isinstance(slot, Single) and self.noise is not None:
            tau, weigher = q.moments[slot.reader.variable.name], self.line(self.noise, column)
        else:
            rows = np.arange(self.conditional.variable.size) if keyed.rows is None else keyed.rows
            tau, weigher = slot.moments(q, rows), ROW
        return tau[:, 0].astype(dtype), weigher

    @cached_property
    def _weight(self) -> Array:
        """The precision of all rows, where it is a known constant."""
        tau = self.conditional.slots["tau"].moments(Beliefs(), np.zeros(1, dtype=np.int64))
        return np.ascontiguousarray(tau[:, 0])

    @staticmethod
    def line(column: int, own: int | None) -> int:
        """Return the line of a column among the keys of rows that are sorted by column `own`."""
        if column == own:
            return OWN
        return column if own is None or column < own else column - 1

    def look_up_once(self, rows: Ints) -> tuple[LoopRows, list[Ints] | None]:
        """Return `look_up(rows)`, cached for the last few rows that were asked for.

        The guard of a run asks for the same rows in every iteration.
        """
        if len(rows) > CACHED_ROWS:
            return self.look_up(rows)
        name = rows.tobytes()
        found = self._looked_up.get(name)
        if found is None:
            found = self.look_up(rows)
            self._looked_up.clear()
            self._looked_up[name] = found
        return found

    @cached_property
    def _looked_up(self) -> dict[bytes, tuple[LoopRows, list[Ints] | None]]:
        return {}

    def look_up(self, rows: Ints) -> tuple[LoopRows, list[Ints] | None]:
        """Return some rows as the loops read them, and their keys if these are few."""
        columns, only = np.stack([c.key[rows] for c in self.columns]), None
        if FEW * len(rows) < max(c.size for c in self.columns):
            found = [np.unique(line, return_inverse=True) for line in columns]
            only = [keys for keys, _ in found]
            columns = np.stack([places.astype(np.int32) for _, places in found])
        lines = self.coefficients(rows, np.float64)
        no_keys, unused = np.zeros(0, dtype=np.int64), np.zeros(1)
        return LoopRows(no_keys, no_keys, columns, unused, lines, unused, ALL, self.logit), only

    @cached_property
    def noise(self) -> int | None:
        """Key column that the noise varies by; any if it is constant; None if unsupported."""
        slot = self.conditional.slots.get("tau")
        if self.conditional.variable.observed is None:
            return None
        if slot is None or not slot.varies:
            return int(np.argmax([c.size for c in self.columns]))
        if not isinstance(slot, Single):
            return None
        columns = [*self.columns]
        found = place_of(Column.of(slot.reader, 1), columns)
        return found if found < len(self.columns) else None


def is_grid(term: LinearTerm, conditional: Conditional) -> bool:
    """Whether plain code computes a product of three vectors or more as products of matrices.

    The table must be short enough that plain code reads all of its rows at once.
    """
    table = conditional.variable
    if len(term.readers) <= 2 or table.present is not None or table.size > conditional.chunk(1):
        return False
    return term.regular is not None and term.regular.table_product is not None


def is_number(term: LinearTerm) -> bool:
    """Whether a term is a constant number."""
    return not term.readers and not term.constants and term.design is None

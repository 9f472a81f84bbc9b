"""The multilinear loops of one density: updates (equation (6) of the paper), sums and bounds.

They serve Normals, and Bernoullis with a logit, whose mean or logit is a sum of products with each
variable in one of them. `inference/program.py` decides where they are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from svmp import factors
from svmp.families.family import Array, stack
from svmp.families.normal import LOG_2PI
from svmp.kernels.machine.simd import EIGHT
from svmp.kernels.machine.sorting import by_key, take
from svmp.kernels.machine.threads import STREAM, share, threads_for
from svmp.kernels.multilinear import residuals, terms
from svmp.kernels.multilinear import update as loops
from svmp.kernels.multilinear.drawn import update_drawn
from svmp.kernels.multilinear.solve import solve_keys, sums_of_keys
from svmp.kernels.multilinear.table import (
    Column,
    Keyed,
    Numbers,
    Precision,
    is_centred,
    place_of,
    plain,
    precision_of,
    side_by_side,
    stride,
)
from svmp.kernels.multilinear.terms import ALL, OWN, ROW, LoopRows, Mean, Receiver
from svmp.kernels.multilinear.update import LONG
from svmp.kernels.multilinear.work import Work
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import Conditional
from svmp.network.grid import Ints
from svmp.network.linear import Linear, LinearTerm, dimension
from svmp.network.reader import Reader
from svmp.network.slot import Single

FEW = 8
"""Where there are more keys than this many times the rows, only keys of these rows are packed."""
ONE, NO_PRIOR = np.ones(1), np.zeros((1, 2))
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
class Multilinear:
    """The loops of one conditional density.

    Attributes
    ----------
    operands
        The variables of all terms, in the order of the terms.
    columns
        The different keys of the table's rows.
    present
        The rows of the table that count; None for all.
    """

    draws: ClassVar[bool] = True  # its loops draw rows for each element
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
        names = [r.variable.name for t in terms for r in t.readers]
        if len(set(names)) < len(names):
            return "a variable stands in their mean twice"
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

    def pack(self, moments: Array, operand: LoopOperand, out: Numbers) -> None:
        """Write K means and then K second moments of each key of an operand."""
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
    ) -> Mean:
        """Return the mean as the loops read it, for rows by the key of one column.

        The moments of one operand can be left out, since its own update does not need them. With
        `only`, the moments of some keys of each column are packed, renumbered from 0.
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
                self.pack(moments, operand, packed[start : start + size])
        if (own, dtype) not in self._layouts:
            self._layouts[own, dtype] = self.layout(own, dtype)
        return Mean(packed, starts, *self._layouts[own, dtype])

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

    def weights(self, q: Beliefs, keyed: Keyed, column: int) -> tuple[Numbers, int]:
        """Return precisions, and what they are indexed by; the loops compute those of logits."""
        slot = self.conditional.slots.get("tau")
        if slot is None:
            return np.ones(1, dtype=self.precision), ALL
        if not (slot.varies or slot.variables):
            return self._weight, ALL
        if not slot.varies:
            tau, weigher = slot.moments(q, np.zeros(1, dtype=np.int64)), ALL
        elif isinstance(slot, Single) and self.noise is not None:
            tau, weigher = q.moments[slot.reader.variable.name], self.line(self.noise, column)
        else:
            rows = np.arange(self.conditional.variable.size) if keyed.rows is None else keyed.rows
            tau, weigher = slot.moments(q, rows), ROW
        return tau[:, 0].astype(self.precision), weigher

    @cached_property
    def _weight(self) -> Numbers:
        """The precision of all rows, where it is a known constant."""
        tau = self.conditional.slots["tau"].moments(Beliefs(), np.zeros(1, dtype=np.int64))
        return tau[:, 0].astype(self.precision)

    @staticmethod
    def line(column: int, own: int | None) -> int:
        """Return the line of a column among the keys of rows that are sorted by column `own`."""
        if column == own:
            return OWN
        return column if own is None or column < own else column - 1

    def moments(self, q: Beliefs, rows: Ints) -> Array:
        """E[mu] and E[mu^2] of each row."""
        table, only = self.look_up_once(rows)
        with threads_for(len(rows)):
            return self.row_moments(table, self.mean(q, None, np.float64, only=only))

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

    def row_moments(self, rows: LoopRows, mean: Mean) -> Array:
        """Return `moments` of rows in the form of the loops."""
        out = np.empty((rows.columns.shape[1], 2))
        share(residuals.row_moments, rows, mean, out)
        return out

    def losses(self, q: Beliefs, keyed: Keyed, column: int) -> Array:
        """Sum over the rows of each key of E[(y - mu)^2], or of minus E[log p] of logits."""
        keys = np.arange(len(keyed.begin))
        rows, mean = self.rows(q, keyed, keys, column), self.mean(q, column, np.float64)
        with threads_for(rows.columns.shape[1] * len(self.operands)):
            return self.row_losses(rows, mean, keys)

    def row_losses(self, rows: LoopRows, mean: Mean, keys: Ints) -> Array:
        """Return `losses` of rows in the form of the loops."""
        out = np.empty(len(keys))
        share(residuals.losses, rows, mean, keys, out)
        return out

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

    def bound_term(self, q: Beliefs) -> float:
        """E[log p(y | parents)] of all rows, where the noise is constant or varies by a key."""
        assert self.noise is not None
        keyed = self.all_rows(self.noise)
        losses, counts = self.losses(q, keyed, self.noise), keyed.end - keyed.begin
        if self.logit:
            return -float(losses.sum())
        slot = self.conditional.slots["tau"]
        if isinstance(slot, Single) and slot.varies:
            tau = q.moments[slot.reader.variable.name]
        else:
            tau = slot.moments(q, np.zeros(1, dtype=np.int64))
        each = counts * (tau[:, 1] - LOG_2PI) - tau[:, 0] * losses
        return 0.5 * float(each.sum())

    def noise_messages(self, q: Beliefs, keyed: Keyed) -> Array:
        """Return the messages of the rows to their precision: one, or one for each key."""
        assert self.noise is not None
        squares = self.losses(q, keyed, self.noise)
        message = stack(-0.5 * squares, 0.5 * (keyed.end - keyed.begin))
        return message if self.conditional.slots["tau"].varies else message.sum(axis=0)[None]

    def accesses(self, operand: LoopOperand, work: Work) -> int:
        """Return the cost of an update, in units of one random access to a row.

        Rows that are not drawn in the loop are read once for all elements of a key.
        """
        alone = work.drawn is not None
        each = operand.width if alone else len(self.operands) - 1 + operand.width // STREAM
        return int(work.read.sum()) * max(each, 1)

    def place(self, name: str) -> tuple[int, int, int]:
        """Return the term of a variable, its index among all operands, and its K."""
        operand = self.operand(name)
        return operand.term, self.operands.index(operand), operand.width

    def reading(self, q: Beliefs, name: str, work: Work) -> tuple[LoopRows, Mean]:
        """Return the rows of some keys, and the mean as the loops of a variable read it."""
        column = self.operand(name).column
        without = None if self.logit else name
        mean = self.mean(q, column, self.precision, without)
        return self.rows(q, work.keyed, work.keys, column), mean

    def receiver(self, name: str, keys: Ints, prior: Array) -> Receiver:
        """Return the receiver of a unit step of all elements of a key together."""
        return Receiver(*self.place(name), keys, ONE, ONE, plain(prior), True, True)

    def sums(self, q: Beliefs, name: str, work: Work) -> Array:
        """Return the sums over the rows of each key; sums of disjoint sets of rows add."""
        to = self.receiver(name, work.keys, NO_PRIOR)
        return sums_of_keys(to, *self.reading(q, name, work))

    def solve(self, name: str, sums: Array, prior: Array) -> Array:
        """Return lambda_temp of all elements from the sums of all keys, jointly for each key."""
        to = self.receiver(name, np.arange(len(sums)), prior)
        natural, moments = np.zeros((2, len(sums) * to.width, 2))
        solve_keys(to, sums, natural, moments)
        return natural

    def update(
        self,
        q: Beliefs,
        name: str,
        work: Work,
        prior: Array,
        rho: Array,
        at_once: bool,
        joint: bool,
    ) -> tuple[Array, bool]:
        """Update elements; return the natural parameters, and whether all are in their domain.

        The array is q's own if `at_once`, else a copy.
        """
        operand = self.operand(name)
        natural = q.natural[name] if at_once else q.natural[name].copy()
        rows, mean = self.reading(q, name, work)
        place = self.place(name)
        to = Receiver(*place, work.keys, work.scale, rho, plain(prior), at_once, joint)
        sound = np.ones(len(work.keys), dtype=bool)
        with threads_for(self.accesses(operand, work)):
            loop = (rows, mean, natural, q.moments[name], sound)
            if work.drawn is not None:
                share(update_drawn, to, work.drawn, *loop)
            else:
                share(loops.update_whole, to, *loop)
        if work.keyed.longest > LONG:
            long = rows.end - rows.begin > LONG
            if work.drawn is not None:
                long &= rows.end - rows.begin <= work.drawn.most
            for m in np.flatnonzero(long):
                sound[m] = loops.update_long(to, int(m), rows, mean, natural, q.moments[name])
        return natural, bool(sound.all())


def is_number(term: LinearTerm) -> bool:
    """Whether a term is a constant number."""
    return not term.readers and not term.constants and term.design is None

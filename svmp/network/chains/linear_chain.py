"""The density of a chain of vectors: x_1 ~ N(m, P^-1), x_t ~ N(A x_(t-1) + B u_t, (tau / s_t)^-1).

The formulas of a transition are in transition.py, those of random matrices in coefficients.py. Rows
whose transitions have the same parameters belong to one group, and the moments of their pairs are
added up before anything else is computed.

If a Categorical or a chain of states z switches between dynamics, each row has a sub-row for each
of its categories, with the probability q(z_t = k) as its weight: q factorises between the two.

Beside its marginals, q of a sequence is determined by `cross`, Cov[x_t, x_(t-1)] of each row.
`log_det` has the terms of its entropy: see kernels/chains/dynamics.py. Where steps are small beside
states and A is known, `steps` has Cov[x_t - A x_(t-1)] of each row: see disturbances.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.families.family import Array, dot
from svmp.families.matrix import inverse, log_det
from svmp.families.normal import LOG_2PI
from svmp.network.beliefs import Beliefs
from svmp.network.chains import disturbances, transition
from svmp.network.chains.chain import Reads
from svmp.network.chains.continuing import Continued
from svmp.network.chains.linear_chain_parameters import LinearChainParameters, is_step
from svmp.network.chains.transition import Entries, Pairs
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints
from svmp.network.means.coefficients import Coefficients, FixedMatrix
from svmp.network.means.row_sums import sum_by_owner
from svmp.network.slot import Slot


class LinearChain(LinearChainParameters):
    """The density of a chain of vectors given its parameters."""

    # --- parameters of groups of rows -----------------------------------------------------------

    @cached_property
    def _groups(self) -> tuple[Ints, Ints]:
        """A row of each group, and the group of each row."""
        size = self.variable.size
        codes = [self._codes(self.slots[name]) for name in self.transition_slots]
        known = [code for code in codes if code is not None]
        if not known:
            return np.zeros(1, dtype=np.int64), np.zeros(size, dtype=np.int64)
        group = known[0]
        for code in known[1:]:
            group = np.unique(group * (code.max(initial=0) + 1) + code, return_inverse=True)[1]
            group = group.reshape(-1)
        _, example, group = np.unique(group, return_index=True, return_inverse=True)
        return example.astype(np.int64), group.reshape(-1).astype(np.int64)

    def _codes(self, slot: Slot) -> Ints | None:
        """Return a number for each row, the same where a parameter is; None if it never differs."""
        (row,) = self.variable.plate.labels
        if row not in slot.axes:
            return None
        first = np.arange(self.variable.size) * self.components
        if not slot.variables:
            values = slot.moments(Beliefs(), self.subrows(first // self.components))
            table: NDArray[Any] = values.reshape(len(first), -1)
        else:
            table = np.concatenate([self._table(slot, v, first) for v in slot.variables], axis=1)
            fixed = [a.values for a in slot.arrays if row in a.axes]
            table = np.concatenate([table, *(v.reshape(len(first), -1) for v in fixed)], axis=1)
        return np.unique(table, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)

    def _table(self, slot: Slot, parent: Symbol, rows: Ints) -> Ints:
        """Return the elements of a parent that each row reads, (rows, elements)."""
        elements, _ = slot.pairs(parent, rows)
        return elements.reshape(len(rows), -1)

    @property
    def group_count(self) -> int:
        """Number of groups of rows."""
        return len(self._groups[0])

    @cached_property
    def derived(self) -> dict[str, Any]:
        """What inference derives from its rows; the chain itself does not use it."""
        return {}

    @property
    def group(self) -> Ints:
        """The group of each row: those of one group have the same transition."""
        return self._groups[1]

    def coefficients(self, q: Beliefs, subrows: Ints) -> Array:
        """E[M] with M = (A, B) at some sub-rows."""
        parts = [self.matrices[name].mean(q, subrows) for name in self.matrices]
        return np.concatenate(parts, axis=2)

    @cached_property
    def known(self) -> Array | None:
        """(A, B) of each group where A is known, with 0 for a B that is not; None otherwise.

        Sums over transitions are then about x_t - A x_(t-1) - B u_t, not about x_t: `Pairs`.
        """
        A = self.matrices["A"]
        if self.selector is not None or self.moving < self.size or not isinstance(A, FixedMatrix):
            return None
        rows = self.subrows(self._groups[0])
        found = np.zeros((len(rows), self.size, self.width))
        for matrix, columns in self._columns():
            if isinstance(matrix, FixedMatrix):
                found[:, :, columns] = matrix.mean(Beliefs(), rows)
        return found

    def _unknown(self, q: Beliefs, subrows: Ints) -> Array:
        """E[M] less what of it is known, at some sub-rows."""
        if self.known is None:
            return self.coefficients(q, subrows)
        if all(isinstance(m, FixedMatrix) for m in self.matrices.values()):
            return np.zeros((1, self.moving, self.width))
        return np.asarray(self.coefficients(q, subrows) - self.known[self.group[subrows]])

    def precision(self, q: Beliefs, subrows: Ints) -> tuple[Array, Array]:
        """E[tau] and E[log|tau|] at some sub-rows."""
        found, size = self.slots["tau"].moments(q, subrows), self.moving
        return found[:, :-1].reshape(-1, size, size), found[:, -1]

    def start_moments(self, q: Beliefs, rows: Ints) -> dict[str, Array]:
        """Return the moments of mean and precision of the first state, at some rows."""
        return {
            "mu": self.slots["init mu"].moments(q, rows),
            "tau": self.slots["init tau"].moments(q, rows),
        }

    def by_group(self, q: Beliefs) -> tuple[Array, Array, Array]:
        """E[M], E[tau] and E[(A - E[A])' tau (A - E[A])] of each group and category.

        Their first axis has groups times categories.
        """
        subrows = self.subrows(self._groups[0])
        tau, _ = self.precision(q, subrows)
        mean = self.coefficients(q, subrows)
        pull = self.matrices["A"].pull(q, subrows, tau)
        return mean, tau, np.broadcast_to(pull, (len(tau), self.size, self.size))

    def whole_steps(self, mean: Array, tau: Array) -> tuple[Array, Array]:
        """Return A and the covariance of the steps of whole states, given E[M] and E[tau]."""
        A, noise = mean[..., : self.size], inverse(tau)
        if self.moving == self.size:
            return A, noise
        return transition.shifted(A), transition.only_first(noise, self.size)

    def _scatter(self, q: Beliefs, subrows: Ints, rr: Array) -> Array:
        """E[(M - E[M]) rr (M - E[M])'], as A and B are independent."""
        return sum(
            (m.scatter(q, subrows, rr[:, c, c]) for m, c in self._columns()),
            np.zeros((1, self.moving, self.moving)),
        )

    def _columns(self) -> list[tuple[Coefficients, slice]]:
        """Return each matrix and its columns in M."""
        found, end = [], 0
        for matrix in self.matrices.values():
            found.append((matrix, slice(end, end + matrix.shape[1])))
            end += matrix.shape[1]
        return found

    # --- q ----------------------------------------------------------------------------------------

    def check_continued(self, continued: Continued) -> None:
        super().check_continued(continued)
        rows = continued.first_rows(self.sequences)
        steps = self.first_step[rows]
        if not is_step(steps).all():
            place = int(np.argmin(is_step(steps)))
            raise ModelError(
                f"step of '{self.variable.name}' is {steps[place]:g} at row {rows[place]}, the "
                "first new row of a sequence that goes on; it must be the time since the last "
                f"row of the earlier fit (or say new=['{self.sequences.dim}'] to begin anew)"
            )

    def unlinked(self, natural: Array) -> dict[str, NDArray[np.generic]]:
        size = self.size
        tau = -2 * natural[:, size:].reshape(-1, size, size)
        return {"cross": np.zeros((len(natural), size, size)), "log_det": log_det(tau)}

    def declared_arrays(
        self, arrays: Mapping[str, NDArray[np.generic]]
    ) -> dict[str, tuple[tuple[int, ...], str]]:
        size, rows = self.size, self.variable.size
        found = {"cross": ((rows, size, size), "float64"), "log_det": ((rows,), "float64")}
        if "pairs" in arrays:
            found["pairs"] = ((len(self._groups[0]), self._line), "float64")
        if "steps" in arrays:
            found["steps"] = ((rows, size, size), "float64")
        return found | self.declared_more(arrays)

    def array_trouble(
        self, key: str, arrays: Mapping[str, NDArray[np.generic]]
    ) -> Callable[[NDArray[Any]], str | None]:
        def trouble(array: NDArray[Any]) -> str | None:
            sound = bool(np.isfinite(array).all())
            if key == "continues":
                sound = self.are_sequences(array)
            elif key == "before":
                sound = sound and bool(self.family.in_domain(array).all())
            return None if sound else "is not the q of a chain"

        return trouble

    @property
    def _line(self) -> int:
        return transition.line_size(self.moving, self.width)

    def pair_sums(self, q: Beliefs, present: Ints | None) -> Array:
        """Return the moments of all pairs of rows that count, summed by group and category.

        Without categories they are known since the chain was updated, if all of it was.
        """
        arrays = q.joint[self.variable.name]
        _, entered = self.first_rows(q, present)
        into = self.row_sums(q, entered) if len(entered) else 0.0
        if "pairs" in arrays and self.components == 1:
            return arrays["pairs"] + into
        return self.sum_pairs(q, *self._transitions(present)) + into

    def sum_pairs(self, q: Beliefs, rows: Ints, owner: Ints) -> Array:
        """Return the moments of some pairs, of groups in ascending order, by group and category."""
        total = np.zeros((len(self._groups[0]), self.components, self._line))
        step = self.chunk(self._line)
        for start in range(0, len(rows), step):
            some, who = rows[start : start + step], owner[start : start + step]
            first, last = int(who[0]), int(who[-1]) + 1
            lines = self._lines(q, some)
            for k in range(self.components):
                weighted = lines if self.selector is None else self._weight(q, some, k) * lines
                total[first:last, k] += sum_by_owner(weighted, who - first, last - first)
        return total.reshape(-1, self._line)

    def _weight(self, q: Beliefs, rows: Ints, k: int) -> Array:
        assert self.selector is not None
        return self.selector.moments(q, rows)[:, k, None]

    def _transitions(self, present: Ints | None) -> tuple[Ints, Ints]:
        """Return the rows that follow another and count, by group, and their groups."""
        key = None if present is None else id(present)
        if key not in self._sorted:
            rows = np.arange(self.variable.size) if present is None else present
            rows = rows[self.sequences.previous[rows] >= 0]
            rows = rows[np.argsort(self.group[rows], kind="stable")]
            self._sorted[key] = (rows, self.group[rows])
        return self._sorted[key]

    @cached_property
    def _sorted(self) -> dict[int | None, tuple[Ints, Ints]]:
        return {}

    def _lines(self, q: Beliefs, rows: Ints) -> Array:
        """Return the moments of a row and the one before it, for `Pairs`."""
        arrays, step = q.joint[self.variable.name], self.step[rows]
        moments = q.moments[self.variable.name]
        now, before = moments[rows], moments[self.sequences.previous[rows]]
        cross, inputs = arrays["cross"][rows], self.inputs[rows]
        kept = arrays["steps"][rows] if "steps" in arrays else None
        places, _ = self.entering(q, rows)
        if len(places):
            found = self.entries(q, rows[places])
            before[places], cross[places] = found.moments, found.cross
            step[places] = self.first_step[rows[places]]
            if kept is not None:
                kept[places] = found.steps
        if self.known is not None:
            matrix = self.known[self.group[rows]]
            now, cross = disturbances.moments(now, before, cross, matrix, inputs, kept)
        return transition.pair_lines(now, before, cross, inputs, step, self.moving)

    def entries(self, q: Beliefs, rows: Ints) -> Entries:
        """Return q(x_0 | x_1) at the first rows of sequences that go on from an earlier fit."""
        _, earlier = self.entering(q, rows)
        weight = (
            np.ones((len(rows), 1)) if self.selector is None else self.selector.moments(q, rows)
        )
        weight = weight / self.first_step[rows][:, None]
        mean, tau, pull = (
            part.reshape(-1, self.components, *part.shape[1:])[self.group[rows]]
            for part in self.by_group(q)
        )
        if self.moving < self.size:
            now, one = q.moments[self.variable.name][rows], weight[:, 0]
            return transition.lag_entries(earlier, now, one, mean[:, 0], tau[:, 0], pull[:, 0])
        return transition.entries(
            earlier, q.moments[self.variable.name][rows], weight, mean, tau, pull, self.inputs[rows]
        )

    def _pairs(self, lines: Array) -> Pairs:
        return Pairs.of(lines, self.moving, self.width)

    def _residual(self, q: Beliefs, subrows: Ints, pairs: Pairs) -> Array:
        mean, scatter = self._unknown(q, subrows), self._scatter(q, subrows, pairs.rr)
        return transition.residual(pairs, mean, scatter)

    def term(self, q: Beliefs, present: Ints | None) -> float:
        subrows, pairs = self.subrows(self._groups[0]), self._pairs(self.pair_sums(q, present))
        found = self._residual(q, subrows, pairs)
        density = transition.log_density(pairs, found, *self.precision(q, subrows)).sum()
        firsts, entered = self.first_rows(q, present)
        child = q.moments[self.variable.name][firsts]
        density += self.factor.log_density(child, self.start_moments(q, firsts)).sum()
        if len(entered):
            _, earlier = self.entering(q, entered)
            before = self.entries(q, entered)
            density += (dot(earlier, before.moments) - self.family.log_partition(earlier)).sum()
            density += 0.5 * (self.moving * (1 + LOG_2PI) * len(entered) - before.log_det.sum())
        log_dets = q.joint[self.variable.name]["log_det"]
        some = log_dets if present is None else log_dets[present]
        begun = len(firsts) + len(entered)
        entries = begun * self.size + (len(some) - begun) * self.moving
        entropy = 0.5 * (entries * (1 + LOG_2PI) - some.sum())
        return float(density + entropy)

    # --- messages ---------------------------------------------------------------------------------

    def to_child(self, q: Beliefs, rows: Ints) -> Array:
        """Return the message of the parents of a first row, at any row: where a run starts."""
        return np.asarray(self.factor.to_child(self.start_moments(q, rows)))

    def to_children(self, q: Beliefs) -> Array:
        return self.to_child(q, np.arange(self.variable.size))

    def densities(self, q: Beliefs, rows: Ints) -> Array:
        """E[log p(x_t | x_(t-1))] of each category at some rows; 0 where sequences begin."""
        found = np.zeros((len(rows), self.components))
        later = np.flatnonzero(self.sequences.previous[rows] >= 0)
        later = np.union1d(later, self.entering(q, rows)[0])
        if len(later):
            subrows = self.subrows(rows[later])
            lines = np.repeat(self._lines(q, rows[later]), self.components, axis=0)
            pairs = self._pairs(lines)
            residual = self._residual(q, subrows, pairs)
            density = transition.log_density(pairs, residual, *self.precision(q, subrows))
            found[later] = density.reshape(-1, self.components)
        return found

    def reads(self, parent: Symbol, entered: Ints) -> Reads:
        name, slot = self.slot_of(parent)
        begins = self.sequences.previous < 0
        begins[entered] = False
        set_of, component = np.full(parent.size, -1), np.zeros(parent.size, dtype=np.int64)
        starts = name.startswith("init")
        rows = np.flatnonzero(begins if starts else ~begins)
        if not len(rows):
            return Reads(rows, rows, set_of, component)
        factor = 1 if starts else self.components
        table = self._table(slot, parent, rows * factor)
        _, example, sets = np.unique(table, axis=0, return_index=True, return_inverse=True)
        for k in range(factor - 1, -1, -1):
            elements = self._table(slot, parent, rows[example] * factor + k)
            set_of[elements] = np.arange(len(example))[:, None]
            component[elements] = k
        return Reads(rows, sets.reshape(-1).astype(np.int64), set_of, component)

    def colours(self, parent: Symbol) -> Ints | None:
        """Colour the rows of A or B: if tau is not diagonal, they are updated in turn."""
        matrix = self.matrices.get(self.slot_of(parent)[0])
        if matrix is None or not matrix.couples or self.has_diagonal_precision:
            return None
        return matrix.inner_of(np.arange(parent.size))

    def pooled_message(self, q: Beliefs, parent: Symbol, present: Ints | None) -> Array:
        name, slot = self.slot_of(parent)
        total = np.zeros((parent.size, parent.family.size))
        if name.startswith("init"):
            elements, rows = slot.pairs(parent, self.first_rows(q, present)[0])
            np.add.at(total, elements, self._start_message(q, parent, elements, rows))
            return total
        return self.transition_message(q, parent, self.pair_sums(q, present))

    def row_sums(self, q: Beliefs, rows: Ints) -> Array:
        """Return the moments of the pairs of rows that follow a state, by group and category."""
        rows = rows[np.argsort(self.group[rows], kind="stable")]
        return self.sum_pairs(q, rows, self.group[rows])

    def transition_message(self, q: Beliefs, parent: Symbol, lines: Array) -> Array:
        """Return the message to every element of a parent of transitions, from sums of pairs."""
        name, slot = self.slot_of(parent)
        total = np.zeros((parent.size, parent.family.size))
        subrows = self.subrows(self._groups[0])
        for k in range(self.components):
            some = subrows[k :: self.components]
            elements, rows = slot.pairs(parent, some)
            per_row = len(elements) // len(some)
            if name == "tau":  # an entry may be read more than once by a row
                keep = _distinct(elements, per_row)
                elements, rows = elements[keep], rows[keep]
                which = np.repeat(np.arange(len(some)), per_row)[keep]
            else:
                which = np.repeat(np.arange(len(some)), per_row)
            own = lines[k :: self.components][which]
            np.add.at(total, elements, self._message(q, parent, elements, rows, own))
        return total

    def message_sum(
        self,
        q: Beliefs,
        parent: Symbol,
        elements: Ints,
        owner: Ints,
        rows: Ints,
        tangents: Array | None = None,
    ) -> Array:
        name, slot = self.slot_of(parent)
        total, step = np.zeros((len(elements), parent.family.size)), self.chunk(self._line)
        for start in range(0, len(rows), step):
            some, who = rows[start : start + step], owner[start : start + step]
            if slot is self.selector:
                message = self.densities(q, some)
            elif name.startswith("init"):
                message = self._start_message(q, parent, elements[who], some // self.components)
            else:
                some, who = self._all_categories(slot, some, who)
                lines = self._lines(q, some // self.components)
                if self.selector is not None:
                    row, k = np.divmod(some, self.components)
                    weight = self.selector.moments(q, row)[np.arange(len(row)), k]
                    lines = weight[:, None] * lines
                message = self._message(q, parent, elements[who], some, lines)
            total += sum_by_owner(message, who, len(elements))
        return total

    def _all_categories(self, slot: Slot, subrows: Ints, owner: Ints) -> tuple[Ints, Ints]:
        """Return the sub-rows of all categories where a parameter is the same for all of them."""
        if self.selector is None or self.component_axis in slot.axes:
            return subrows, owner
        rows = subrows // self.components
        return self.subrows(rows), np.repeat(owner, self.components)

    def _start_message(self, q: Beliefs, parent: Symbol, elements: Ints, rows: Ints) -> Array:
        name, slot = self.slot_of(parent)
        given, child = self.start_moments(q, rows), q.moments[self.variable.name][rows]
        incoming = self.factor.to_parent(name.removeprefix("init "), child, given)
        incoming = np.broadcast_to(incoming, (len(rows), incoming.shape[-1]))
        return slot.message(q, parent, elements, rows, incoming)

    def _message(
        self, q: Beliefs, parent: Symbol, elements: Ints, subrows: Ints, lines: Array
    ) -> Array:
        """Return the message of each line of sums to an element of a parent of transitions."""
        name, slot = self.slot_of(parent)
        pairs = self._pairs(lines)
        if name == "tau":
            incoming = transition.to_tau(pairs, self._residual(q, subrows, pairs))
            return slot.message(q, parent, elements, subrows, incoming)
        tau, _ = self.precision(q, subrows)
        slope = transition.slope(pairs, self._unknown(q, subrows), tau)
        matrix, columns = next((m, c) for m, c in self._columns() if m is slot)
        gram = pairs.rr[:, columns, columns]
        return matrix.to_element(q, elements, subrows, slope[:, :, columns], gram, tau)


def _distinct(elements: Ints, per_row: int) -> Ints:
    """Return the places of elements that differ from those before them of the same row."""
    table = elements.reshape(-1, per_row)
    first = np.ones_like(table, dtype=bool)
    for column in range(1, per_row):
        first[:, column] = (table[:, :column] != table[:, column : column + 1]).all(axis=1)
    return np.flatnonzero(first.ravel())

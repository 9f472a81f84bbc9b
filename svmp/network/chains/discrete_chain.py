"""The density of a chain of states: z_1 ~ Categorical(init), z_t ~ Categorical(P[z_(t-1)]).

With q(z_(t-1) = i, z_t = j) from forward_backward.py, the messages to the parents are expected
numbers of transitions,

    to P[i]:  sum_t q(z_(t-1) = i, z_t = .)        to init:  sum over sequences of q(z_1 = .)

and E[log p(z | init, P)] is their product with E[log init] and E[log P]. No array of (rows, states,
states) is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from svmp import factors, families
from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.binding import NO_AXES, Binder
from svmp.network.chains.chain import Chain, Reads, by_sequence
from svmp.network.chains.forward_backward import (
    Solution,
    Transitions,
    entropy_of,
    log_links,
    pair_counts,
)
from svmp.network.chains.sequences import Sequences, Spans
from svmp.network.expressions import DiagonalMatrix, Symbol, unused
from svmp.network.grid import Grid, Ints, Labelled, Scope
from svmp.network.means.row_sums import sum_by_owner
from svmp.network.parameter_forms import plain
from svmp.network.slot import Fixed, Single, Slot

Axes = tuple[str | None, ...]
Counter = Callable[[Array, Array, Array, Transitions], tuple[Array, float]]
"""Counts transitions: `pair_counts` of forward_backward.py, or its compiled twin."""


class DiscreteChain(Chain):
    """The density of a chain of states given its initial and transition probabilities.

    Attributes
    ----------
    states
        Number of states.
    """

    def __init__(self, variable: Symbol, init: Any, P: Any, sequences: Sequences) -> None:
        self.variable, self.factor, self.sequences = variable, factors.Categorical(), sequences
        self.selector, self.chooser, self.constants = None, None, {}
        plate = variable.plate
        binder = Binder(variable.coords, variable.name, plate, plate, 1, dims=variable.dims)
        given = binder.parameters({"init": init, "P": P})
        self.parameters = {name: by_sequence(value, self) for name, value in given.items()}
        source, self.states = self._sizes()
        self.components = self.states
        rows = Grid((*plate.labels, source), (*plate.shape, self.states))
        self.scope = Scope(rows, NO_AXES)
        self.component_axis = source
        shared = Binder(variable.coords, variable.name, plate, rows, self.states)
        matrix = Binder(variable.coords, variable.name, rows, rows, self.states)
        self.slots: dict[str, Slot] = {
            "init": self._slot(shared, "init"),
            "P": self._slot(matrix, "P"),
        }
        named = [axis for axis in (self._axes("init")[-1], self._axes("P")[-2]) if axis]
        self.category_axis = (named[0] if named else None, self.states)
        self.family = families.Categorical(self.states)
        self._check_parents()

    # --- declaring ----------------------------------------------------------------------------

    def _axes(self, parameter: str) -> Axes:
        """Return the names of the axes of a parameter: those of its variable or of its array."""
        value = self.parameters[parameter]
        terms = () if isinstance(value, DiagonalMatrix) else value.terms
        for term in terms[:1]:
            for operand in term.operands:
                return tuple(i if isinstance(i, str) else None for i in operand.index)
            for array in term.constants:
                return array.axes
        return ()

    def _length(self, parameter: str, axis: int) -> int | None:
        """Return the length of the last or the last but one axis of a parameter."""
        value = self.parameters[parameter]
        terms = () if isinstance(value, DiagonalMatrix) else value.terms
        for term in terms[:1]:
            shapes = [o.variable.shape for o in term.operands]
            shapes += [np.shape(array.values) for array in term.constants]
            for shape in shapes[:1]:
                return int(shape[axis]) if len(shape) >= -axis else None
        return None

    def _sizes(self) -> tuple[str, int]:
        """Return a name for the axis of the previous state, and the number of states."""
        name = self.variable.name
        count, source, target = (
            self._length("init", -1),
            self._length("P", -2),
            self._length("P", -1),
        )
        if source is None or target is None or source != target:
            raise ModelError(
                f"P of '{name}' must be a square matrix, or a Dirichlet whose last two dimensions "
                f"have the same length; its last axes have {source} and {target}"
            )
        if count != source:
            raise ModelError(
                f"init of '{name}' must have a probability for each of the {source} states of P, "
                f"not {count}"
            )
        axis = self._axes("P")[-2]
        taken = self.variable.plate.labels
        return axis if axis and axis not in taken else unused("state", taken), source

    def _slot(self, binder: Binder, parameter: str) -> Slot:
        value = self.parameters[parameter]
        array = None if isinstance(value, DiagonalMatrix) else plain(value)
        if array is None:
            return binder.slot(parameter, value, families.Dirichlet)
        found = np.asarray(array.values, dtype=np.float64)
        possible = (found >= 0).all(axis=-1) & (np.abs(found.sum(axis=-1) - 1) < 1e-6)
        if not np.all(possible):
            first = found.reshape(-1, self.states)[np.argmin(np.ravel(possible))]
            raise ModelError(
                f"{parameter} of '{self.variable.name}' has {first.round(6).tolist()!s:.60}; "
                "probabilities must be at least 0 and add up to 1"
            )
        with binder.about(parameter), np.errstate(divide="ignore"):
            return Fixed(binder.aligned(Labelled(np.log(found), array.axes), 1), self.scope)

    def _check_parents(self) -> None:
        """Refuse a variable that is in both parameters."""
        names = [v.name for slot in self.slots.values() for v in slot.variables]
        if len(set(names)) < len(names):
            raise ModelError(
                f"'{names[0]}' is both init and P of '{self.variable.name}'; declare one for each"
            )

    @property
    def title(self) -> str:
        """Name of the density, for people."""
        return "DiscreteMarkovChain"

    # --- parameters ---------------------------------------------------------------------------

    @cached_property
    def _matrices(self) -> tuple[Ints, Ints]:
        """A row for each different transition matrix, and which matrix leads to each row."""
        slot, size = self.slots["P"], self.variable.size
        rows = np.arange(size)
        (row,) = self.variable.plate.labels
        if row not in slot.axes:
            return np.zeros(1, dtype=np.int64), np.zeros(size, dtype=np.int64)
        if isinstance(slot, Single):
            first = rows * self.states
            key = slot.reader.element(first, first)
            _, example, group = np.unique(key, return_index=True, return_inverse=True)
        else:
            flat = slot.moments(Beliefs(), self.subrows(rows)).reshape(size, -1)
            _, example, group = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        return example.astype(np.int64), group.reshape(-1).astype(np.int64)

    @property
    def group(self) -> Ints:
        """Which transition matrix leads to each row."""
        return self._matrices[1]

    def log_transition(self, q: Beliefs) -> Array:
        """Return E[log P] of each different matrix, (groups, states, states)."""
        found = self.slots["P"].moments(q, self.subrows(self._matrices[0]))
        return np.array(found).reshape(-1, self.states, self.states)

    def log_initial(self, q: Beliefs, rows: Ints) -> Array:
        """Return E[log init] at some rows."""
        return self.slots["init"].moments(q, rows * self.states)

    def log_start(self, q: Beliefs, rows: Ints) -> Array:
        """Return the logarithm of the density of the state at the first rows of sequences.

        It is E[log init]; of a sequence that goes on, log sum_i a_i exp(E[log P_ij]), with the
        earlier probabilities a of the state before.
        """
        found = np.array(self.log_initial(q, rows))
        places, _ = self.entering(q, rows)
        if len(places):
            found[places] = logsumexp(self._log_entries(q, rows[places]), axis=1)
        return found

    def _log_entries(self, q: Beliefs, rows: Ints) -> Array:
        """Return log a_i + E[log P_ij] at the first rows of sequences that go on."""
        _, before = self.entering(q, rows)
        return np.asarray(before[:, :, None] + self.log_transition(q)[self.group[rows]])

    def entries(self, q: Beliefs, rows: Ints) -> Array:
        """Return q(z_0 = i, z_1 = j) at the first rows of sequences that go on."""
        given = softmax(self._log_entries(q, rows), axis=1)
        return np.asarray(given * q.moments[self.variable.name][rows][:, None, :])

    # --- q --------------------------------------------------------------------------------------

    def unlinked(self, natural: Array) -> dict[str, NDArray[np.generic]]:
        groups = len(self._matrices[0])
        return {
            "potential": np.array(natural),
            "transition": np.zeros((1, groups, self.states, self.states)),
            "version": np.zeros(self.sequences.count, dtype=np.int64),
        }

    def declared_arrays(
        self, arrays: Mapping[str, NDArray[np.generic]]
    ) -> dict[str, tuple[tuple[int, ...], str]]:
        square = (len(self._matrices[0]), self.states, self.states)
        versions = len(arrays["transition"]) if "transition" in arrays else 1
        found = {
            "potential": ((self.variable.size, self.states), "float64"),
            "transition": ((versions, *square), "float64"),
            "version": ((self.sequences.count,), "int64"),
        }
        if "counts" in arrays:
            found |= {"counts": (square, "float64"), "entropy": ((1,), "float64")}
        return found | self.declared_more(arrays)

    def array_trouble(
        self, key: str, arrays: Mapping[str, NDArray[np.generic]]
    ) -> Callable[[NDArray[Any]], str | None]:
        def trouble(array: NDArray[Any]) -> str | None:
            if key == "version":
                versions = len(arrays["transition"])
                sound = bool(((array >= 0) & (array < versions)).all())
            elif key == "continues":
                sound = self.are_sequences(array)
            elif key == "transition":
                return versions_trouble(array)
            else:
                sound = bool(np.isfinite(array).all())
            return None if sound else "is not the q of a chain"

        return trouble

    def write(self, q: Beliefs, spans: Spans, found: Solution) -> None:
        """Write the q of some spans of sequences, solved with the current T.

        T is that of the last solution of any span of a sequence: q of a sequence of which only
        spans were solved is not yet that of a chain.
        """
        rows, name, transition = spans.rows, self.variable.name, self.log_transition(q)
        arrays = q.joint[name]
        if found.log_marginal is not q.natural[name]:
            q.natural[name][rows], q.moments[name][rows] = found.log_marginal, found.marginal
            arrays["potential"][rows] = found.potential
        if spans.whole:
            arrays["transition"], arrays["version"] = transition[None], arrays["version"] * 0
            arrays["counts"] = found.counts
            arrays["entropy"] = np.array([found.entropy])
        else:
            arrays.pop("counts", None)
            arrays.pop("entropy", None)
            version = arrays["version"].copy()
            version[spans.sequence] = len(arrays["transition"])
            used = np.bincount(version, minlength=len(arrays["transition"]) + 1) > 0
            both = np.concatenate([arrays["transition"], transition[None]])
            arrays["transition"], arrays["version"] = both[used], (np.cumsum(used) - 1)[version]
        q.version += 1

    def pair_statistics(
        self, q: Beliefs, present: Ints | None, count: Counter = pair_counts
    ) -> tuple[Array, float]:
        """Return the expected numbers of transitions, and the entropy of q."""
        arrays, name = q.joint[self.variable.name], self.variable.name
        if "counts" in arrays:
            return arrays["counts"], float(arrays["entropy"][0])
        previous = self.sequences.previous
        rows = np.arange(len(previous)) if present is None else present
        counts, entropy = self.row_counts(q, rows[previous[rows] >= 0], count)
        return counts, entropy + entropy_of(q.moments[name][rows[previous[rows] < 0]])

    def row_counts(
        self, q: Beliefs, rows: Ints, count: Counter = pair_counts
    ) -> tuple[Array, float]:
        """Return the expected numbers of transitions to rows that follow another, and entropy."""
        arrays, sequences = q.joint[self.variable.name], self.sequences
        version = arrays["version"][sequences.code[rows]]
        pairs = Transitions(rows, sequences.previous[rows], version, self.group[rows])
        marginal = q.moments[self.variable.name]
        return count(marginal, arrays["potential"], arrays["transition"], pairs)

    def keep_statistics(self, q: Beliefs, counts: Array, entropy: float) -> None:
        """Keep the statistics of all pairs until q of the chain changes."""
        q.joint[self.variable.name] |= {"counts": counts, "entropy": np.array([entropy])}

    def term(self, q: Beliefs, present: Ints | None) -> float:
        counts, entropy = self.pair_statistics(q, present)
        firsts = np.concatenate(self.first_rows(q, present))
        first, initial = q.moments[self.variable.name][firsts], self.log_start(q, firsts)
        return expected(first, initial) + expected(counts, self.log_transition(q)) + entropy

    # --- messages -------------------------------------------------------------------------------

    def to_child(self, q: Beliefs, rows: Ints) -> Array:
        """Return the message of the parents alone: E[log init], and nothing for later rows."""
        first = self.sequences.previous[rows] < 0
        return np.where(first[:, None], np.maximum(self.log_initial(q, rows), -1e3), 0.0)

    def to_children(self, q: Beliefs) -> Array:
        return self.to_child(q, np.arange(self.variable.size))

    def reads(self, parent: Symbol, entered: Ints) -> Reads:
        name, slot = self.slot_of(parent)
        assert isinstance(slot, Single)
        set_of, component = np.full(parent.size, -1), np.zeros(parent.size, dtype=np.int64)
        begins = self.sequences.previous < 0
        begins[entered] = False
        if name == "init":
            rows = np.flatnonzero(begins)
            elements = slot.reader.element(rows * self.states, rows * self.states)
            distinct, sets = np.unique(elements, return_inverse=True)
            set_of[distinct] = np.arange(len(distinct))
            return Reads(rows, sets.reshape(-1).astype(np.int64), set_of, component)
        rows = np.flatnonzero(~begins)
        elements = self._transition_elements(slot)
        set_of[elements] = np.arange(len(elements))[:, None]
        component[elements] = np.arange(self.states)
        return Reads(rows, self.group[rows], set_of, component)

    def _transition_elements(self, slot: Single) -> Ints:
        """Return the elements of P that are the rows of each matrix, (groups, states)."""
        subrows = self.subrows(self._matrices[0])
        return slot.reader.element(subrows, subrows).reshape(-1, self.states)

    def pooled_message(self, q: Beliefs, parent: Symbol, present: Ints | None) -> Array:
        name, slot = self.slot_of(parent)
        assert isinstance(slot, Single)
        total = np.zeros((parent.size, self.states))
        rows, entered = self.first_rows(q, present)
        if name == "P":
            return self.transition_message(q, parent, self.pair_statistics(q, present)[0], entered)
        elements = slot.reader.element(rows * self.states, rows * self.states)
        np.add.at(total, elements, q.moments[self.variable.name][rows])
        return total

    def transition_message(self, q: Beliefs, parent: Symbol, counts: Array, entered: Ints) -> Array:
        """Return the message to every element of P, from the expected numbers of transitions.

        Those to the first rows of sequences that go on are added.
        """
        total, counts = np.zeros((parent.size, self.states)), np.array(counts)
        if len(entered):
            np.add.at(counts, self.group[entered], self.entries(q, entered))
        slot = self.slots["P"]
        assert isinstance(slot, Single)
        total[self._transition_elements(slot)] = counts
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
        total, step = np.zeros((len(elements), self.states)), self.chunk(self.states)
        name, _ = self.slot_of(parent)
        for start in range(0, len(rows), step):
            some, who = rows[start : start + step], owner[start : start + step]
            if name == "init":
                message = q.moments[self.variable.name][some // self.states]
            else:
                message = self.pair(q, *np.divmod(some, self.states))
            total += sum_by_owner(message, who, len(elements))
        return total

    def pair(self, q: Beliefs, rows: Ints, state: Ints) -> Array:
        """Return q(z_(t-1) = i, z_t = .) at rows that follow a state, for a state i of each."""
        name, arrays = self.variable.name, q.joint[self.variable.name]
        version = arrays["version"][self.sequences.code[rows]]
        transition = arrays["transition"][version, self.group[rows], state]
        links = log_links(transition[:, None, :], arrays["potential"][rows])[:, 0]
        before = q.moments[name][self.sequences.previous[rows], state]
        found = np.asarray(before[:, None] * np.exp(links))
        places, _ = self.entering(q, rows)
        if len(places):
            found[places] = self.entries(q, rows[places])[np.arange(len(places)), state[places]]
        return found


def versions_trouble(array: NDArray[Any]) -> str | None:
    """Refuse logarithms of transition matrices that lead nowhere; -inf is an impossible step."""
    sound = (array < np.inf).all() and np.isfinite(array.max(axis=-1, initial=-np.inf)).all()
    return None if sound else "is not the q of a chain"


def expected(probability: Array, log_density: Array) -> float:
    """Return the sum of probabilities times log densities, where 0 times -inf is 0."""
    with np.errstate(invalid="ignore"):
        return float(np.where(probability > 0, probability * log_density, 0.0).sum())

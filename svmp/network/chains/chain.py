"""Chains: variables over the rows of a table whose q is structured, one block for each sequence.

What a chain shares with other variables: its marginals are elements of a family, with natural
parameters and moments in `Beliefs`, so that its children read it like any other variable.

What is its own, and what a new kind of chain has to provide (`Chain` below):

- `sequences` says which rows follow each other. Rows after the last that has observed descendants
  are barren: they send no messages to parents and are not in the bound.
- `Beliefs.joint[name]` has the arrays that, with the marginals, determine the joint q of each
  sequence: `unlinked` makes those of a q without links, from which a run starts, and
  `declared_arrays` says what a checkpoint or a saved fit may hold.
- `reads` says which rows depend on which elements of a parent: the first row of a sequence on the
  initial distribution, all others on the transition. `message_sum` and `pooled_message` turn the
  pairwise moments of these rows into messages to that parent.
- Sequences that go on from an earlier fit are listed in `Beliefs.joint[name]` (continuing.py):
  their first rows depend on the transition too, and not on the initial distribution.
- `term` is E[log p(chain | parents)] under the current q of the parents, plus the entropy of q.

A chain is updated by `inference/updaters/chains.py`: the messages of its children are added up for
each row, and q of the chosen sequences becomes the optimum given these and E[...] of its parents.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.families.family import Array, Bools
from svmp.network.beliefs import Beliefs
from svmp.network.chains.continuing import Continued
from svmp.network.chains.sequences import Sequences
from svmp.network.conditional import Conditional
from svmp.network.edge import Edge
from svmp.network.expressions import DiagonalMatrix, Expression, Index, Operand, Sum, Symbol, Term
from svmp.network.grid import Ints, Labelled, ragged
from svmp.network.variable import Variable


class Reads(NamedTuple):
    """The rows of a chain that depend on a parent.

    Every element belongs to one set, and all rows of a set depend on all of its elements.

    Attributes
    ----------
    rows, sets
        The rows, ascending, and the set of each.
    set_of, component
        For each element of the parent, its set (-1 for none), and which sub-row of a row sends it
        a message.
    """

    rows: Ints
    sets: Ints
    set_of: Ints
    component: Ints


class HasSequences(Protocol):
    """Whatever has the rows of a variable in sequences."""

    variable: Symbol
    sequences: Sequences


class Chain(Conditional):
    """The density of a chain given its parents."""

    sequences: Sequences

    def check_continued(self, continued: Continued) -> None:
        """Refuse sequences that cannot go on from an earlier fit."""
        size = self.variable.family.size
        if continued.natural.shape[1] != size:
            raise ModelError(f"'{self.variable.name}' has another number of states than earlier")

    @abstractmethod
    def unlinked(self, natural: Array) -> dict[str, NDArray[np.generic]]:
        """Return the arrays of a q in which the rows are independent, given its marginals."""

    @abstractmethod
    def declared_arrays(
        self, arrays: Mapping[str, NDArray[np.generic]]
    ) -> dict[str, tuple[tuple[int, ...], str]]:
        """Return the shape and the dtype of each array of a joint q that was stored."""

    def declared_more(
        self, arrays: Mapping[str, NDArray[np.generic]]
    ) -> dict[str, tuple[tuple[int, ...], str]]:
        """Return shape and dtype of the arrays that only some chains have.

        Those of sequences that go on from an earlier fit, and what is known of the buffers of
        subchains (inference/updaters/subchains.py).
        """
        found: dict[str, tuple[tuple[int, ...], str]] = {}
        if "continues" in arrays:
            count, size = len(arrays["continues"]), self.variable.family.size
            found |= {"continues": ((count,), "int64"), "before": ((count, size), "float64")}
        if "buffers" in arrays:
            found["buffers"] = ((2,), "float64")
        return found

    def are_sequences(self, numbers: NDArray[Any]) -> bool:
        """Return whether some numbers are those of sequences with rows, ascending."""
        within = bool(((numbers >= 0) & (numbers < self.sequences.count)).all())
        return within and bool(
            (np.diff(numbers) > 0).all() and self.sequences.lengths[numbers].all()
        )

    @abstractmethod
    def array_trouble(
        self, key: str, arrays: Mapping[str, NDArray[np.generic]]
    ) -> Callable[[NDArray[Any]], str | None]:
        """Return a function that says what is wrong with a stored array, or None."""

    @abstractmethod
    def reads(self, parent: Symbol, entered: Ints) -> Reads:
        """Return the rows that depend on a parent.

        `entered` are the first rows of sequences that go on from an earlier fit.
        """

    def entering(self, q: Beliefs, rows: Ints) -> tuple[Ints, Array]:
        """Return which of some rows are the first of sequences that go on from an earlier fit.

        Also the natural parameters of the states before them.
        """
        found = Continued.of(q.joint.get(self.variable.name, {}))
        if found is None:
            return np.zeros(0, dtype=np.int64), np.zeros((0, self.variable.family.size))
        first = np.flatnonzero(self.sequences.previous[rows] < 0)
        number = np.full(self.sequences.count, -1)
        number[found.sequences] = np.arange(len(found.sequences))
        at = number[self.sequences.code[rows[first]]]
        return first[at >= 0], found.natural[at[at >= 0]]

    def first_rows(self, q: Beliefs, present: Ints | None) -> tuple[Ints, Ints]:
        """Return the first rows that count: of sequences that begin, and of those that go on."""
        firsts = self.sequences.firsts
        firsts = firsts if present is None else firsts[np.isin(firsts, present)]
        places, _ = self.entering(q, firsts)
        return np.delete(firsts, places), firsts[places]

    def colours(self, parent: Symbol) -> Ints | None:
        """Colour the elements of a parent that share rows; None if all are updated together."""
        return None

    @abstractmethod
    def pooled_message(self, q: Beliefs, parent: Symbol, present: Ints | None) -> Array:
        """Return the sum of the messages of all rows to every element of a parent."""

    @abstractmethod
    def term(self, q: Beliefs, present: Ints | None) -> float:
        """Return E[log p(chain | parents)] and the entropy of q, of the rows that count."""

    def check_groups(self, dim: str, group: Ints) -> None:
        """Refuse groups that divide a sequence, unless they are subchains of it."""
        previous = self.sequences.previous
        later = np.flatnonzero(previous >= 0)
        apart = later[group[later] != group[previous[later]]]
        if len(apart):
            row = int(apart[0])
            raise ModelError(
                f"the rows {previous[row]} and {row} of '{self.variable.name}' follow each other, "
                f"but belong to two elements of '{dim}', so batches over '{dim}' cannot be drawn"
                + (", only subchains of rows: give length=" if dim in self.variable.dims else "")
            )

    @property
    def pools(self) -> bool:
        """Whether messages of all rows are added up together: always."""
        return True

    @property
    def summarised(self) -> bool:
        """Whether mean statistics of observed rows suffice: it is hidden."""
        return False


@dataclass(frozen=True, eq=False)
class ChainEdge(Edge):
    """From a parent to the rows of a chain that depend on it.

    Attributes
    ----------
    continued
        The sequences that go on from an earlier fit; None if all begin.
    """

    continued: Continued | None = None

    @cached_property
    def chain(self) -> Chain:
        """The density of the chain."""
        assert isinstance(self.conditional, Chain)
        return self.conditional

    @property
    def choosing(self) -> bool:
        return False

    @cached_property
    def fan(self) -> int:
        return 1

    @property
    def crowded(self) -> bool:
        return False

    @cached_property
    def _reads(self) -> Reads:
        on, sequences = self.continued, self.chain.sequences
        entered = sequences.order[:0] if on is None else on.first_rows(sequences)
        return self.chain.reads(self.parent, entered)

    @cached_property
    def _live(self) -> tuple[Ints, Ints]:
        """The rows that count, and their sets."""
        rows, sets, *_ = self._reads
        if self.present is None:
            return rows, sets
        some = np.isin(rows, self.present)
        return rows[some], sets[some]

    @cached_property
    def _sorted(self) -> tuple[Ints, Ints]:
        """The rows that count, those of a set together, and where each set begins."""
        return self._by_set(*self._live)

    def _by_set(self, rows: Ints, sets: Ints) -> tuple[Ints, Ints]:
        count = int(self._reads.set_of.max(initial=-1)) + 1
        starts = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(sets, minlength=count), out=starts[1:])
        return rows[np.argsort(sets, kind="stable")], starts

    @property
    def transitional(self) -> bool:
        """Whether the parent is one of transitions, and not of first rows."""
        return not self.chain.slot_of(self.parent)[0].startswith("init")

    def read_among(self, rows: Ints) -> Ints:
        """Return those of some rows that count and depend on the parent."""
        return self._some(rows)[0]

    def children_in(self, rows: Ints | None) -> Ints:
        _, sets = self._some(rows)
        set_of = self._reads.set_of
        count = np.bincount(sets, minlength=int(set_of.max(initial=-1)) + 2)
        return np.where(set_of < 0, 0, count[set_of])

    def _some(self, rows: Ints | None) -> tuple[Ints, Ints]:
        live, sets = self._live
        if rows is None or not len(live):
            return live, sets
        place = np.minimum(np.searchsorted(live, rows), len(live) - 1)
        place = np.sort(place[live[place] == rows])
        return live[place], sets[place]

    def pairs_in(self, rows: Ints) -> tuple[Ints, Ints]:
        elements = np.arange(self.parent.size)
        return self._listed(elements, *self._by_set(*self._some(rows)))

    def rows_of(self, elements: Ints) -> tuple[Ints, Ints]:
        return self._listed(elements, *self._sorted)

    def _listed(self, elements: Ints, rows: Ints, starts: Ints) -> tuple[Ints, Ints]:
        """Return the position of an element and a sub-row for each pair, by element."""
        sets = self._reads.set_of[elements]
        begin = np.where(sets < 0, 0, starts[sets])
        count = np.where(sets < 0, 0, starts[sets + 1] - begin)
        owner, place = ragged(begin, count)
        component = self._reads.component[elements][owner]
        return owner, rows[place] * self.conditional.components + component

    def children_at(self, elements: Ints, owner: Ints, place: Ints) -> tuple[Ints, Ints]:
        rows, starts = self._sorted
        found = rows[starts[self._reads.set_of[elements[owner]]] + place]
        component = self._reads.component[elements[owner]]
        return owner, found * self.conditional.components + component

    def colours(self) -> Ints | None:
        return self.chain.colours(self.parent)

    def pooled_message(self, q: Beliefs, elements: Ints) -> Array:
        return self.chain.pooled_message(q, self.parent, self.present)[elements]


@dataclass(frozen=True, eq=False)
class SwitchEdge(Edge):
    """From the variable that chooses the dynamics of a chain to its rows."""

    def pooled_message(self, q: Beliefs, elements: Ints) -> Array:
        return self.message(q, elements, *self.rows_of(elements))


def edge_to(
    parent: Variable, child: Variable, present: Ints | None, continued: Continued | None = None
) -> Edge:
    """Return the edge from a parent to the table of a child."""
    given = child.conditional
    if not isinstance(given, Chain):
        return Edge(parent, given, present)
    chooses = given.selector is not None and any(v is parent for v in given.selector.variables)
    if chooses:
        return SwitchEdge(parent, given, present)
    return ChainEdge(parent, given, present, continued)


def reached(variable: Variable, observed: Bools) -> Bools:
    """Return which rows have observed descendants, given those with observed children.

    In a chain these are also all rows before them.
    """
    given = variable.conditional
    if not isinstance(given, Chain) or len(observed) != len(given.sequences.code):
        return observed  # rows of a chain that lie in parts are counted there
    return given.sequences.reached(observed)


def by_sequence(
    value: Expression | DiagonalMatrix, chain: HasSequences
) -> Expression | DiagonalMatrix:
    """Read a parameter that has the dimension of the sequences by the sequence of each row."""
    if isinstance(value, DiagonalMatrix):
        entries = by_sequence(value.entries, chain)
        assert isinstance(entries, Expression)
        return DiagonalMatrix(entries)
    dim, code = chain.sequences.dim, chain.sequences.code
    (row,) = chain.variable.plate.labels

    def by_row(array: Labelled) -> Labelled:
        if dim not in array.axes:
            return array
        axis = array.axes.index(dim)
        axes = tuple(row if a == dim else a for a in array.axes)
        return Labelled(np.take(array.values, code, axis=axis), axes)

    def index(place: Index) -> Index:
        if isinstance(place, Labelled):
            return by_row(Labelled(place.values, (row,)) if place.axes == (None,) else place)
        return Labelled(chain.variable.coords.kept(code), (row,)) if place == dim else place

    def term(given: Term) -> Term:
        operands = (Operand(o.variable, tuple(map(index, o.index))) for o in given.operands)
        constants = tuple(map(by_row, given.constants))
        return Term(given.scale, constants, tuple(operands), given.summed, given.design)

    return Sum(tuple(map(term, value.terms)))

"""The network of a model as inference needs it: edges, child counts, Markov blankets, the bound.

An edge leads from a hidden variable to a table that depends on it. Its key gives the rows of the
table that are children of each element, whose messages are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.families.family import Array, dot
from svmp.network.beliefs import Beliefs
from svmp.network.chains.chain import Chain, edge_to, reached
from svmp.network.chains.continuing import Continued
from svmp.network.conditional import CHUNK
from svmp.network.declaration import Declaration
from svmp.network.edge import Edge
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints, complement, piece
from svmp.network.grouping import Grouping, group_by, subchains_of
from svmp.network.means.linear import Linear
from svmp.network.partly_known import PartlyKnown
from svmp.network.variable import Variable


def by_value(numbers: Ints) -> list[Ints]:
    """Return the positions of each value, the smallest value first.

    >>> by_value(np.array([1, 0, 1]))
    [array([1]), array([0, 2])]
    """
    order = np.argsort(numbers, kind="stable")
    cuts = np.flatnonzero(np.diff(numbers[order])) + 1
    return np.split(order, cuts) if len(numbers) else []


class LazyDict(dict[str, Any]):
    """Values by variable, computed on first access."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, name: str) -> Any:
        self[name] = self.make(name)
        return self[name]


class Network:
    """A model seen as a network of hidden variables.

    Attributes
    ----------
    hidden, observed, observed_parents
        The variables, as declared, by name.
    edges
        For each hidden variable, the tables that depend on it.
    present
        By variable, the rows of its table that count, or None for all. Missing rows do not count,
        nor do barren elements (hidden ones without observed descendants), on which the evidence
        does not depend: they send no messages to their parents and are not in the bound.
    learned
        By variable, what earlier rows have taught, as natural parameters of (elements, size): they
        are added to the message of the parents, so that earlier rows need not be read again. An
        element that has some is not barren.
    continued
        By chain, the sequences that go on from an earlier fit.
    baseline
        By variable, its term in the bound before any new row, which is subtracted: the bound is
        then that of the new rows given the earlier ones.
    derived
        Cache for what inference derives from this network, such as sorted rows, for the next run on
        it. The network itself does not use it.
    elsewhere
        Hidden variables whose own rows count in another network: those that are shared with other
        parts of the data. They receive messages here, and send none to their parents.
    remote
        By variable, the number of children that each element has in other networks.
    """

    def __init__(
        self,
        model: Declaration,
        learned: Mapping[str, Array] | None = None,
        *,
        continued: Mapping[str, Continued] | None = None,
        elsewhere: Collection[str] = (),
        remote: Mapping[str, Ints] | None = None,
    ) -> None:
        variables = list(model.variables.values())
        self.model = model
        self.learned = dict(learned or {})
        self.continued = dict(continued or {})
        self.baseline: dict[str, float] = {}
        self.elsewhere = frozenset(elsewhere)
        self.remote = dict(remote or {})
        self.derived: dict[Any, Any] = {}
        self._groupings: dict[tuple[str, int | None], Grouping] = {}
        self.hidden = {v.name: v for v in variables if v.hidden}
        self.observed = {v.name: v for v in variables if not v.hidden}
        self.edges: dict[str, list[Edge]] = {name: [] for name in self.hidden}
        self.observed_parents: dict[str, Symbol] = {}
        self.present: dict[str, Ints | None] = {}
        children: dict[str, list[Variable]] = {name: [] for name in self.hidden}
        for variable in variables:
            for parent in variable.conditional.parents():
                if parent.hidden:
                    children[parent.name].append(variable)
                else:
                    self.observed_parents[parent.name] = parent
        for variable in reversed(variables):  # children are declared after their parents
            name = variable.name
            if variable.hidden:
                self.edges[name] = [
                    edge_to(
                        variable, child, self.present[child.name], self.continued.get(child.name)
                    )
                    for child in children[name]
                    if child.name not in self.elsewhere
                ]
            self.present[name] = self._reached(variable) if variable.hidden else variable.present

    def _reached(self, variable: Variable) -> Ints | None:
        """Return the elements with observed descendants, now or earlier, or None if all have some.

        For variables without hidden parents it makes no difference, and None is returned; the terms
        of barren rows of a chain cancel too, but may be too large to compute with.
        """
        alone = not any(parent.hidden for parent in variable.conditional.parents())
        if alone and not isinstance(variable.conditional, Chain):
            return None
        learned = self.learned.get(variable.name)
        found = self._remote(variable.name) > 0
        if isinstance(variable.family, PartlyKnown):
            found |= variable.family.known
        if learned is not None:
            found |= (learned != 0).any(axis=1)
        for edge in self.edges[variable.name]:
            edge.mark(found)
            if found.all():
                return None
        found = reached(variable, found)
        return None if found.all() else np.flatnonzero(found)

    def barren(self, name: str) -> Ints:
        """Return the elements of a hidden variable that have no observed descendants."""
        return np.flatnonzero(self.child_counts[name] == 0)

    def follow_parents(self, q: Beliefs, names: Collection[str]) -> None:
        """Set barren elements to the prior given their parents' q, parents first."""
        skipped = {*q.implicit, *self.chains}  # the barren rows of a chain are updated with it
        for name in (n for n in self.hidden if n in names and n not in skipped):
            elements = self.barren(name)
            if len(elements):
                self.move(q, name, elements, np.array(self.prior(q, name, elements)), barren=True)

    @cached_property
    def chains(self) -> dict[str, Chain]:
        """The densities of chains, by name."""
        of = {name: variable.conditional for name, variable in self.hidden.items()}
        return {name: given for name, given in of.items() if isinstance(given, Chain)}

    def unlinked(self, name: str, natural: Array) -> dict[str, NDArray[Any]]:
        """Return the arrays of a joint q of a chain in which the rows are independent."""
        on = self.continued.get(name)
        return self.chains[name].unlinked(natural) | ({} if on is None else on.arrays)

    def check(self) -> None:
        """Refuse a model without hidden or without observed variables."""
        if not self.hidden:
            raise ModelError("the model has nothing hidden, so there is nothing to infer")
        known = any(isinstance(v.family, PartlyKnown) for v in self.hidden.values())
        if not self.observed and not known:
            raise ModelError("the model has nothing observed; give some variable observed=")

    def release(self) -> None:
        """Drop what was computed from the rows; it is computed again if it is needed.

        These values refer to the network, so that it would be left to the garbage collector.
        """
        self.derived.clear()
        for name in ("child_counts", "colours", "groups"):
            vars(self).pop(name, None)

    def variable(self, name: str) -> Variable:
        """Return a hidden or observed variable."""
        return self.hidden[name] if name in self.hidden else self.observed[name]

    def rows(self, variable: Symbol) -> Ints:
        """Return the rows of a table that count, see `present`."""
        present = self.present[variable.name]
        return variable.plate.cells if present is None else present

    @cached_property
    def child_counts(self) -> Mapping[str, Ints]:
        """N_i of the paper: the number of children of each element of each hidden variable."""
        return LazyDict(self._child_counts)

    def _child_counts(self, name: str) -> Ints:
        return sum((edge.children for edge in self.edges[name]), self._remote(name))

    def _remote(self, name: str) -> Ints:
        none = np.zeros(self.hidden[name].size, dtype=np.int64)
        return self.remote.get(name, none)

    @cached_property
    def sweep_accesses(self) -> int:
        """Number of accesses of a sweep of full VB."""
        return sum(int(self.child_counts[name].sum()) for name in self.hidden)

    @cached_property
    def colours(self) -> Mapping[str, Ints]:
        """For each variable a colour for each element: elements of one colour share no row.

        They are not in each other's Markov blankets, so they can be updated together.
        """
        return LazyDict(self._colours)

    def _colours(self, name: str) -> Ints:
        colour = np.zeros(self.hidden[name].size, dtype=np.int64)
        for edge in self.edges[name]:
            found = edge.colours()
            if found is not None:
                colour = colour * (found.max(initial=0) + 1) + found
        return colour

    @cached_property
    def groups(self) -> Mapping[str, list[Ints]]:
        """For each variable, the sets of elements that can be updated together."""
        return LazyDict(lambda name: self.by_colour(name, np.arange(self.hidden[name].size)))

    def place(self, name: str, elements: Ints) -> Ints | slice:
        """Return elements as an index: a slice for the set of all of them, so that none are copied.

        Only the set of `groups` itself is recognised, so that nothing is compared.
        """
        groups = self.groups.get(name)  # None where they are not used
        whole = groups and elements is groups[0] and len(elements) == self.hidden[name].plate.size
        return slice(None) if whole else elements

    def by_colour(self, name: str, elements: Ints) -> list[Ints]:
        """Split elements into sets that can be updated together; known ones are left out."""
        family = self.hidden[name].family
        if isinstance(family, PartlyKnown):
            elements = elements[~family.known[elements]]
        colours = self.colours[name][elements]
        if len(elements) and (colours == colours[0]).all():
            return [elements]
        return [elements[part] for part in by_value(colours)]

    @cached_property
    def coupling(self) -> dict[str, int]:
        """For each variable, the largest number of other elements in a row with one of its own.

        Local variables do not count: they are optimised before all others.
        """
        return self.coupling_beside(self.locals)

    def coupling_beside(self, optimised: Collection[str]) -> dict[str, int]:
        """Return the coupling of each variable where some are optimised before the others."""
        coupling = {}
        for name, edges in self.edges.items():
            widths = [
                sum(
                    s.width(p)
                    for s in e.conditional.slots.values()
                    for p in s.variables
                    if p.hidden and p.name not in optimised
                )
                for e in edges
                if not e.choosing
            ]
            coupling[name] = max([w - 1 for w in widths], default=0)
        return coupling

    def grouped(self, dim: str, length: int | None = None) -> Grouping:
        """Return the grouping of rows and variables by the elements of a dim.

        With a length, a group is a subchain of at most so many rows of a chain, whose dim it is.
        """
        if (dim, length) not in self._groupings:
            every = [*self.locals, *self.chains]
            blocks, count = None, self.model.sizes.get(dim, 0)
            if length is not None:
                blocks, count = subchains_of(self.chains, dim, length)
            group = group_by(self.model, self.edges, every, dim, blocks)
            for name, chain in self.chains.items():
                if name in group and not (blocks is not None and dim in chain.variable.dims):
                    chain.check_groups(dim, group[name])
            own = [name for name in self.default_order if name in group]
            coupling = self.coupling_beside({*self.locals, *own})
            self._groupings[dim, length] = Grouping(
                dim, count, group, own, coupling, self.edges, self.present
            )
        return self._groupings[dim, length]

    def draw_keys(self, name: str) -> Ints:
        """Return for each element the first one in its sum, which has the same children.

        All factors of one user are read by the user's rows.
        """
        keys = np.arange(self.hidden[name].size)
        for edge in self.edges[name]:
            keys = keys if edge.choosing else edge.slot.base(self.hidden[name], keys)
        return keys

    @cached_property
    def locals(self) -> list[str]:
        """Local variables: each element is a parent of at most one row."""
        observed = [v.conditional for v in self.observed.values()]
        return [
            name
            for name, edges in self.edges.items()
            if edges
            and name not in self.elsewhere
            and name not in self.chains
            and all(e.conditional in observed for e in edges)
            and not any(e.crowded for e in edges)
            and self.child_counts[name].max(initial=0) <= 1
            and not self._sends_alone(name)
        ]

    def _sends_alone(self, name: str) -> bool:
        """Whether a known element sends messages to its parents but has no row that is drawn."""
        family = self.hidden[name].family
        return isinstance(family, PartlyKnown) and bool(family.known[self.barren(name)].any())

    @cached_property
    def default_order(self) -> list[str]:
        """The hidden variables in the order of declaration, with two exceptions.

        Choices among components come first: updating the components before them would lose their
        different starts. Precisions come last: estimated from a poor start they could
        suppress the other variables.
        """
        first = dict.fromkeys((*self.locals, *self.chains))
        first |= {n: None for n, edges in self.edges.items() if any(e.choosing for e in edges)}
        rest = [name for name in self.hidden if name not in first]
        return [*first, *sorted(rest, key=self._is_precision)]

    def _is_precision(self, name: str) -> bool:
        return any(e.conditional.slot_of(self.hidden[name])[0] == "tau" for e in self.edges[name])

    def edges_around(self, local: str) -> list[Edge]:
        """Return the edges from other variables to the rows that a local variable belongs to."""
        tables = [self.hidden[local].conditional, *(e.conditional for e in self.edges[local])]
        return [
            edge
            for name, edges in self.edges.items()
            if name not in self.locals
            for edge in edges
            if edge.conditional in tables
        ]

    def prior(self, q: Beliefs, name: str, elements: Ints) -> Array:
        """Return the message of an element's parents, and of earlier rows: eta_i in the paper."""
        if isinstance(self.place(name, elements), slice):
            return self.priors(q, name)
        prior = self.hidden[name].conditional.to_child(q, elements)
        return prior + self.learned[name][elements] if name in self.learned else prior

    def priors(self, q: Beliefs, name: str) -> Array:
        """Return `prior` of all elements."""
        prior = self.hidden[name].conditional.to_children(q)
        return prior + self.learned[name] if name in self.learned else prior

    def remember_means(self, q: Beliefs, but: Collection[str] = ()) -> None:
        """Compute E[mu] of every row once, for an iteration that reads all rows.

        The tables in `but` and those with compiled row moments are left out.
        """
        for variable in (*self.hidden.values(), *self.observed.values()):
            given, name = variable.conditional, variable.name
            barren = variable.hidden and self.present[name] is not None
            if given.linear is None or barren or given.pools or name in {*but, *q.row_moments}:
                continue
            if given.linear.single is not None or given.summarised:  # nothing to compute, or little
                continue
            self._remember_means_of(q, variable, given.linear)

    def refresh_means(self, q: Beliefs, name: str) -> None:
        """Compute the stored means of rows that depend on a variable again, after it has moved."""
        for edge in self.edges[name]:
            table = edge.conditional.variable
            if table.name in q.means and isinstance(edge.slot, Linear):
                self._remember_means_of(q, self.variable(table.name), edge.slot)

    def _remember_means_of(self, q: Beliefs, variable: Variable, linear: Linear) -> None:
        given, name = variable.conditional, variable.name
        q.means.pop(name, None)
        means = np.zeros(variable.plate.size * given.components)
        subrows = given.subrows(self.rows(variable))
        for start in range(0, len(subrows), CHUNK // 8):
            part = piece(subrows, start, CHUNK // 8)
            means[part] = linear.mean(q, part)
        q.means[name] = means

    def move(
        self, q: Beliefs, name: str, elements: Ints, natural: Array, barren: bool = False
    ) -> None:
        """Set the natural parameters of elements; update their moments and the means of rows.

        If they are `barren`, no row depends on them.
        """
        variable, place = self.hidden[name], self.place(name, elements)
        after = variable.family.at(elements).moments(natural)
        for edge in self.edges[name]:
            child, slot = edge.conditional.variable.name, edge.slot
            if child not in q.means or not isinstance(slot, Linear):
                continue
            term, change = slot.regular(variable), after - q.moments[name][place]
            if term is not None and len(elements) == variable.plate.size:
                in_order = isinstance(place, slice)
                edge.shift_means(q, term, change if in_order else change[np.argsort(elements)])
            else:
                owner, rows = edge.rows_of(elements)
                shift = slot.shift(q, variable, elements, owner, rows, change)
                np.add.at(q.means[child], rows, shift)
        q.natural[name][place] = natural
        q.moments[name][place] = after
        q.changed(name, barren)

    def bound(self, q: Beliefs) -> dict[str, float]:
        """Return the exact bound as one term for each variable; their sum is the bound."""
        return {name: self.bound_term(q, name) for name in (*self.hidden, *self.observed)}

    def bound_term(self, q: Beliefs, name: str) -> float:
        """Return E[log p(x | parents)] of a variable, and the entropy of q(x) if it is hidden."""
        variable = self.hidden[name] if name in self.hidden else self.observed[name]
        given = variable.conditional
        if isinstance(given, Chain):
            return given.term(q, self.present[name]) + self.learned_term(q, name)
        if given.summarised:
            return given.pooled_density(q, None) + given.base
        if given.pools_under(q):
            free, present = 0.0, self.present[name]
            for part in self._entropies(q, variable):
                free += float(part.sum())
            absent = None if present is None else complement(present, variable.size)
            density = given.pooled_density(q, absent)
            return density + free + self.learned_term(q, name) - q.total_correlation(name)
        if variable.observed is not None:
            blocks = self._densities(q, variable)
        else:
            blocks = self._parts(q, variable, self.rows(variable))
        total = 0.0
        for part in blocks:
            total += float(part.sum())
        return total - q.total_correlation(name) if q.blocks else total

    def learned_term(self, q: Beliefs, name: str) -> float:
        """Return what earlier rows add to a variable's term: learned . E[phi(x)] - baseline."""
        learned, baseline = self.learned.get(name), self.baseline.get(name, 0.0)
        return (0.0 if learned is None else float(dot(learned, q.moments[name]).sum())) - baseline

    def terms(self, q: Beliefs, name: str, rows: Ints) -> Array:
        """Return the terms of some rows of a variable in the bound."""
        variable = self.variable(name)
        return np.concatenate([np.zeros(0), *self._parts(q, variable, rows)])

    def _entropies(self, q: Beliefs, variable: Variable) -> Iterator[Array]:
        """Yield the entropy terms of the elements of a hidden variable, in blocks."""
        step, present = variable.conditional.block_size, self.present[variable.name]
        count = variable.plate.size if present is None else len(present)
        for start in range(0, count, step):
            some = slice(start, start + step) if present is None else present[start : start + step]
            natural, moments = q.natural[variable.name][some], q.moments[variable.name][some]
            yield variable.family.at(some).free_entropy(natural, moments)

    def _densities(self, q: Beliefs, variable: Variable) -> Iterator[Array]:
        """Yield the terms of all rows of an observed variable in blocks.

        The base measure is added row by row: of large counts, both sums are much larger than
        their difference.
        """
        given, rows = variable.conditional, self.rows(variable)
        for number, base in enumerate(given.bases):
            yield (
                given.log_density(q, piece(rows, number * given.block_size, given.block_size))
                + base
            )

    def _parts(self, q: Beliefs, variable: Variable, rows: Ints) -> Iterator[Array]:
        """Yield the terms of rows in blocks, to bound the memory."""
        step = variable.conditional.block_size
        for start in range(0, len(rows), step):
            part = piece(rows, start, step)
            density = variable.conditional.log_density(q, part)
            family = variable.family.at(part)
            if variable.observed is not None:
                yield density + family.log_base(variable.observed[part])
            else:
                moments = q.at(variable.name, part) if variable.name in q.moments else None
                free = family.free_entropy(q.natural_at(variable.name, part), moments)
                if variable.name in self.learned:
                    free = free + dot(self.learned[variable.name][part], q.at(variable.name, part))
                if variable.name in self.baseline:
                    free = free - self.baseline[variable.name] / len(self.rows(variable))
                yield density + free

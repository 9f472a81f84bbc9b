"""Which rows an element reads in an update, and when the others see its new value.

An algorithm makes a `Draw` for each iteration; the engine asks the draw for the elements to
update and for their rows. What the rows mean it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, Protocol

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.draws import sample_each
from svmp.network.grid import Ints, ragged
from svmp.network.network import Edge, Network

Option = Literal["a", "b"]


class Rows(NamedTuple):
    """The rows that some elements read: whose each is, by position, and its number.

    `scale` is N_i / |rows_i| of each element, by which its messages count.
    """

    owner: Ints
    rows: Ints
    scale: Array


class Draw(Protocol):
    """The rows of one iteration."""

    def groups(self, name: str) -> list[Ints]:
        """Return the elements of a variable to update, those that can go together at a time."""
        ...

    def rows(self, edge: Edge, elements: Ints) -> Rows:
        """Return the rows of one table that the elements read."""
        ...

    def read(self, name: str, elements: Ints) -> Ints:
        """Return how many children each element reads."""
        ...


class Selection(Protocol):
    """An algorithm: how it draws, and when a new value is seen: (a) at once, (b) at the end."""

    option: Option
    order: Sequence[str] | None

    def draw(self, network: Network, seed: int, iteration: int) -> Draw:
        """Choose the rows of one iteration."""
        ...


@dataclass(frozen=True)
class FullVB(Selection):
    """Full variational Bayes: every element reads all of its rows, and steps have unit length.

    Parameters
    ----------
    order
        Names of the hidden variables in the order of their updates. By default the choices among
        components come first, then the others as they were declared.
    """

    order: Sequence[str] | None = None
    option: Option = field(default="a", init=False)

    def draw(self, network: Network, seed: int, iteration: int) -> Draw:
        return AllRows(network)


@dataclass(frozen=True)
class Children(Selection):
    """Algorithm 1: every element reads at most C of its children, drawn without replacement.

    Parameters
    ----------
    C
        How many; one number, one for each variable by name, or a function from the child counts
        of a variable's elements to how many each reads.
    option
        "a": a new value is seen at once; "b": at the end of the iteration, all together.
    share_draw
        Let the elements of one variable that have the same children (a user's factors) read the
        same ones in an iteration, which costs less than a draw for each.
    order
        Names of the hidden variables in the order of their updates.

    >>> Children(0)
    Traceback (most recent call last):
    svmp.errors.ModelError: C must be a whole number of at least 1, not 0
    """

    C: int | Mapping[str, int] | Callable[[Ints], Ints]
    option: Option = "a"
    share_draw: bool = False
    order: Sequence[str] | None = None

    def __post_init__(self) -> None:
        check_option(self.option)
        numbers = self.C.values() if isinstance(self.C, Mapping) else [self.C]
        for number in numbers:
            if not callable(number):
                check_count("C", number)

    def most(self, name: str, children: Ints) -> Ints:
        """Return how many children each element may read."""
        most = self.C(children) if callable(self.C) else self.C
        if isinstance(most, Mapping):
            if name not in most:
                raise ModelError(f"C has no number for the hidden variable '{name}'")
            most = most[name]
        return np.minimum(
            np.broadcast_to(np.asarray(most, dtype=np.int64), children.shape), children
        )

    def draw(self, network: Network, seed: int, iteration: int) -> Draw:
        return DrawnChildren(network, self, seed, iteration)


@dataclass(frozen=True)
class Batch(Selection):
    """Algorithm 2: one draw of `size` observations; only what has a child among them is updated.

    Variables that have no observed children, such as hyper-parameters, read all their children.

    Parameters
    ----------
    size
        How many observations are drawn.
    option
        "a": a new value is seen at once; "b": at the end of the iteration, all together.
    order
        Names of the hidden variables in the order of their updates.
    """

    size: int
    option: Option = "a"
    order: Sequence[str] | None = None

    def __post_init__(self) -> None:
        check_option(self.option)
        check_count("size", self.size)

    def draw(self, network: Network, seed: int, iteration: int) -> Draw:
        return DrawnBatch(network, self.size, seed, iteration)


@dataclass(frozen=True)
class Growing(Selection):
    """Full VB on a sample of the observations that grows until it is all of them.

    Every iteration is coordinate ascent on the exact bound of a smaller data set, so steps have
    unit length and nothing can diverge. While few rows are read a sweep costs little, and what it
    finds is where the next, larger sample starts from. The sample doubles each time that `pace`
    sweeps' worth of accesses have been spent.

    Parameters
    ----------
    first
        Share of the observations in the first sample.
    pace
        Accesses between doublings, as a share of a sweep over all of them.
    order
        Names of the hidden variables in the order of their updates.
    """

    first: float = 1 / 32
    pace: float = 0.2
    order: Sequence[str] | None = None
    option: Option = field(default="a", init=False)
    _last: dict[float, Draw] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 < self.first <= 1 or not self.pace > 0:
            raise ModelError("Growing needs first in (0, 1] and a positive pace")

    def share(self, iteration: int) -> float:
        """Return the share of the observations that an iteration reads."""
        share, spent = self.first, 0.0
        for _ in range(iteration - 1):
            spent += share
            share = self.first * 2.0 ** int(spent / self.pace)
            if share >= 1:
                return 1.0
        return share

    def draw(self, network: Network, seed: int, iteration: int) -> Draw:
        share = self.share(iteration)
        if share not in self._last:
            self._last.clear()
            self._last[share] = AllRows(network) if share >= 1 else Sampled(network, share, seed)
        return self._last[share]


def check_option(option: str) -> None:
    """Refuse any option but the paper's two."""
    if option not in ("a", "b"):
        raise ModelError(f'option must be "a" (seen at once) or "b" (at the end), not {option!r}')


def check_count(name: str, number: object) -> None:
    """Refuse what is not a positive whole number."""
    if not isinstance(number, int | np.integer) or number < 1:
        raise ModelError(f"{name} must be a whole number of at least 1, not {number}")


@dataclass(frozen=True)
class AllRows(Draw):
    """Every row."""

    network: Network

    def groups(self, name: str) -> list[Ints]:
        return self.network.groups[name]

    def rows(self, edge: Edge, elements: Ints) -> Rows:
        return Rows(*edge.rows_of(elements), np.ones(len(elements)))

    def read(self, name: str, elements: Ints) -> Ints:
        return self.network.child_counts[name][elements]


@dataclass(frozen=True)
class Sampled(Draw):
    """A part of the observations as if they were all; samples of one seed contain each other."""

    network: Network
    share: float
    seed: int

    @cached_property
    def tables(self) -> dict[str, Ints]:
        """Sampled rows of every table that is observed, or hidden but tied to observed rows."""
        tables = {}
        for index, (name, variable) in enumerate(self.network.observed.items()):
            rng = np.random.default_rng([self.seed, index, 3])
            count = max(1, round(self.share * len(variable.rows)))
            tables[name] = np.sort(rng.permutation(variable.rows)[:count])
        return with_locals(self.network, tables)

    @cached_property
    def _pairs(self) -> dict[Edge, tuple[Ints, Ints]]:
        return drawn_pairs(self.network, self.tables)

    def groups(self, name: str) -> list[Ints]:
        if name in self.network.locals:
            return [self.tables[name]]
        return self.network.groups[name]

    def rows(self, edge: Edge, elements: Ints) -> Rows:
        if edge not in self._pairs:
            return Rows(*edge.rows_of(elements), np.ones(len(elements)))
        return Rows(*among(self._pairs[edge], elements), np.ones(len(elements)))

    def read(self, name: str, elements: Ints) -> Ints:
        return sum(
            (
                np.bincount(self.rows(e, elements).owner, minlength=len(elements)) // e.fan
                for e in self.network.edges[name]
            ),
            np.zeros(len(elements), dtype=np.int64),
        )


def with_locals(network: Network, tables: dict[str, Ints]) -> dict[str, Ints]:
    """Add the elements of local variables that belong to drawn rows."""
    for name in network.locals:
        edges = network.edges[name]
        touched = [e.pairs_in(tables[e.conditional.variable.name])[0] for e in edges]
        tables[name] = np.unique(np.concatenate(touched))
    return tables


def drawn_pairs(network: Network, tables: dict[str, Ints]) -> dict[Edge, tuple[Ints, Ints]]:
    """Return for each edge to a drawn table its (element, row) pairs, by element."""
    return {
        edge: edge.pairs_in(tables[edge.conditional.variable.name])
        for edges in network.edges.values()
        for edge in edges
        if edge.conditional.variable.name in tables
    }


def among(pairs: tuple[Ints, Ints], elements: Ints) -> tuple[Ints, Ints]:
    """Return the rows of these elements among pairs sorted by element, and whose each is."""
    everyone, rows = pairs
    starts = np.searchsorted(everyone, elements, side="left")
    counts = np.searchsorted(everyone, elements, side="right") - starts
    owner, place = ragged(starts, counts)
    return owner, rows[place]


@dataclass(frozen=True)
class DrawnChildren(Draw):
    """At most C children of each element, from all the tables that depend on it."""

    network: Network
    selection: Children
    seed: int
    iteration: int

    def groups(self, name: str) -> list[Ints]:
        if name not in self.network.locals:
            return self.network.groups[name]
        touched = [self._tied(name, edge) for edge in self.network.edges_around(name)]
        return [np.unique(np.concatenate(touched))]

    def _tied(self, local: str, edge: Edge) -> Ints:
        """Return the elements of a local variable whose rows will be read along an edge."""
        elements = np.arange(edge.parent.size)
        rows = self.rows(edge, elements).rows
        rows = rows if edge.choosing else rows // edge.conditional.components
        table = edge.conditional.variable
        if table.name == local:
            return rows
        down = next(e for e in self.network.edges[local] if e.conditional.variable is table)
        return down.pairs_in(np.unique(rows))[0]

    def rows(self, edge: Edge, elements: Ints) -> Rows:
        name = edge.parent.name
        children = self.network.child_counts[name][elements]
        take = self.read(name, elements)
        stream = self.network.draw_keys(name)[elements] if self.selection.share_draw else elements
        number = list(self.network.hidden).index(name)
        chosen = sample_each(self.seed, self.iteration, number, stream, children, take)
        owner = np.repeat(np.arange(len(elements)), take)
        before = np.zeros(len(elements), dtype=np.int64)  # children are counted table by table
        for other in self.network.edges[name]:
            if other is edge:
                break
            before += other.children[elements]
        place = chosen - before[owner]
        here = (place >= 0) & (place < edge.children[elements][owner])
        owner, rows = edge.children_at(elements, owner[here], place[here])
        return Rows(owner, rows, children / np.maximum(take, 1))

    def read(self, name: str, elements: Ints) -> Ints:
        return self.selection.most(name, self.network.child_counts[name][elements])


@dataclass(frozen=True)
class DrawnBatch(Draw):
    """The observations of one batch, and the variables of those rows themselves."""

    network: Network
    size: int
    seed: int
    iteration: int

    @cached_property
    def tables(self) -> dict[str, Ints]:
        """Drawn rows of every table that is observed, or hidden but tied to observed rows."""
        observed = list(self.network.observed.values())
        ends = np.cumsum([len(v.rows) for v in observed])
        take = np.minimum([self.size], ends[-1:])
        number = len(self.network.hidden)  # a stream of its own, after the variables'
        anyone = np.zeros(1, dtype=np.int64)
        chosen = sample_each(self.seed, self.iteration, number, anyone, ends[-1:], take)
        chosen.sort()
        cuts = np.searchsorted(chosen, ends)
        tables = {}
        for variable, part, end in zip(observed, np.split(chosen, cuts[:-1]), ends, strict=True):
            tables[variable.name] = variable.rows[part - (end - len(variable.rows))]
        return with_locals(self.network, tables)

    @cached_property
    def pairs(self) -> dict[Edge, tuple[Ints, Ints]]:
        """For each edge to a drawn table, its (element, row) pairs, by element."""
        return drawn_pairs(self.network, self.tables)

    def _drawn_edges(self, name: str) -> list[Edge]:
        return [e for e in self.network.edges[name] if e in self.pairs]

    def groups(self, name: str) -> list[Ints]:
        edges = self._drawn_edges(name)
        if not edges:
            return self.network.groups[name]
        touched = np.unique(np.concatenate([self.pairs[e][0] for e in edges]))
        colours = self.network.colours[name][touched]
        order = np.argsort(colours, kind="stable")
        cuts = np.flatnonzero(np.diff(colours[order])) + 1
        return np.split(touched[order], cuts) if len(touched) else []

    def rows(self, edge: Edge, elements: Ints) -> Rows:
        if edge not in self.pairs:
            return Rows(*edge.rows_of(elements), np.ones(len(elements)))
        drawn, children = self._counts(edge.parent.name, elements)
        return Rows(*among(self.pairs[edge], elements), children / np.maximum(drawn, 1))

    def _counts(self, name: str, elements: Ints) -> tuple[Ints, Ints]:
        """Return |D_i| and N_i over the tables that are drawn from."""
        drawn = np.zeros(len(elements), dtype=np.int64)
        children = np.zeros(len(elements), dtype=np.int64)
        for edge in self._drawn_edges(name):
            everyone = self.pairs[edge][0]
            found = np.searchsorted(everyone, elements, side="right")
            found = found - np.searchsorted(everyone, elements, side="left")
            drawn += found // edge.fan
            children += edge.children[elements]
        return drawn, children

    def read(self, name: str, elements: Ints) -> Ints:
        edges = self._drawn_edges(name)
        if not edges:
            return self.network.child_counts[name][elements]
        return self._counts(name, elements)[0]

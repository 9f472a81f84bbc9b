"""Algorithm 1 of the paper: every element draws some of its own children."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from svmp.errors import ModelError
from svmp.inference.methods.draw import ONE, Draw, Reading, by_colour
from svmp.inference.methods.draw_rows import sample_each
from svmp.inference.methods.method import MOST, Method, Option, check_count, check_option
from svmp.inference.methods.settings import Setting
from svmp.kernels.multilinear.updater import Multilinear
from svmp.kernels.multilinear.work import Drawn, Work
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.validation import shown


@dataclass(frozen=True)
class Children(Method):
    """Algorithm 1: every element reads at most C of its children, drawn without replacement.

    Parameters
    ----------
    C
        Most children to read: one number, one for each variable by name, or a function from the
        child counts of a variable's elements to the number that each reads.
    option
        "a": a new value is used at once; "b": all new values are used from the next iteration.
    share_draw
        Whether the elements of one variable that have the same children (a user's factors) read the
        same draw in an iteration, which costs less than a draw for each.
    order
        Names of the hidden variables in the order of their updates.

    >>> Children(0)
    Traceback (most recent call last):
    svmp.errors.ModelError: C must be a whole number of at least 1, not 0
    """

    title: ClassVar[str] = "Algorithm 1: C children each"
    shares_rows: ClassVar[bool] = False
    settings: ClassVar[dict[str, Setting]] = {
        "C": Setting(1, 1, 100_000, "Children read, C", whole=True)
    }
    C: int | Mapping[str, int] | Callable[[Ints], Ints]
    option: Option = "a"
    share_draw: bool = False
    order: Sequence[str] | None = None
    joint: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        check_option(self.option)
        numbers = self.C.values() if isinstance(self.C, Mapping) else [self.C]
        for number in numbers:
            if not callable(number):
                check_count("C", number)

    def most(self, name: str, children: Ints) -> Ints:
        """Return the largest number of children that each element reads."""
        most = self.C(children) if callable(self.C) else self.C
        if isinstance(most, Mapping):
            if name not in most:
                raise ModelError(f"C has no number for the hidden variable '{name}'")
            most = most[name]
        if isinstance(most, int) and most >= 1:
            return np.minimum(min(most, MOST), children)
        numbers = np.asarray(most)
        whole = numbers.dtype.kind in "iu" and numbers.shape in ((), children.shape)
        if not whole or np.any(numbers < np.minimum(children, 1)):
            raise ModelError(
                f"C must give each element of '{name}' a whole number of at least 1, not "
                f"{shown(most)}"
            )
        return np.minimum(np.broadcast_to(numbers.astype(np.int64), children.shape), children)

    def draw(self, network: Network, seed: int, iteration: int) -> Draw:
        return DrawnChildren(network, self.most, self.share_draw, seed, iteration)

    def with_children(self, C: int) -> Children:
        return replace(self, C=C)

    @property
    def label(self) -> str:
        return f"Algorithm 1 ({self.option}), C = {self.C}"


@dataclass(frozen=True, eq=False)
class DrawnChildren(Draw):
    """At most C children of each element, from all tables that depend on it."""

    most: Callable[[str, Ints], Ints]
    share_draw: bool
    seed: int
    iteration: int

    def groups(self, name: str) -> list[Ints]:
        if name not in self.network.locals:
            return self.network.groups[name]
        around = self.network.edges_around(name)
        if not around:
            return self.network.groups[name]
        touched = np.unique(np.concatenate([self._tied(name, edge) for edge in around]))
        return by_colour(self.network, name, touched)

    def _tied(self, local: str, edge: Edge) -> Ints:
        """Return the elements of a local variable whose rows are read along an edge."""
        elements = np.arange(edge.parent.size)
        rows = self.rows(edge, elements).rows
        rows = rows if edge.choosing else rows // edge.conditional.components
        table = edge.conditional.variable
        if table.name == local:
            return rows
        down = next(e for e in self.network.edges[local] if e.conditional.variable is table)
        return down.pairs_in(np.unique(rows))[0]

    def rows(self, edge: Edge, elements: Ints) -> Reading:
        name = edge.parent.name
        children = self.network.child_counts[name][elements]
        take = self.read(name, elements)
        stream = self.network.draw_keys(name)[elements] if self.share_draw else elements
        number = list(self.network.hidden).index(name)
        chosen = sample_each(self.seed, self.iteration, number, stream, children, take)
        owner = np.repeat(np.arange(len(elements)), take)
        before = np.zeros(len(elements), dtype=np.int64)  # children in earlier tables
        for other in self.network.edges[name]:
            if other is edge:
                break
            before += other.children[elements]
        place = chosen - before[owner]
        here = (place >= 0) & (place < edge.children[elements][owner])
        owner, rows = edge.children_at(elements, owner[here], place[here])
        return Reading(owner, rows, children / np.maximum(take, 1))

    def reads_all(self, table: str) -> bool:
        return False

    def read(self, name: str, elements: Ints) -> Ints:
        return self.most(name, self.network.child_counts[name][elements])

    def work(self, loops: Multilinear, name: str) -> Work:
        operand = loops.operand(name)
        every = loops.all_rows(operand.column)
        take, number = self.most(name, every.counts), list(self.network.hidden).index(name)
        if loops.draws and not self.share_draw:
            drawn = Drawn(self.seed, self.iteration, number, take)
            return Work(every, every.keys, ONE, take, every.counts, drawn)
        first = every.keys * operand.width  # whose random stream all elements of a key share
        chosen = sample_each(self.seed, self.iteration, number, first, every.counts, take)
        some = every.at(every.begin.repeat(take) + chosen, take)
        return Work(some, every.keys, every.counts / np.maximum(take, 1), take, every.counts)

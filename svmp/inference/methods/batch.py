"""Algorithm 2 of the paper: one draw of observations, or of groups of them, for all elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.methods.draw import Draw, Pairs, Reading, among, by_colour, with_locals
from svmp.inference.methods.draw_rows import sample_each
from svmp.inference.methods.groups import DrawnGroups, DrawnSubchains, draw_groups
from svmp.inference.methods.method import MOST, Method, Option, check_count, check_option
from svmp.inference.methods.settings import Setting
from svmp.kernels.multilinear.table import Keyed
from svmp.kernels.multilinear.work import Work
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.grouping import Grouping
from svmp.network.network import Network
from svmp.network.validation import check_real, shown, text


@dataclass(frozen=True)
class Batch(Method):
    """Algorithm 2: one draw of `size` observations; elements with a child among them are updated.

    Variables without observed children, such as hyper-parameters, read all their children.

    With `over`, the name of a dim, `size` elements of that dim are drawn, each with all of its
    rows: for example documents, as in Hoffman, Blei, Wang & Paisley (2013). The variables that
    belong to them alone (a document's shares of topics, its tokens' topics) are optimised first,
    by coordinate ascent until they converge. Then every global variable is updated, with the
    messages of the drawn rows scaled by the number of groups over the number of groups drawn.

    With `over` the dim of a chain's rows and a `length`, `size` subchains of about so many rows of
    its sequences are drawn, for sequences that are long (Foti, Xu, Laird & Fox, 2014). Each is
    smoothed with a buffer of rows on either side, which grows until the rows beyond it tell less
    than `tolerance` about the state at the end of the subchain. At the end of the run, and for each
    exact bound, all rows are smoothed. The trace has the columns `buffer`, the rows of the longest
    buffer so far, and `buffer_left`, the most that was left untold.

    Parameters
    ----------
    size
        Number of observations to draw; with `over`, number of elements of that dim; with `length`,
        number of subchains.
    option
        "a": a new value is used at once; "b": all new values are used from the next iteration.
    order
        Names of the hidden variables in the order of their updates.
    over
        The dim whose elements are drawn instead of observations.
    length
        Most rows of a subchain. Buffers are read in addition, so it should be several times as long
        as these.
    tolerance
        Mutual information, in nats, of the states at the two ends of a buffer that is long enough.
        On average, knowing the outer one would change the probabilities of the inner one by at most
        sqrt(tolerance / 2).
    """

    title: ClassVar[str] = "Algorithm 2: one batch"
    settings: ClassVar[dict[str, Setting]] = {
        "size": Setting(1000, 1, 1_000_000, "Batch size", whole=True)
    }
    size: int
    option: Option = "a"
    order: Sequence[str] | None = None
    over: str | None = None
    length: int | None = None
    tolerance: float = 1e-6
    joint: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        check_option(self.option)
        check_count("size", self.size)
        if self.over is not None:
            text(self.over, "over")
        if self.length is not None:
            check_count("length", self.length)
            if self.over is None:
                raise ModelError("length needs over=, the dimension of the rows of a chain")
        check_real(tolerance=self.tolerance)
        if not 0 < self.tolerance < 1:
            raise ModelError(f"tolerance must be between 0 and 1, not {shown(self.tolerance)}")

    def grouping(self, network: Network) -> Grouping | None:
        return None if self.over is None else network.grouped(self.over, self.length)

    def draw(self, network: Network, seed: int, iteration: int) -> Draw:
        grouping = self.grouping(network)
        if grouping is not None:
            drawn = draw_groups(grouping.count, min(self.size, MOST), seed, iteration)
            if self.length is not None:
                return DrawnSubchains(network, grouping, drawn, self.tolerance)
            return DrawnGroups(network, grouping, drawn)
        total = np.array([sum(v.count for v in network.observed.values())])
        take = np.minimum(min(self.size, MOST), total)
        number = len(network.hidden)  # the random stream after those of the variables
        chosen = sample_each(seed, iteration, number, np.zeros(1, dtype=np.int64), total, take)
        return DrawnBatch(network, np.sort(chosen))

    def visited_parts(self, sizes: Ints, seed: int, iteration: int) -> Ints:
        """Return as many parts as have `size` rows between them, at least one."""
        each = max(int(np.median(sizes[sizes > 0])), 1) if sizes.any() else 1
        count = min(max(1, round(min(self.size, MOST) / each)), len(sizes))
        return draw_groups(len(sizes), count, seed, iteration)

    @property
    def label(self) -> str:
        return f"Algorithm 2 ({self.option}), {self.size:,} a batch"


@dataclass(frozen=True, eq=False)
class DrawnBatch(Draw):
    """The observations of one batch, and the local variables of their rows.

    Attributes
    ----------
    chosen
        Numbers of the drawn observations, ascending, counted over all observed tables in the
        order of their declaration.
    """

    chosen: Ints

    @cached_property
    def batch_share(self) -> float:
        return len(self.chosen) / sum(v.count for v in self.network.observed.values())

    @cached_property
    def tables(self) -> dict[str, Ints]:
        """Drawn rows of every observed table, and of local variables."""
        observed = list(self.network.observed.values())
        ends = np.cumsum([v.count for v in observed])
        cuts = np.searchsorted(self.chosen, ends)
        parts = np.split(self.chosen, cuts[:-1])
        tables = {}
        for variable, part, end in zip(observed, parts, ends, strict=True):
            places = part - (end - variable.count)
            tables[variable.name] = places if variable.present is None else variable.present[places]
        return with_locals(self.network, tables)

    @cached_property
    def pairs(self) -> Pairs:
        """For each edge to a drawn table, its (element, row) pairs, by element."""
        return Pairs(self.tables)

    def _drawn_edges(self, name: str) -> list[Edge]:
        return [e for e in self.network.edges[name] if e in self.pairs]

    def groups(self, name: str) -> list[Ints]:
        edges = self._drawn_edges(name)
        if name in self.network.locals:
            return by_colour(self.network, name, self.tables[name])
        if not edges:
            return self.network.groups[name]
        touched = np.concatenate([np.flatnonzero(self.pairs.children(e)) for e in edges])
        return by_colour(self.network, name, np.union1d(touched, self._childless(name)))

    def _childless(self, name: str) -> Ints:
        """Return the elements without a child in any sampled table."""
        children = sum(e.children for e in self._drawn_edges(name))
        return np.flatnonzero(children == 0)

    def rows(self, edge: Edge, elements: Ints) -> Reading:
        if edge not in self.pairs:
            return Reading(*edge.rows_of(elements), np.ones(len(elements)))
        return Reading(*among(self.pairs[edge], elements), self.scale(edge.parent.name, elements))

    def drawn_rows(self, table: str) -> Ints | None:
        return self.tables.get(table)

    def scale(self, name: str, elements: Ints) -> Array:
        drawn, children = self._counts(name, elements)
        return children / np.maximum(drawn, 1)

    def _counts(self, name: str, elements: Ints) -> tuple[Ints, Ints]:
        """Return |D_i| and N_i over the sampled tables."""
        drawn = np.zeros(len(elements), dtype=np.int64)
        children = np.zeros(len(elements), dtype=np.int64)
        for edge in self._drawn_edges(name):
            drawn += self.pairs.children(edge)[elements]
            children += edge.children[elements]
        return drawn, children

    def read(self, name: str, elements: Ints) -> Ints:
        edges = self._drawn_edges(name)
        if not edges:
            return self.network.child_counts[name][elements]
        return self._counts(name, elements)[0]

    def children_drawn(self, edge: Edge) -> Ints:
        return self.pairs.children(edge) if edge in self.pairs else edge.children

    def share_out(self, drawn: Keyed, every: Keyed, name: str) -> Work:
        if name in self.locals:
            return super().share_out(drawn, every, name)
        read, counts = drawn.counts, every.counts
        keys = np.flatnonzero((read > 0) | (counts == 0))
        scale = counts / np.maximum(read, 1)
        return Work(drawn, keys, scale[keys], read[keys], counts[keys])

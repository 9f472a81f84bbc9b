"""Full VB on a sample of the observations that grows until it is all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from svmp.errors import ModelError
from svmp.inference.methods.draw import (
    AllRows,
    Draw,
    Pairs,
    Reading,
    among,
    by_colour,
    with_locals,
)
from svmp.inference.methods.method import Method, Option
from svmp.inference.methods.settings import Setting
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.validation import check_real, shown

DOUBLINGS = 1000
"""Enough doublings for any first sample to grow to all rows, without overflow."""

WHILE_GROWING = 1.3
"""Largest factor of over-relaxation while the sample grows."""
OMEGA_STEP, LARGEST_OMEGA = 0.2, 1.8
"""Increase of the largest factor with each sweep over all rows, and its limit."""
RAMP = 8
"""More sweeps than the increase takes."""


@dataclass(frozen=True)
class Growing(Method):
    """Full VB on a sample of the observations that grows until it is all of them.

    Every iteration is coordinate ascent on the exact bound of a smaller data set, so steps have
    unit length and nothing can diverge. Sweeps over a small sample are cheap, and their result is
    the start of the next, larger sample. The sample doubles each time that `pace` sweeps' worth of
    accesses have been spent, and all samples together cost one sweep at most.
    With `first=1` it is full VB from the start.

    Parameters
    ----------
    first
        Share of the observations in the first sample.
    pace
        Accesses between doublings, as a share of a sweep over all of them.
    joint
        Whether to solve for elements in one sum of a mean together: the factors of a user;
        intercepts, slopes and group effects, up to 512 of them. The solution is the limit of
        updating them one after the other, given all else.
    relax
        Whether to move the means of blocks that are solved together beyond their solution, where
        blocks share rows (over-relaxation): fewer sweeps lead to the same bound.
    order
        Names of the hidden variables in the order of their updates. Variables that are solved
        together are updated in place of the first of them.
    """

    title: ClassVar[str] = "Full VB on a growing sample"
    unit_steps: ClassVar[bool] = True
    settings: ClassVar[dict[str, Setting]] = {
        "first": Setting("1/32", 0.0001, 1, "First share of rows"),
        "pace": Setting(0.2, 0.01, 100, "Sweeps to double"),
    }
    first: float = 1 / 32
    pace: float = 0.2
    joint: bool = True
    relax: bool = True
    order: Sequence[str] | None = None
    option: Option = field(default="a", init=False, repr=False)

    def __post_init__(self) -> None:
        check_real(first=self.first, pace=self.pace)
        if not 0 < self.first <= 1 or not self.pace > 0:
            given = f"{shown(self.first)} and {shown(self.pace)}"
            raise ModelError(f"Growing needs first in (0, 1] and a positive pace, not {given}")

    def share(self, iteration: int) -> float:
        """Return the share of the observations that an iteration reads."""
        return 1.0 if self.reads_all(iteration) else self._shares[max(iteration, 1) - 1]

    @cached_property
    def _shares(self) -> list[float]:
        """The shares that are less than one, which come first."""
        found, share, spent = list[float](), self.first, 0.0
        while share < 1 and spent + share <= 1:
            found.append(share)
            spent += share
            share = self.first * 2.0 ** int(min(spent / self.pace, DOUBLINGS))
        return found

    @property
    def relaxes(self) -> bool:  # type: ignore[override]
        """Whether means are over-relaxed."""
        return self.relax and self.joint

    def relaxation(self, iteration: int) -> float:
        sweeps = self.whole_sweeps(iteration)
        if iteration == 1 or (iteration == 2 and self.first == 1):  # no rate is known yet
            return 1.0
        if sweeps == 0:
            return WHILE_GROWING
        earlier = sweeps - 1 if self.first == 1 else sweeps + 1  # some sweeps over samples
        return min(1 + OMEGA_STEP * earlier, LARGEST_OMEGA)

    def rotates(self, iteration: int) -> bool:
        before = 2 if self.first == 1 else 1
        return self.relaxes and self.whole_sweeps(iteration) == before + 1

    def whole_sweeps(self, iteration: int) -> int:
        """Return how many of the iterations up to this one read all rows, up to `RAMP`."""
        return min(max(iteration - len(self._shares), 0), RAMP)

    def draw(self, network: Network, seed: int, iteration: int) -> Draw:
        if self.reads_all(iteration):
            network.derived.pop("sample", None)
            return AllRows(network)
        share = self.share(iteration)
        known: Sampled | None = network.derived.get("sample")
        if known is None or (known.seed, known.share) != (seed, share):
            known = network.derived["sample"] = Sampled(network, share, seed)
        return known

    def visited_parts(self, sizes: Ints, seed: int, iteration: int) -> Ints:
        """Return the first parts of a random order whose rows make up the sample."""
        share = self.share(iteration)
        if share >= 1:
            return np.arange(len(sizes))
        order = np.random.default_rng([seed, 7]).permutation(len(sizes))
        rows = np.cumsum(sizes[order])
        count = 1 + int(np.searchsorted(rows, share * rows[-1] * (1 - 1e-9)))
        return np.sort(order[: min(count, len(sizes))])

    def reads_all(self, iteration: int) -> bool:
        return max(iteration, 1) > len(self._shares)

    @property
    def label(self) -> str:
        return f"A sample that grows from {self.first:.3g} of the rows"


@dataclass(frozen=True, eq=False)
class Sampled(Draw):
    """A sample of the observations, used as if it were all; samples of one seed are nested."""

    share: float
    seed: int

    @cached_property
    def tables(self) -> dict[str, Ints]:
        """Sampled rows of every observed table, and of local variables."""
        tables = {}
        for index, (name, variable) in enumerate(self.network.observed.items()):
            rng = np.random.default_rng([self.seed, index, 3])
            count = max(1, round(self.share * variable.count))
            tables[name] = np.sort(rng.permutation(variable.rows)[:count])
        return with_locals(self.network, tables)

    @cached_property
    def pairs(self) -> Pairs:
        """For each edge to a sampled table, its (element, row) pairs, by element."""
        return Pairs(self.tables)

    def groups(self, name: str) -> list[Ints]:
        if name in self.network.locals:
            return by_colour(self.network, name, self.tables[name])
        return self.network.groups[name]

    def drawn_rows(self, table: str) -> Ints | None:
        return self.tables.get(table)

    def rows(self, edge: Edge, elements: Ints) -> Reading:
        if edge not in self.pairs:
            return Reading(*edge.rows_of(elements), np.ones(len(elements)))
        return Reading(*among(self.pairs[edge], elements), np.ones(len(elements)))

    def read(self, name: str, elements: Ints) -> Ints:
        read = np.zeros(len(elements), dtype=np.int64)
        for edge in self.network.edges[name]:
            read += self.children_drawn(edge)[elements]
        return read

    def children_drawn(self, edge: Edge) -> Ints:
        return self.pairs.children(edge) if edge in self.pairs else edge.children

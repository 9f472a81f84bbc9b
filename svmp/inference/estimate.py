"""An unbiased estimate of the bound from a sample of rows, and its standard error.

The bound is a sum over rows. With n of the N rows of a table, drawn without replacement, whose
terms have mean m and standard deviation s,

    N m    and    N (s / sqrt(n)) sqrt(1 - n / N)

are the estimate of their sum and its standard error. A row counts with its local variables,
optimised for it: one draw serves both, and what they have in common cancels. Tables are drawn from
independently, so that their variances add up; a small table is read whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.inference.scratch import NONE, locals_of, scratch_copy
from svmp.inference.scratch import optimise as optimise_elements
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.network import Network

LARGE = 100_000
"""The bound is estimated where there are more observed rows than this; else it is cheap."""
PART = 100
"""One of so many rows is drawn, and one of so many accesses is spent on it."""
FEWEST, MOST = 1_000, 20_000
"""Limits to the rows drawn from a table."""


class SampledTable(NamedTuple):
    """The rows of a variable that are drawn from: how many, and which, or None for all."""

    length: int
    rows: Ints | None

    def at(self, places: Ints) -> Ints:
        """Return some of the rows, by place."""
        return places if self.rows is None else self.rows[places]


@dataclass(frozen=True)
class Estimator:
    """Estimates the bound of a network.

    Attributes
    ----------
    tables
        By variable, the rows that are drawn from. Those of local variables go with their rows.
    """

    network: Network
    tables: Mapping[str, SampledTable]

    @classmethod
    def of(cls, network: Network) -> Estimator | None:
        """Return an estimator where the rows are many."""
        if sum(v.count for v in network.observed.values()) <= LARGE:
            return None
        return cls(network, tables(network))

    def accesses(self, more: int = 0) -> int:
        """Return how many accesses pay for an estimate, and for some more rows read beside it."""
        return PART * (more + sum(size(table.length) for table in self.tables.values()))

    def draw(self, seed: int, iteration: int) -> dict[str, Ints]:
        """Draw rows of each table without replacement; the same for the same two numbers."""
        sample = {}
        for number, (name, table) in enumerate(self.tables.items()):
            rng = np.random.default_rng([seed, iteration, number, 5])
            chosen = rng.choice(table.length, size(table.length), replace=False, shuffle=False)
            sample[name] = table.at(np.sort(chosen))
        return sample

    def estimate(
        self, q: Beliefs, sample: Mapping[str, Ints], optimise: bool
    ) -> tuple[float, float]:
        """Return the estimate of the bound of q and its standard error.

        Parameters
        ----------
        q
            It is left as it is.
        sample
            Some rows of each table, ascending.
        optimise
            Whether the local variables of these rows are optimised first, as those of all rows are
            for the exact bound where an algorithm draws rows; else they are as in q.
        """
        network = self.network
        owned = {
            table: {local: locals_of(network, local, table, rows) for local in network.locals}
            for table, rows in sample.items()
            if table in network.observed
        }
        if optimise:
            elements = {
                local: np.concatenate(
                    [sample.get(local, NONE), *(found[local][0] for found in owned.values())]
                )
                for local in network.locals
            }
            q = scratch_copy(network, q, elements)
            optimise_elements(network, q, elements)
        total = variance = 0.0
        for table, rows in sample.items():
            terms = network.terms(q, table, rows)
            for local, (found, row) in owned.get(table, {}).items():
                np.add.at(terms, np.searchsorted(rows, row), network.terms(q, local, found))
            part, spread = expand(terms, self.tables[table].length)
            total, variance = total + part, variance + spread
        rounding = np.finfo(np.float64).eps * abs(total)  # never 0, which means exact
        return total, max(float(np.sqrt(variance)), rounding)


def tables(network: Network) -> dict[str, SampledTable]:
    """Return the rows that the bound is a sum over, by variable; a local's go with their rows."""
    variables = (*network.hidden.values(), *network.observed.values())
    return {
        v.name: SampledTable(len(network.rows(v)), network.present[v.name])
        for v in variables
        if v.name not in network.locals and len(network.rows(v))
    }


def size(count: int) -> int:
    """Return how many of a table's rows are drawn.

    >>> size(500), size(150_000), size(10**9)
    (500, 1500, 20000)
    """
    return min(count, MOST, max(FEWEST, count // PART))


def expand(terms: Array, count: int) -> tuple[float, float]:
    """Return the estimated sum of `count` terms, of which some are known, and its variance.

    >>> expand(np.array([1.0, 3.0]), 2), expand(np.array([1.0, 3.0]), 4)
    ((4.0, 0.0), (8.0, 8.0))
    """
    known = len(terms)
    if known == count:
        return float(terms.sum()), 0.0
    spread = float(terms.var(ddof=1)) / known * (1 - known / count)
    return count * float(terms.mean()), count**2 * spread

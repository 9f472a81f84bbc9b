"""An unbiased estimate of the bound from a sample of rows, and its standard error.

The bound is a sum over rows. With n of the N rows of a table, drawn without replacement, whose
terms have mean m and standard deviation s,

    N m    and    N (s / sqrt(n)) sqrt(1 - n / N)

are the estimate of their sum and its standard error. The term of a row includes those of its local
variables, which are optimised first: one draw serves both, and their common part cancels. Tables
are sampled independently, so that their variances add up; a small table is read in full.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.inference.running.scratch import NONE, locals_of, scratch_copy
from svmp.inference.running.scratch import optimise as optimise_elements
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.network import Network

LARGE = 100_000
"""Most observed rows for which no estimates are made: there the exact bound is cheap."""
PART = 100
"""One row in this many is drawn, and one access in this many is spent on estimates."""
FEWEST, MOST = 1_000, 20_000
"""Least and most rows drawn from a table."""


class SampledTable(NamedTuple):
    """The rows of a variable to draw from: their number, and their indices or None for all."""

    length: int
    rows: Ints | None

    def at(self, places: Ints) -> Ints:
        """Return the rows at some positions."""
        return places if self.rows is None else self.rows[places]


@dataclass(frozen=True)
class Estimator:
    """Estimates the bound of a network.

    Attributes
    ----------
    tables
        By variable, the rows to draw from. Local variables are counted with their rows.
    """

    network: Network
    tables: Mapping[str, SampledTable]

    @classmethod
    def of(cls, network: Network) -> Estimator | None:
        """Return an estimator if there are many rows, and no chains among them; else None."""
        if network.chains or sum(v.count for v in network.observed.values()) <= LARGE:
            return None
        return cls(network, tables(network))

    def accesses(self, more: int = 0) -> int:
        """Return the number of accesses between estimates, if each reads `more` rows besides."""
        return PART * (more + sum(size(table.length) for table in self.tables.values()))

    def draw(self, seed: int, iteration: int) -> dict[str, Ints]:
        """Draw rows of each table without replacement; the same for the same seed and iteration."""
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
            The approximate posterior, which is not changed.
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
            q.blocks = tuple(block.without(elements) for block in q.blocks)
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
    """Return the rows that the bound is a sum over, by variable; locals count with their rows."""
    variables = (*network.hidden.values(), *network.observed.values())
    return {
        v.name: SampledTable(len(network.rows(v)), network.present[v.name])
        for v in variables
        if v.name not in network.locals and len(network.rows(v))
    }


def size(count: int) -> int:
    """Return the number of rows to draw from a table.

    >>> size(500), size(150_000), size(10**9)
    (500, 1500, 20000)
    """
    return min(count, MOST, max(FEWEST, count // PART))


def expand(terms: Array, count: int) -> tuple[float, float]:
    """Return the estimated sum of `count` terms from a sample of them, and its variance.

    >>> expand(np.array([1.0, 3.0]), 2), expand(np.array([1.0, 3.0]), 4)
    ((4.0, 0.0), (8.0, 8.0))
    """
    known = len(terms)
    if known == count:
        return float(terms.sum()), 0.0
    spread = float(terms.var(ddof=1)) / known * (1 - known / count)
    return count * float(terms.mean()), count**2 * spread

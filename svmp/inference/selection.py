"""Which rows an element reads in an update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from svmp.network.grid import Ints
from svmp.network.network import Edge


class Rows(NamedTuple):
    """The rows that some elements read: whose each is (by position), and its number."""

    owner: Ints
    rows: Ints


class Selection(Protocol):
    """An algorithm's choice of rows."""

    order: Sequence[str] | None

    def rows(self, edge: Edge, elements: Ints) -> Rows:
        """Return the rows of one table that the elements read."""
        ...


@dataclass(frozen=True)
class FullVB(Selection):
    """Full variational Bayes: every element reads all of its rows, and steps have unit length.

    Parameters
    ----------
    order
        Names of the hidden variables in the order of their updates. By default the variables of
        the rows themselves come first, then the others as they were declared.
    """

    order: Sequence[str] | None = None

    def rows(self, edge: Edge, elements: Ints) -> Rows:
        return Rows(*edge.rows_of(elements))

"""q: the natural parameter and the moments of every hidden variable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from svmp.families.family import Array
from svmp.network.grid import Ints
from svmp.network.joint_normal import JointNormal


class RowLosses(NamedTuple):
    """Sums of E[(y - mu)^2] over all rows of a table, which an update of a parent has computed.

    Attributes
    ----------
    table, names
        The table, and the variables on whose q the sums depend.
    column, sums
        The key by which rows are summed, and the sum of each key.
    weighted
        Whether rows are multiplied by the expected precision of their noise.
    rows
        The rows as they were read.
    """

    table: str
    names: frozenset[str]
    column: int
    sums: Array
    weighted: bool
    rows: object


class Implicit(Protocol):
    """A variable whose q is not stored, but computed from the q of the others."""

    def natural(self, q: Beliefs, elements: Ints) -> Array:
        """Return the natural parameters of some elements."""
        ...

    def moments(self, q: Beliefs, elements: Ints) -> Array:
        """Return the moments of some elements."""
        ...


@dataclass
class Beliefs:
    """The approximate posterior, factorised but within chains and within joint blocks.

    Attributes
    ----------
    natural, moments
        By variable, arrays of (elements, size); moments belong to the natural parameters.
        Exceptions are copies that are only read by messages (`at_means`, starts/seeding.py).
    means
        E[mu] of every row of some tables, kept up to date by `Network.move`.
    implicit
        Variables that are not stored, by name. They are in neither `natural` nor `moments`.
    row_moments
        By table, a compiled function that returns E[mu] and E[mu^2] of some of its rows, if there
        is one.
    joint
        By chain, the arrays that with its marginals determine the joint q of each sequence
        (network/chains/chain.py).
    blocks
        Blocks of variables that are jointly Normal; their marginals are in `natural` and `moments`.
    version
        Number of changes so far, by which caches are invalidated.
    losses, losses_version
        By table, sums over its rows that hold for the q of a version.
    """

    natural: dict[str, Array] = field(default_factory=dict)
    moments: dict[str, Array] = field(default_factory=dict)
    means: dict[str, Array] = field(default_factory=dict)
    implicit: dict[str, Implicit] = field(default_factory=dict)
    row_moments: dict[str, Callable[[Beliefs, Ints], Array]] = field(default_factory=dict)
    joint: dict[str, dict[str, NDArray[Any]]] = field(default_factory=dict)
    blocks: tuple[JointNormal, ...] = ()
    version: int = 0
    losses: dict[str, RowLosses] = field(default_factory=dict)
    losses_version: int = -1

    def copy(self) -> Beliefs:
        """Return a copy with its own arrays."""
        natural, moments, means = (
            {name: array.copy() for name, array in arrays.items()}
            for arrays in (self.natural, self.moments, self.means)
        )
        joint = {name: {k: a.copy() for k, a in own.items()} for name, own in self.joint.items()}
        return Beliefs(natural, moments, means, self.implicit, self.row_moments, joint, self.blocks)

    def changed(self, name: str, barren: bool = False) -> None:
        """Note that the q of a variable has changed; forget the losses that depend on it.

        None do if only `barren` elements have changed.
        """
        if self.losses_version == self.version:
            self.losses_version += 1
            if not barren:
                kept = ((t, found) for t, found in self.losses.items() if name not in found.names)
                self.losses = dict(kept)
        self.version += 1

    def keep_losses(self, found: RowLosses) -> None:
        """Keep the losses of a table, until a variable changes on which they depend."""
        if self.losses_version != self.version:
            self.losses.clear()
        self.losses[found.table], self.losses_version = found, self.version

    def known_losses(self, table: str) -> RowLosses | None:
        """Return the losses of a table at the present q, if they are known."""
        return self.losses.get(table) if self.losses_version == self.version else None

    def at(self, name: str, elements: Ints) -> Array:
        """Return the moments of some elements of a variable, stored or not."""
        if name in self.implicit:
            return self.implicit[name].moments(self, elements)
        return self.moments[name].take(elements, axis=0)

    def natural_at(self, name: str, elements: Ints) -> Array:
        """Return the natural parameters of some elements of a variable, stored or not."""
        if name in self.implicit:
            return self.implicit[name].natural(self, elements)
        return self.natural[name].take(elements, axis=0)

    def joins(self, table: str) -> bool:
        """Return whether rows of a table read several elements that are jointly Normal."""
        return any(table in block.pairs for block in self.blocks)

    def added(self, table: str, rows: Ints) -> Array:
        """Return what covariances add to the second moment of the mean of some rows of a table."""
        found = [block.added(table, rows) for block in self.blocks if table in block.pairs]
        return found[0] if len(found) == 1 else np.sum(found, axis=0)

    def total_correlation(self, name: str) -> float:
        """Return the total correlation of a block for its first variable, and 0 for others."""
        if not self.blocks:
            return 0.0
        return sum(b.total_correlation for b in self.blocks if b.layout.names[0] == name)

    def block_of(self, name: str) -> JointNormal | None:
        """Return the block that a variable is in, if it is in one."""
        return next((b for b in self.blocks if name in b.layout.starts), None)

"""The posterior of a chain of vectors as users read it: marginals, pairs and joint draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.chains.continuing import Continued
from svmp.network.chains.linear_chain import LinearChain
from svmp.network.chains.sequences import Sequences
from svmp.network.chains.vector_paths import VectorPaths
from svmp.network.validation import whole
from svmp.network.variable import Variable
from svmp.posterior.marginals.chain_posterior import before, shifted
from svmp.posterior.marginals.posterior import Posterior


@dataclass(frozen=True, eq=False, repr=False)
class VectorChainPosterior(Posterior):
    """The approximate posterior of a chain of vectors, one block for each sequence.

    Its parameters, mean and variance are those of the marginals. Draws are of whole sequences.

    Attributes
    ----------
    sequence
        The sequence of each row, as a number.
    order
        All rows, those of a sequence together and in their order.
    cross
        Cov[x_t, x_(t-1)] of each row, (rows, K, K); 0 for first rows.
    continued
        The sequences that went on from an earlier fit.
    """

    sequence: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    order: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    cross: Array = field(default_factory=lambda: np.zeros((0, 0, 0)))
    continued: Continued | None = None

    @classmethod
    def of(cls, variable: Variable, q: Beliefs) -> VectorChainPosterior:
        """Return the posterior of a chain of vectors in q."""
        chain, name = variable.conditional, variable.name
        assert isinstance(chain, LinearChain)
        rows = chain.sequences.code, chain.sequences.order
        plate, dims = variable.plate.shape, variable.dims
        joint = q.joint[name]
        on, cross = Continued.of(joint), joint["cross"]
        return cls(name, dims, plate, variable.family, q.natural[name], *rows, cross, on)

    @classmethod
    def joined(
        cls, variable: Variable, parts: Sequence[VectorChainPosterior]
    ) -> VectorChainPosterior:
        """Return the posterior of a chain whose sequences lie in parts, part after part."""
        rows = before([p.sequence for p in parts])
        counts = [int(p.sequence.max(initial=-1)) + 1 for p in parts]
        sequences = [0, *np.cumsum(counts)[:-1].tolist()]
        return cls(
            variable.name,
            variable.dims,
            variable.plate.shape,
            variable.family,
            np.concatenate([p.natural for p in parts]),
            shifted([p.sequence for p in parts], sequences),
            shifted([p.order for p in parts], rows),
            np.concatenate([p.cross for p in parts]),
        )

    @cached_property
    def paths(self) -> VectorPaths:
        """The structured q."""
        count = int(self.sequence.max(initial=-1)) + 1
        starts = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.sequence, minlength=count), out=starts[1:])
        sequences = Sequences("sequence", count, self.sequence, self.order, starts)
        size = self.cross.shape[-1]
        moments = self.family.moments(self.natural)
        mean, square = moments[:, :size], moments[:, size:].reshape(-1, size, size)
        return VectorPaths(
            sequences, mean, square - mean[:, :, None] * mean[:, None, :], self.cross
        )

    def pairs(self, rows: Any) -> Array:
        """Return Cov[x_t, x_(t-1)] at some rows, (rows, K, K); 0 at the first of a sequence."""
        some = np.atleast_1d(whole(rows, len(self.sequence), f"the rows of '{self.name}'"))
        return np.array(self.cross[some])

    def _draws(self, rng: np.random.Generator, size: int) -> Array:
        """Return draws of whole sequences."""
        return self.paths.draw(rng, size)

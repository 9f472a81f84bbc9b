"""The posterior of a chain of states as users read it: marginals, pairs, paths and joint draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.chains.chain_paths import StatePaths
from svmp.network.chains.discrete_chain import DiscreteChain
from svmp.network.chains.sequences import Sequences
from svmp.network.validation import whole
from svmp.network.variable import Variable
from svmp.posterior.marginals.posterior import Posterior

KEPT = ("potential", "transition", "version")
"""The arrays of a joint q that determine it."""
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class ChainPosterior(Posterior):
    """The approximate posterior of a chain of states, one block for each sequence.

    The mean has the marginal probabilities of the states of each row. What a sequence says as a
    whole is in `path`, `pairs`, `draw` and `filtered`.

    Attributes
    ----------
    sequence
        The sequence of each row, as a number.
    order
        All rows, those of a sequence together and in their order.
    group
        Which of the different transition matrices leads to each row.
    joint
        The arrays that with the marginals determine q: see network/chains/chain.py.
    """

    sequence: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    order: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    group: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    joint: Arrays = field(default_factory=dict)

    @classmethod
    def of(cls, variable: Variable, q: Beliefs) -> ChainPosterior:
        """Return the posterior of a chain of states in q."""
        chain = variable.conditional
        assert isinstance(chain, DiscreteChain)
        joint = {key: q.joint[variable.name][key] for key in KEPT}
        rows = chain.sequences.code, chain.sequences.order, chain.group
        natural = q.natural[variable.name]
        plate, dims = variable.plate.shape, variable.dims
        return cls(variable.name, dims, plate, variable.family, natural, *rows, joint)

    @classmethod
    def joined(cls, variable: Variable, parts: Sequence[ChainPosterior]) -> ChainPosterior:
        """Return the posterior of a chain whose sequences lie in parts, part after part."""
        rows, sequences = before([p.sequence for p in parts]), before([p._versions for p in parts])
        versions = before([p.joint["transition"] for p in parts])
        groups = max(p.joint["transition"].shape[1] for p in parts)
        joint = {
            "potential": np.concatenate([p.joint["potential"] for p in parts]),
            "transition": np.concatenate([padded(p.joint["transition"], groups) for p in parts]),
            "version": shifted([p._versions for p in parts], versions),
        }
        return cls(
            variable.name,
            variable.dims,
            variable.plate.shape,
            variable.family,
            np.concatenate([p.natural for p in parts]),
            shifted([p.sequence for p in parts], sequences),
            shifted([p.order for p in parts], rows),
            np.concatenate([p.group for p in parts]),
            joint,
        )

    @property
    def _versions(self) -> NDArray[np.int64]:
        """The version of the transition matrices of each sequence."""
        return np.asarray(self.joint["version"])

    @cached_property
    def paths(self) -> StatePaths:
        """The structured q."""
        count = len(self.joint["version"])
        starts = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.sequence, minlength=count), out=starts[1:])
        sequences = Sequences("sequence", count, self.sequence, self.order, starts)
        given = (self.joint[key] for key in KEPT)
        return StatePaths(sequences, self.group, self.family.moments(self.natural), *given)

    def path(self) -> NDArray[np.int64]:
        """Return the most likely path of each sequence under q, as a state for each row."""
        return self.paths.best()

    def pairs(self, rows: Any) -> Array:
        """Return q(z_(t-1) = i, z_t = j) at some rows, (rows, i, j).

        Parameters
        ----------
        rows
            Numbers of rows that are not the first of their sequences.
        """
        some = np.atleast_1d(whole(rows, len(self.sequence), f"the rows of '{self.name}'"))
        first = self.paths.sequences.previous[some] < 0
        if first.any():
            raise ModelError(
                f"row {int(some[np.argmax(first)])} of '{self.name}' is the first of its sequence, "
                "so that there is no pair"
            )
        return self.paths.pairs(some.astype(np.int64))

    def filtered(self) -> Array:
        """Return the probabilities of each row's state given the rows up to it, (rows, states).

        The last ones of a sequence are those from which it goes on.
        """
        return self.paths.filtered()

    def _draws(self, rng: np.random.Generator, size: int) -> Array:
        """Return draws of whole sequences."""
        return self.paths.draw(rng, size)


def before(arrays: Sequence[NDArray[Any]]) -> list[int]:
    """Return the number of entries in the arrays before each.

    >>> before([np.zeros(2), np.zeros(3), np.zeros(1)])
    [0, 2, 5]
    """
    return [0, *np.cumsum([len(array) for array in arrays])[:-1].tolist()]


def shifted(arrays: Sequence[NDArray[np.int64]], by: Sequence[int]) -> NDArray[np.int64]:
    """Join arrays of numbers, each raised by a number of its own.

    >>> shifted([np.array([0, 1]), np.array([1, 0])], [0, 2])
    array([0, 1, 3, 2])
    """
    return np.concatenate([array + more for array, more in zip(arrays, by, strict=True)])


def padded(transition: Array, groups: int) -> Array:
    """Return transition matrices (version, matrix, i, j) with as many matrices as asked for."""
    more = groups - transition.shape[1]
    return np.pad(transition, ((0, 0), (0, more), (0, 0), (0, 0)))

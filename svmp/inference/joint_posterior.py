"""The joint q of a block of variables, as a fit has it: covariances, and draws of all of them.

    theta ~ Normal(m, P^-1),

with m from the marginals of the variables, and P stored as a sparse matrix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.posterior import Posterior
from svmp.network.arrow import Arrow
from svmp.network.grid import Ints
from svmp.network.joint_normal import JointNormal, Layout

LARGEST = 5000
"""Most rows of a covariance matrix that is returned."""


@dataclass(frozen=True, eq=False)
class JointPosterior:
    """The joint q of some variables.

    Attributes
    ----------
    layout, covariance
        Where the unknowns of each variable are, and their covariances.
    barren
        See `JointNormal`.
    """

    layout: Layout
    covariance: Arrow
    barren: float = 0.0

    @classmethod
    def of(cls, joint: JointNormal) -> JointPosterior:
        """Return q of a block without its rows."""
        return cls(joint.layout, joint.covariance, joint.barren)

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return self.layout.names

    def draw(
        self, marginals: Mapping[str, Posterior], rng: np.random.Generator, size: int
    ) -> dict[str, Array]:
        """Return draws of all variables together, each (size, elements, entries)."""
        around, means = self.covariance.draw(rng, size), self.means(marginals)
        return {name: m + around[:, self.layout.places(name)] for name, m in means.items()}

    def means(self, marginals: Mapping[str, Posterior]) -> dict[str, Array]:
        """Return the means of all variables, each (elements, entries)."""
        found = {}
        for name in self.names:
            q, shape = marginals[name], self.layout.places(name).shape
            found[name] = np.asarray(q.family.mean(q.natural)).reshape(shape)
        return found


def covariance_of(
    blocks: Sequence[JointPosterior], marginals: Mapping[str, Posterior], names: Sequence[str]
) -> Array:
    """Return the covariance matrix of some variables under q.

    The rows are the entries of the variables in the order of the names, each flattened. Variables
    in different blocks are independent under q, and so are elements that are in none.
    """
    sizes = [int(np.size(marginals[name].mean)) for name in names]
    if sum(sizes) > LARGEST:
        raise ModelError(
            f"the covariance matrix of {list(names)} has {sum(sizes):,} rows, and at most "
            f"{LARGEST:,} are computed; give fewer variables"
        )
    starts = np.cumsum([0, *sizes])
    found = np.zeros((starts[-1], starts[-1]))
    for block in blocks:
        rows, unknowns = [], []
        for name, start in zip(names, starts, strict=False):
            if name in block.layout.starts:
                places = block.layout.places(name).ravel()
                unknowns.append(places)
                rows.append(start + np.arange(len(places)))
        if rows:
            at: Ints = np.concatenate(rows)
            found[np.ix_(at, at)] = block.covariance.dense(np.concatenate(unknowns))
    joined = {name for block in blocks for name in block.names}
    for name, start, size in zip(names, starts, sizes, strict=False):
        if name not in joined and size:
            width = size // max(len(marginals[name].natural), 1)
            for element, matrix in enumerate(marginals[name].cov.reshape(-1, width, width)):
                at = start + element * width + np.arange(width)
                found[np.ix_(at, at)] = matrix
    return found

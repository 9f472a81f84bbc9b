"""The joint q of a block of variables, as a fit has it: covariances, and draws of all of them.

    theta ~ Normal(m, P^-1),

with m from the marginals of the variables, and P stored as a sparse matrix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from svmp.errors import ModelError
from svmp.families.family import Array, Family
from svmp.inference.posterior import Posterior
from svmp.network.arrow import Arrow
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.joint_normal import GivenPrecision, JointNormal, Layout, Paired, spread

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
    pair
        The Gamma or Wishart that the block is joint with, if there is one. Given tau, the block has
        the covariance (tau P_0)^-1; `covariance` is the expectation of that, where it is finite.
    """

    layout: Layout
    covariance: Arrow
    barren: float = 0.0
    pair: Paired | None = None

    @classmethod
    def of(cls, joint: JointNormal, q: Beliefs, families: Mapping[str, Family]) -> JointPosterior:
        """Return q of a block without its rows."""
        found = cls(joint.layout, joint.covariance, joint.barren, joint.pair)
        if joint.pair is None:
            return found
        name = joint.pair.name
        return found.scaled(1 / spread(q.natural[name], families[name]))

    def scaled(self, factor: Array) -> JointPosterior:
        """Return it with the precision of each class times a factor."""
        assert self.pair is not None
        root = sparse.diags_array(np.sqrt(factor[self.pair.classes]))
        precision = sparse.csr_array(root @ self.covariance.precision @ root)
        precision.sort_indices()
        return replace(self, covariance=Arrow.of(self.covariance.split, precision))

    def at_mean(self, q: Beliefs, families: Mapping[str, Family]) -> JointPosterior:
        """Return it at the expected precision, as it is during a run; change the marginals too."""
        if self.pair is None:
            return self
        factor = spread(q.natural[self.pair.name], families[self.pair.name])
        for name in self.layout.names:
            q.natural[name] = q.natural[name] * self.of_elements(name, factor)
            q.moments[name] = families[name].moments(q.natural[name])
        return self.scaled(factor)

    def widened(
        self, name: str, natural: Array, q: Beliefs, families: Mapping[str, Family]
    ) -> Array:
        """Return the marginal of a variable with the variance of its Student's t."""
        if self.pair is None or name not in self.layout.starts:
            return natural
        factor = spread(q.natural[self.pair.name], families[self.pair.name])
        return np.asarray(natural / self.of_elements(name, factor))

    def of_elements(self, name: str, values: Array) -> Array:
        """Return the value of the class of each element, as a column."""
        assert self.pair is not None
        return np.asarray(values[self.pair.classes[self.layout.places(name)[:, :1]]])

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, with the precision if it is one of them."""
        return self.layout.names if self.pair is None else (*self.layout.names, self.pair.name)

    def draw(
        self, marginals: Mapping[str, Posterior], rng: np.random.Generator, size: int
    ) -> dict[str, Array]:
        """Return draws of all variables together, each (size, elements, entries)."""
        around, means = self.covariance.draw(rng, size), self.means(marginals)
        found = {name: around[:, self.layout.places(name)] for name in means}
        drawn: dict[str, Array] = {}
        if self.pair is not None:
            tau = marginals[self.pair.name]
            drawn[self.pair.name] = tau.family.draw(tau.natural, rng, size)
            at = {name: self.pair.classes[self.layout.places(name)[:, 0]] for name in means}
            wide = spread(tau.natural, tau.family)
            given = GivenPrecision.of(tau.family, tau.natural, drawn[self.pair.name], wide)
            found = {name: given.apply(x, at[name]) for name, x in found.items()}
        return {name: means[name] + x for name, x in found.items()} | drawn

    def means(self, marginals: Mapping[str, Posterior]) -> dict[str, Array]:
        """Return the means of all Normals, each (elements, entries)."""
        found = {}
        for name in self.layout.names:
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
        rows, unknowns = [], list[Ints]()
        for name, start in zip(names, starts, strict=False):
            if name in block.layout.starts:
                places = block.layout.places(name).ravel()
                unknowns.append(places)
                rows.append(start + np.arange(len(places)))
        if rows:
            at: Ints = np.concatenate(rows)
            found[np.ix_(at, at)] = block.covariance.dense(np.concatenate(unknowns))
    joined = {name for block in blocks for name in block.layout.names}
    for name, start, size in zip(names, starts, sizes, strict=False):
        if name not in joined and size:
            width = size // max(len(marginals[name].natural), 1)
            for element, matrix in enumerate(marginals[name].cov.reshape(-1, width, width)):
                at = start + element * width + np.arange(width)
                found[np.ix_(at, at)] = matrix
    return found

"""The joint q of a block of variables, as a fit has it: covariances, and draws of all of them.

    theta ~ Normal(m, P^-1),

with P stored as a sparse matrix. The marginals of a fit have the precisions of the rows integrated
over (integrating.py), which changes the means by `shift` and the standard deviations by `scale`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array, Family
from svmp.inference.posteriors.posterior import Posterior
from svmp.network.arrow import Arrow
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.joint_normal import GivenPrecision, JointNormal, Layout, Paired, natural_of

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
        The Gamma or Wishart that the block is joint with, if there is one.
    scale, shift
        For each unknown, the standard deviation of its marginal in the fit, as a multiple of that
        of `covariance`; and its mean in the fit, less that of q during the run.
    """

    layout: Layout
    covariance: Arrow
    barren: float
    pair: Paired | None
    scale: Array
    shift: Array

    @classmethod
    def of(cls, joint: JointNormal, scale: Array, shift: Array) -> JointPosterior:
        """Return q of a block without its rows."""
        return cls(joint.layout, joint.covariance, joint.barren, joint.pair, scale, shift)

    def marginal(self, name: str, natural: Array, family: Family) -> Array:
        """Return the natural parameters of a variable in the fit, given those in the run."""
        if name not in self.layout.starts:
            return natural
        places = self.layout.places(name)
        mean = np.asarray(family.mean(natural)).reshape(places.shape) + self.shift[places]
        return natural_of(self.matrices(name), mean)

    def at_mean(self, q: Beliefs, families: Mapping[str, Family]) -> JointPosterior:
        """Fix the precision at its mean; write the marginals to q."""
        for name in self.layout.names:
            places = self.layout.places(name)
            mean = np.asarray(families[name].mean(q.natural[name])).reshape(places.shape)
            mean = mean - self.shift[places]
            q.natural[name] = natural_of(self.covariance.blocks(places), mean)
            q.moments[name] = families[name].moments(q.natural[name])
        return self

    def matrices(self, name: str) -> Array:
        """Return the covariance matrix of each element of a variable in the fit."""
        places = self.layout.places(name)
        scale = self.scale[places]
        return self.covariance.blocks(places) * scale[:, :, None] * scale[:, None, :]

    def dense(self, unknowns: Ints) -> Array:
        """Return the covariance matrix of some unknowns in the fit."""
        scale = self.scale[unknowns]
        return self.covariance.dense(unknowns) * scale[:, None] * scale

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, with the precision if it is one of them."""
        return self.layout.names if self.pair is None else (*self.layout.names, self.pair.name)

    def draw(
        self, marginals: Mapping[str, Posterior], rng: np.random.Generator, size: int
    ) -> dict[str, Array]:
        """Return draws of all variables together, each (size, elements, entries)."""
        around, means = self.covariance.draw(rng, size), self.means(marginals)
        drawn: dict[str, Array] = {}
        around = around if self.pair is not None else around * self.scale
        found = {name: around[:, self.layout.places(name)] for name in means}
        if self.pair is not None:
            tau = marginals[self.pair.name]
            drawn[self.pair.name] = tau.family.draw(tau.natural, rng, size)
            at = {name: self.pair.classes[self.layout.places(name)[:, 0]] for name in means}
            given = GivenPrecision.of(tau.family, tau.natural, drawn[self.pair.name])
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
            found[np.ix_(at, at)] = block.dense(np.concatenate(unknowns))
    joined = {name for block in blocks for name in block.layout.names}
    for name, start, size in zip(names, starts, sizes, strict=False):
        if name not in joined and size:
            width = size // max(len(marginals[name].natural), 1)
            for element, matrix in enumerate(marginals[name].cov.reshape(-1, width, width)):
                at = start + element * width + np.arange(width)
                found[np.ix_(at, at)] = matrix
    return found

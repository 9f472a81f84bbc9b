"""The joint q of a block of variables, as a fit has it: covariances, and draws of all of them.

    theta ~ Normal(m, P^-1),

with P stored as a sparse matrix. The marginals of a fit have the precisions of the rows integrated
over (integrating.py), which changes the means by `shift` and the standard deviations by `scale`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from svmp.families.family import Array, Family
from svmp.inference.earlier import EarlierQ
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.joint_normal import (
    Covariances,
    GivenPrecision,
    JointNormal,
    Layout,
    Paired,
    described,
    natural_of,
)


@dataclass(frozen=True, eq=False, repr=False)
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
    left_out
        Variables that could be in the block but for its size, each with the reason.
    """

    layout: Layout
    covariance: Covariances
    barren: float
    pair: Paired | None
    scale: Array
    shift: Array
    left_out: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, joint: JointNormal, scale: Array, shift: Array, left_out: Mapping[str, str]
    ) -> JointPosterior:
        """Return q of a block without its rows."""
        moved = scale, shift, left_out
        return cls(joint.layout, joint.covariance, joint.barren, joint.pair, *moved)

    def __repr__(self) -> str:
        return described(self.layout, None if self.pair is None else self.pair.name, self.left_out)

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
        self, marginals: Mapping[str, EarlierQ], rng: np.random.Generator, size: int
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

    def means(self, marginals: Mapping[str, EarlierQ]) -> dict[str, Array]:
        """Return the means of all Normals, each (elements, entries)."""
        found = {}
        for name in self.layout.names:
            q, shape = marginals[name], self.layout.places(name).shape
            found[name] = np.asarray(q.family.mean(q.natural)).reshape(shape)
        return found

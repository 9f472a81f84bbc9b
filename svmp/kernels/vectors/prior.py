"""The bound term of hidden MvNormals with few different priors: density from mean moments, entropy.

The entropy of q(x) is (K (1 + log(2 pi)) - log det P) / 2 with the precision P, whose Cholesky
factors are computed in one compiled pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from svmp.families.family import Array
from svmp.families.normal import LOG_2PI
from svmp.kernels.machine.cholesky import factorise
from svmp.kernels.machine.compiling import CHUNK, bare, claim, shared
from svmp.kernels.machine.special import log
from svmp.kernels.machine.threads import STREAM, share, threads_for
from svmp.network.beliefs import Beliefs
from svmp.network.chains.chain import Chain
from svmp.network.conditional import Conditional
from svmp.network.grid import Ints, complement

MANY = 1024
"""Fewer elements than this are not worth a compiled loop."""


@dataclass(frozen=True, eq=False)
class HiddenVectors:
    """The density of hidden MvNormals; `Network.bound_term` is the plain reference."""

    conditional: Conditional
    present: Ints | None

    @classmethod
    def of(cls, conditional: Conditional, present: Ints | None) -> HiddenVectors | None:
        """Return the prior of a variable, or None if it is not one of many hidden MvNormals."""
        variable = conditional.variable
        if variable.family.gaussian != "vector" or isinstance(conditional, Chain):
            return None
        hidden = variable.observed is None and variable.size >= MANY
        return cls(conditional, present) if hidden and conditional.pools else None

    @cached_property
    def _absent(self) -> Ints | None:
        return complement(self.present, self.conditional.variable.size)

    def bound_term(self, q: Beliefs) -> float:
        """Return E[log p(x | parents)] and the entropy of q(x), summed over elements."""
        natural = q.natural[self.conditional.variable.name]
        if self.present is not None:
            natural = natural[self.present]
        return self.conditional.pooled_density(q, self._absent) + entropy(natural)


def entropy(natural: Array) -> float:
    """Return the sum of -E[log q(x)] over MvNormals.

    >>> entropy(np.array([[0.0, 0.0, -0.5, 0.0, 0.0, -2.0]]))  # log(2 pi) + 1 - log(4) / 2
    2.144729885849...
    """
    width = int(np.sqrt(natural.shape[1]))
    out = np.empty(len(natural))
    with threads_for(natural.size * width // STREAM):
        share(log_dets, np.require(natural, requirements=("C", "W")), width, out)
    return 0.5 * (len(out) * width * (1 + LOG_2PI) - float(out.sum()))


@shared
def log_dets(taken: Ints, natural: Array, width: int, out: Array) -> None:
    """Write the log-determinant of the precision of each element."""
    root = np.empty((width, width))
    first = claim(taken, CHUNK)
    while first < len(out):
        for m in range(first, min(first + CHUNK, len(out))):
            out[m] = _log_det(natural[m], width, root)
        first = claim(taken, CHUNK)


@bare
def _log_det(own: Array, width: int, root: Array) -> float:
    """Return the log-determinant of the precision of an element; NaN if it is not proper."""
    for i in range(width):
        for j in range(i + 1):
            root[i, j] = -2 * own[width + i * width + j]
    if not factorise(root):
        return np.nan
    found = 0.0
    for i in range(width):
        found += 2 * log(root[i, i])
    return found

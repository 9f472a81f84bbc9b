"""The bound term of hidden Normals, E[log p(x | parents)] plus entropy, in one compiled pass."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from svmp import factors
from svmp.kernels.machine.elements import normal_bound, normal_entropy
from svmp.kernels.multilinear.table import plain
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import Conditional
from svmp.network.grid import Ints, complement


@dataclass(frozen=True, eq=False)
class HiddenNormals:
    """The density of hidden Normals; `Network.bound_term` is the plain reference."""

    conditional: Conditional
    present: Ints | None

    @classmethod
    def of(cls, conditional: Conditional, present: Ints | None) -> HiddenNormals | None:
        """Return the prior of a variable, or None if it is not a hidden Normal."""
        mixture = conditional.selector is not None
        other = mixture or not isinstance(conditional.factor, factors.Normal)
        hidden = conditional.variable.family.gaussian == "number"
        hidden = hidden and conditional.variable.observed is None
        return cls(conditional, present) if hidden and not other else None

    @cached_property
    def _absent(self) -> Ints | None:
        return complement(self.present, self.conditional.variable.size)

    def bound_term(self, q: Beliefs) -> float:
        """Return E[log p(x | parents)] and the entropy of q(x), summed over elements."""
        variable, slots = self.conditional.variable, self.conditional.slots
        natural, moments = q.natural[variable.name], q.moments[variable.name]
        if self.present is not None:
            natural = natural[self.present]
        if self.conditional.pools:
            return self.conditional.pooled_density(q, self._absent) + normal_entropy(natural)
        if self.present is not None:
            moments = moments[self.present]
        step, total = self.conditional.chunk(2), 0.0
        for start in range(0, len(natural), step):
            part = slice(start, start + step)
            rows = np.arange(start, min(start + step, len(natural)))
            rows = rows if self.present is None else self.present[part]
            mu, tau = (plain(slots[name].moments(q, rows)) for name in ("mu", "tau"))
            total += normal_bound(natural[part], moments[part], mu, tau)
        return total

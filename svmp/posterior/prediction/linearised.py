"""Means that multiply two variables of a joint block, as u v in a factorization does.

A joint Normal of u and v is right near its mean m only: the posterior bends along u v = constant,
which a Normal does not, so that its terms of second order are far too large. Linear terms have the
covariances C of the block, and terms of higher order those of independent variables with the
conditional variances V = 1 / diag(C^-1), which are those of mean field:

    mu = f(m + e) + g . (d - e),      g = f'(m),   d ~ Normal(0, C),   e ~ Normal(0, V),
    Var[mu] = Var_V[f] + g . (C - V) g.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from svmp import factors
from svmp.families.family import Array
from svmp.inference.updaters.joint_rows import mean_of
from svmp.network.conditional import Conditional
from svmp.network.means.linear import Linear
from svmp.posterior.prediction.blocks import KnownBlock
from svmp.posterior.prediction.known import Known
from svmp.posterior.prediction.simulation import Needed, needed


def linearised(known: Known, target: str) -> Known:
    """Return what is known, with the blocks linearised that the rows of a variable multiply."""
    variable = known.variables[target]
    given = variable.conditional
    kinds = factors.Normal | factors.BernoulliLogit
    if target in known.natural or not isinstance(given.factor, kinds) or given.selector is not None:
        return known
    need = needed(known, target, variable.rows)
    natural, blocks = dict(known.natural), []
    for block in known.blocks:
        if can_be_linearised(known, block, given, need):
            block = replace(block, linear=True, _added={})
            natural |= {n: conditional_natural(block, n, natural[n]) for n in block.place}
        blocks.append(block)
    return replace(known, natural=natural, blocks=tuple(blocks))


def can_be_linearised(known: Known, block: KnownBlock, given: Conditional, need: Needed) -> bool:
    """Return whether rows read a block in their mean only, and multiply two known elements of it.

    Everything that they multiply must be known elements of the block, or numbers.
    """
    slot = given.slots.get(mean_of(given))
    if not isinstance(slot, Linear):
        return False
    mine = {name for name in need.known if name in block.place}
    above = {p.name for name in need.new for p in known.variables[name].conditional.parents()}
    if mine & above or not mine <= {v.name for v in slot.variables}:
        return False
    products = [{r.variable.name for r in term.readers if r.variable.hidden} for term in slot.terms]
    products = [names for names in products if len(names) > 1 and names & mine]
    return bool(products) and all(n <= mine and not n & set(need.new) for n in products)


def conditional_natural(block: KnownBlock, name: str, natural: Array) -> Array:
    """Return natural parameters with the means of a block and its conditional covariances."""
    there, layout = block.place[name] >= 0, block.joint.layout
    at = block.place[name][there]
    places = layout.places(name)[at]
    precision = block.precision[places[:, :, None], places[:, None, :]]
    linear = np.einsum("eij,ej->ei", precision, block.means[name][at])
    found = natural.copy()
    found[there] = np.concatenate([linear, -0.5 * precision.reshape(len(at), -1)], axis=1)
    return found


def moved(given: Conditional, natural: Array, shift: Array) -> Array:
    """Return the natural parameters of rows whose mean or logit has moved."""
    found = np.array(natural)
    found[:, 0] += shift * (-2 * found[:, 1] if isinstance(given.factor, factors.Normal) else 1.0)
    return found

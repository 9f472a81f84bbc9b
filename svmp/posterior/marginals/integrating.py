"""Marginals of a joint block with the precisions of its rows integrated over.

In q a block is independent of precisions tau: its covariance is P(E[tau])^-1, which leaves out that
the block is less certain where tau may be small. Given tau the block is Normal with the mean m(tau)
and the precision P(tau), so that with q(tau)

    E[theta] = E[m(tau)],        Var[theta] = E[P(tau)^-1] + Var[m(tau)].

The expectations are sums over the nodes of Gauss where a single precision is uncertain, and else
averages over a Latin hypercube of q(tau). Precisions that are known to a few percent are not drawn:
they would change nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import roots_genlaguerre

from svmp.families import Gamma
from svmp.families.family import Array
from svmp.inference.updaters.joint_block import JointBlock
from svmp.network.beliefs import Beliefs
from svmp.network.joint_normal import JointNormal, spread
from svmp.network.variable import Variable

DRAWS = 32
"""Number of draws of the precisions."""
LIGHT = 4.0
"""Shape from which the density of a Gamma has few values near 0."""
SURE = 100.0
"""Shape from which a Gamma counts as known, or degrees of freedom of a Wishart."""


def integrate(block: JointBlock, joint: JointNormal, q: Beliefs) -> tuple[Array, Array]:
    """Return factors of the standard deviations of all unknowns, and changes of their means."""
    if block.pair is not None:
        name = block.pair.name
        wide = spread(q.natural[name], block.pair.variable.family)
        return np.sqrt(wide[block.pair.classes]), np.zeros(block.layout.size)
    scale, shift = np.ones(block.layout.size), np.zeros(block.layout.size)
    uncertain = [v for v in precisions(block) if is_uncertain(v, q)]
    if not uncertain:
        return scale, shift
    rng = np.random.default_rng(0)
    drawn = {v.name: draw(v, q.natural[v.name], rng) for v in uncertain}
    shares = np.full(DRAWS, 1 / DRAWS)
    if len(uncertain) == 1 and uncertain[0].family.precision == "number" and uncertain[0].size == 1:
        drawn[uncertain[0].name], shares = nodes(q.natural[uncertain[0].name])
    spreads, moves = [], []
    for place in range(len(shares)):
        given = {v.name: v.family.statistics(drawn[v.name][place]) for v in uncertain}
        precision, gradient, _ = block.assemble(replace(q, moments={**q.moments, **given}))
        try:
            factor = block.system.factor(precision)
        except np.linalg.LinAlgError:
            return scale, shift
        spreads.append(factor.variances)
        moves.append(factor.solve(gradient))
    move = shares @ moves
    variance = shares @ spreads + shares @ (moves - move) ** 2
    found = np.sqrt(variance / joint.covariance.variances), move
    return found if np.isfinite(found).all() and (found[0] > 0).all() else (scale, shift)


def precisions(block: JointBlock) -> list[Variable]:
    """Return the hidden precisions of the rows of a block."""
    slots = (t.conditional.slots["tau"] for t in block.tables if "tau" in t.conditional.slots)
    names = dict.fromkeys(v.name for slot in slots for v in slot.variables if v.hidden)
    return [block.network.hidden[name] for name in names]


def is_uncertain(variable: Variable, q: Beliefs) -> bool:
    """Return whether some element of a precision is not known to a few percent."""
    family = variable.family
    if family.precision is None or variable.name not in q.natural:
        return False
    shape = family.standard(q.natural[variable.name])[
        "alpha" if family.precision == "number" else "nu"
    ]
    return bool(np.min(shape) < SURE)


def nodes(natural: Array) -> tuple[Array, Array]:
    """Return nodes (nodes, 1) and weights for expectations under one Gamma.

    Those of Laguerre, for its density; but where it reaches down to 0, nodes of Legendre for its
    quantiles, which reach further. E[1 / (c + tau)] then has an error of at most .004 of its size
    for c of at least a tenth of E[tau]; 32 draws in strata have .008.
    """
    family = Gamma()
    parameters = family.standard(natural)
    alpha, beta = float(parameters["alpha"][0]), float(parameters["beta"][0])
    if alpha >= LIGHT:
        x, weight = roots_genlaguerre(6, alpha - 1)
        return x[:, None] / beta, weight / weight.sum()
    u, weight = np.polynomial.legendre.leggauss(8)
    return family.quantile(natural, (u[:, None] + 1) / 2), weight / 2


def draw(variable: Variable, natural: Array, rng: np.random.Generator) -> Array:
    """Return draws of all elements of a precision, those of Gammas in strata."""
    family, count = variable.family, len(natural)
    if family.precision != "number":
        return family.draw(natural, rng, DRAWS)
    order = rng.permuted(np.broadcast_to(np.arange(DRAWS)[:, None], (DRAWS, count)), axis=0)
    return family.quantile(natural, (order + 0.5) / DRAWS)

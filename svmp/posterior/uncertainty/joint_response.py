"""Variances of precisions beside a joint block, by linear response.

q has a block theta ~ Normal(m, C) and precisions x_k apart, which the block sends -Q_k / 2 to, with
Q_k = theta' A_k theta - 2 h_k' theta the squared residuals of the rows of x_k. Under the joint
Normal

    S_kl = Cov(Q_k / 2, Q_l / 2) = tr(A_k C A_l C) / 2 + g_k' C g_l,      g_k = h_k - A_k m,

and the precisions respond to a tilt of each other through it: Cov(x) = (D^-1 - S)^-1, with D their
variances under q. A_k and g_k are differences of the precision matrix of the block and of its
gradient, which are linear in x. Of log x the block knows nothing but x, so that

    Var(log x) = psi'(alpha) + (Cov(x) - D) / E[x]^2,

which the variances that are returned match (log_scale.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import polygamma

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.updaters.joint_block import JointBlock
from svmp.network.beliefs import Beliefs
from svmp.network.model import Model
from svmp.network.network import Network
from svmp.posterior.marginals.integrating import precisions
from svmp.posterior.record.covariance import Covariance, NothingToCorrect
from svmp.posterior.record.run_record import RunRecord
from svmp.posterior.uncertainty.fitted import network_and_q
from svmp.posterior.uncertainty.linear_response import not_a_maximum
from svmp.posterior.uncertainty.log_scale import matched_gamma

LARGEST = 500
"""Most unknowns of a block, and most precisions."""


def joint_response(fit: RunRecord, model: Model | None) -> Covariance:
    """Return the covariances of the Gammas that are precisions of joint blocks, and nothing else.

    Raises
    ------
    ModelError
        If there are none, or too many.
    """
    if model is None:
        raise ModelError(
            "linear response needs model=, the model of this fit, which fits of large networks do "
            "not keep; fit.corrected(model) has it for all calls"
        )
    network, q = network_and_q(fit, model)
    blocks = [
        JointBlock.of(network, [network.hidden[name] for name in joint.layout.names])
        for joint in fit.joint
        if joint.pair is None  # with its precision, a block is exact
    ]
    names = [name for name in network.hidden if is_theirs(network, name, blocks)]
    sizes = [network.hidden[name].size for name in names]
    if not names or max(sum(sizes), *(b.layout.size for b in blocks)) > LARGEST:
        raise NothingToCorrect(
            "linear response of a joint q is for Gammas that are precisions of its blocks, of at "
            f"most {LARGEST} numbers; this fit has {names or 'none'}"
        )
    means = [np.asarray(network.hidden[n].family.mean(q.natural[n])) for n in names]
    var = np.concatenate([network.hidden[n].family.var(q.natural[n]) for n in names])
    matrix = np.diag(1 / var) - sum(spread_of(block, q, names, sum(sizes)) for block in blocks)
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise ModelError(not_a_maximum(names[0])) from None
    found, shapes = np.linalg.inv(matrix), [network.hidden[n].plate.shape for n in names]
    natural, mean = np.concatenate([q.natural[n] for n in names]), np.concatenate(means)
    own, wide = np.diagonal(found) - var, polygamma(1, natural[:, 1] + 1)
    alpha, beta = matched_gamma(natural, wide + own / mean**2)
    scale = np.sqrt(alpha / np.diagonal(found)) / beta
    found = 0.5 * (found + found.T) * scale[:, None] * scale
    return Covariance(tuple(names), tuple(shapes), alpha / beta, found)


def is_theirs(network: Network, name: str, blocks: Sequence[JointBlock]) -> bool:
    """Return whether all children of a Gamma are rows of the blocks whose precision it is."""
    if network.hidden[name].family.precision != "number":
        return False
    tables = {table.conditional for block in blocks for table in block.tables}
    listed = any(v.name == name for block in blocks for v in precisions(block))
    return listed and all(edge.conditional in tables for edge in network.edges[name])


def spread_of(block: JointBlock, q: Beliefs, names: Sequence[str], size: int) -> Array:
    """Return S of one block, with a row for each element of some Gammas."""
    (joint,) = (b for b in q.blocks if b.layout.names == block.layout.names)
    cov = joint.covariance.dense(np.arange(block.layout.size))
    products, gradients = np.zeros((size, *cov.shape)), np.zeros((size, len(cov)))
    for place, (matrix, gradient) in enumerate(directions(block, q, names)):
        products[place], gradients[place] = matrix @ cov, gradient
    return 0.5 * np.einsum("kij,lji->kl", products, products) + gradients @ cov @ gradients.T


def directions(
    block: JointBlock, q: Beliefs, names: Sequence[str]
) -> Iterator[tuple[Array, Array]]:
    """Yield A and g of each element of some Gammas."""
    start = assembled(block, q)
    for name in names:
        for element, mean in enumerate(q.moments[name][:, 0]):
            moments = q.moments[name].copy()
            moments[element, 0] += mean
            other = assembled(block, replace(q, moments={**q.moments, name: moments}))
            yield (other[0] - start[0]) / mean, (other[1] - start[1]) / mean


def assembled(block: JointBlock, q: Beliefs) -> tuple[Array, Array]:
    """Return the precision matrix of a block and its gradient, from the rows that count."""
    weights, gradient = [], np.zeros(block.layout.size)
    for table in block.tables:
        weight, pull = table.weigh(q)
        weight[table.barren], pull[table.barren] = 0.0, 0.0
        weights.append(table.of_all_rows(weight))
        gradient += table.gradient(pull)
    return block.system.matrix(block.system.values(weights)), gradient

"""Claims 8 and 9 on a small network of the paper's model, by enumeration and finite differences.

With q(x) = Normal(mu, 1/tau), phi(x) = (x, x^2) and lambda = (tau mu, -tau/2).
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network
from svmp.ratings import Ratings
from svmp.study.netflix import matrix_factorization

USERS, ITEMS, FACTORS, COUNT = 4, 3, 2, 9


def small_network(seed: int) -> tuple[Network, Beliefs]:
    """Return a network of a few ratings, and a random q."""
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(USERS * ITEMS)[:COUNT]
    stars = rng.integers(1, 6, COUNT)
    ratings = Ratings.of_keys(pairs // ITEMS, pairs % ITEMS, stars, USERS, ITEMS)
    network = Network(matrix_factorization(ratings, FACTORS))
    q = Beliefs()
    for name, variable in network.hidden.items():
        mu, tau = rng.normal(size=variable.size), rng.gamma(3, 1, variable.size)
        q.natural[name] = np.stack([tau * mu, -tau / 2], axis=1)
        q.moments[name] = variable.family.moments(q.natural[name])
    for name, variable in network.observed.items():
        q.moments[name] = variable.conditional.child(q, variable.rows)
    return network, q


def target(network: Network, q: Beliefs, name: str, element: int) -> tuple[Array, Array]:
    """Return the prior's message to an element, and the messages of its children as rows."""
    one = np.array([element])
    prior = np.array(network.prior(q, name, one))[0]
    (edge,) = network.edges[name]
    _, rows = edge.rows_of(one)
    own = np.zeros(1, dtype=np.int64)
    messages = [edge.message(q, one, own, rows[[i]])[0] for i in range(len(rows))]
    return prior, np.array(messages).reshape(-1, 2)


def bias(seed: int = 0) -> tuple[float, int]:
    """Return the largest relative error of E[lambda_temp] over all samples, and their number."""
    network, q = small_network(seed)
    worst, count = 0.0, 0
    for name, variable in network.hidden.items():
        for element in range(variable.size):
            prior, messages = target(network, q, name, element)
            star, n = prior + messages.sum(axis=0), len(messages)
            for size in range(1, n + 1):
                drawn = combinations(range(n), size)
                temps = [prior + n / size * messages[list(chosen)].sum(axis=0) for chosen in drawn]
                error = np.abs(np.mean(temps, axis=0) - star).max() / np.abs(star).max()
                worst, count = max(worst, float(error)), count + comb(n, size)
    return worst, count


def gradient_error(seed: int = 0) -> tuple[float, int]:
    """Compare the gradient of the bound, by differences, with cov[phi] (lambda* - lambda).

    Returns the largest relative error and the number of elements.
    """
    network, q = small_network(seed)
    worst, count = 0.0, 0
    for name, variable in network.hidden.items():
        for element in range(variable.size):
            prior, messages = target(network, q, name, element)
            natural = q.natural[name][element].copy()
            expected = covariance(natural) @ (prior + messages.sum(axis=0) - natural)
            slope = np.array([_slope(network, q, name, element, i) for i in range(2)])
            error = np.abs(slope - expected).max() / np.abs(expected).max()
            worst, count = max(worst, float(error)), count + 1
    return worst, count


def _slope(network: Network, q: Beliefs, name: str, element: int, i: int) -> float:
    """Return a derivative of the bound by one natural parameter, with a fourth-order formula."""
    natural = q.natural[name]
    here, step = natural[element, i], 1e-3 * max(abs(natural[element, i]), 0.1)
    values = {}
    for k in (-2, -1, 1, 2):
        natural[element, i] = here + k * step
        q.moments[name] = network.hidden[name].family.moments(natural)
        q.means.clear()
        values[k] = sum(network.bound(q).values())
    natural[element, i] = here
    q.moments[name] = network.hidden[name].family.moments(natural)
    return float((8 * (values[1] - values[-1]) - (values[2] - values[-2])) / (12 * step))


def covariance(natural: Array) -> Array:
    """cov[(x, x^2)] of a Normal, in closed form."""
    tau = -2 * natural[1]
    mu, v = natural[0] / tau, 1 / tau
    return np.array([[v, 2 * mu * v], [2 * mu * v, 2 * v**2 + 4 * mu**2 * v]])


def fisher_off_diagonal(seed: int = 0) -> float:
    """Return the largest entry of the Fisher matrix between two factors, relative to those within.

    E[score score^T] is integrated by Gauss-Hermite quadrature, which is exact here.
    """
    network, q = small_network(seed)
    natural = np.concatenate([q.natural[name] for name in network.hidden])
    nodes, weights = np.polynomial.hermite_e.hermegauss(6)
    weights = weights / weights.sum()
    tau = -2 * natural[:, 1]
    x = (natural[:, 0] / tau)[:, None] + nodes / np.sqrt(tau)[:, None]
    phi = np.stack([x, x**2], axis=-1)
    score = phi - np.einsum("enp,n->ep", phi, weights)[:, None]
    within = np.einsum("enp,enq,n->epq", score, score, weights)
    each = np.einsum("enp,n->ep", score, weights)
    between = each[:, None, :, None] * each[None, :, None, :]
    between[np.arange(len(each)), np.arange(len(each))] = 0
    return float(np.abs(between).max() / np.abs(within).min(axis=0).max())

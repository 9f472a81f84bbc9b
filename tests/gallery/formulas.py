"""Textbook formulas for bounds computed directly, without svmp.

A Gamma factor of q is a pair (shape, rate), a Normal one a pair (mean, variance).
"""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.special import digamma, gammaln

LOG_2PI = np.log(2 * np.pi)


def gamma_mean(q):
    return q[0] / q[1]


def gamma_mean_log(q):
    return digamma(q[0]) - np.log(q[1])


def gamma_term(alpha, beta, q):
    """E[log Gamma(x | alpha, beta)] + H[q], summed."""
    cross = alpha * np.log(beta) - gammaln(alpha) + (alpha - 1) * gamma_mean_log(q)
    cross = cross - beta * gamma_mean(q)
    return np.sum(cross + stats.gamma(q[0], scale=1 / np.asarray(q[1])).entropy())


def normal_density(square, tau, log_tau=None):
    """E[log Normal] from E[(x - mu)^2], E[tau] and E[log tau], summed."""
    log_tau = np.log(tau) if log_tau is None else log_tau
    return np.sum(0.5 * (log_tau - LOG_2PI - tau * square))


def normal_entropy(variance):
    return np.sum(0.5 * (1 + LOG_2PI + np.log(variance)))


def mvnormal_entropy(covariance):
    d = covariance.shape[-1]
    return np.sum(0.5 * (d * (1 + LOG_2PI) + np.linalg.slogdet(covariance)[1]))


def dirichlet_mean_log(a):
    return digamma(a) - digamma(a.sum(-1, keepdims=True))


def dirichlet_log_normaliser(a):
    return gammaln(a).sum(-1) - gammaln(a.sum(-1))


def dirichlet_term(a, q):
    """E[log Dirichlet(x | a)] + H[q], summed over rows."""
    a = np.broadcast_to(np.asarray(a, float), q.shape)
    gap = dirichlet_log_normaliser(q) - dirichlet_log_normaliser(a)
    return np.sum(gap + ((a - q) * dirichlet_mean_log(q)).sum(-1))


def categorical_entropy(p):
    return -np.sum(p * np.log(np.where(p > 0, p, 1)))


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def assert_never_falls(bounds):
    """Full VB is coordinate ascent: the bound does not fall, up to rounding."""
    bounds = np.asarray(bounds)
    assert np.all(np.diff(bounds) >= -1e-10 * np.abs(bounds[1:]))

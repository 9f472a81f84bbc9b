"""Quadrature over a Gamma g with shape a: the trapezoidal rule in a transformed logarithm of g.

With u = log g - log(a / rate), the density of u is proportional to exp(-a (exp(u) - 1 - u)). Its
right tail falls double exponentially, its left one as exp(a u); u = t + 1 - exp(-t) makes that
double exponential too. The trapezoidal rule in t then converges exponentially for any shape.
"""

from __future__ import annotations

import numpy as np
from scipy.special import wrightomega

from svmp.families.family import Array

NODES = 40
DEPTH = 30.0
"""Log of the density's maximum over its value at the ends of the range."""
LEAST = 1e-300
"""Least node, so that its inverse is a number."""


def gamma_nodes(shape: Array, rate: Array) -> tuple[Array, Array]:
    """Return nodes of Gammas and their weights, on a new last axis: E[f(g)] = sum of weights f.

    >>> nodes, weights = gamma_nodes(np.array([3.0]), np.array([2.0]))
    >>> (weights * nodes).sum(axis=-1).round(7), (weights / nodes).sum(axis=-1).round(7)
    (array([1.5]), array([1.]))
    """
    a = np.asarray(shape, dtype=np.float64)[..., None]
    depth = DEPTH / a
    # Bounds of the range in u: exp(u) - 1 - u >= depth at both.
    high = np.minimum(np.sqrt(2 * depth), np.log1p(depth) + 1)
    low = -0.5 * depth * (1 + np.sqrt(1 + 8 / depth))
    first, last = (-np.log(wrightomega(1 - u)) for u in (low, high))
    t = first + (last - first) * np.linspace(0, 1, NODES)
    u = t + 1 - np.exp(-t)
    weights = np.exp(-a * (np.expm1(u) - u)) * (1 + np.exp(-t))
    weights /= weights.sum(axis=-1, keepdims=True)
    nodes = np.exp(u) * a / np.asarray(rate, dtype=np.float64)[..., None]
    return np.maximum(nodes, LEAST), weights

"""The best change of factors (rotation.py) applied to q, where it raises the exact bound.

It serves products of two variables in which every factor has the same prior Normal(0, 1 / a), with
a number a that is not learned.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from svmp.families.family import Array
from svmp.inference.acceleration.rotation import Side, rotated
from svmp.inference.starts.products import Product, products
from svmp.network.beliefs import Beliefs
from svmp.network.means.linear import dimension
from svmp.network.network import Network

Bound = Callable[[Beliefs], float]
"""The exact bound of q."""


def rotate(network: Network, q: Beliefs, bound: Bound, before: float | None = None) -> bool:
    """Rotate the factors of each product in place, if that raises the bound.

    Parameters
    ----------
    bound, before
        The exact bound, and its value at q if that is known.

    Returns
    -------
    bool
        Whether q has changed.
    """
    moved = False
    for product in products(network):
        sides = sides_of(network, q, product)
        if len(sides) < len(product.operands):
            continue
        before = bound(q) if before is None else before
        old = {n: (q.natural[n].copy(), q.moments[n].copy()) for n in product.operands}
        for name, side in zip(product.operands, rotated(*sides), strict=True):
            write(network, q, name, natural_of(side))
        after = bound(q)
        if after > before:
            before, moved = after, True
            continue
        for name, (natural, moments) in old.items():
            q.natural[name][:], q.moments[name][:] = natural, moments
            q.version += 1
    return moved


def write(network: Network, q: Beliefs, name: str, natural: Array) -> None:
    """Set the natural parameters of a variable, and the moments that belong to them."""
    natural = natural.reshape(q.natural[name].shape)
    q.natural[name][:] = natural
    q.moments[name][:] = network.hidden[name].family.moments(natural)
    q.version += 1


def sides_of(network: Network, q: Beliefs, product: Product) -> list[Side]:
    """Return q of the operands of a product whose priors are as described above."""
    found = []
    for name in product.operands:
        prior = isotropic_prior(network, q, name)
        if prior is None or name not in q.natural:
            continue
        natural, size = q.natural[name], dimension(network.hidden[name])
        means = q.moments[name][:, :size].reshape(-1, product.width)
        shape = (-1, product.width) if size == 1 else (-1, size, size)
        found.append(Side(means, (-2 * natural[:, size:]).reshape(shape), prior))
    return found


def isotropic_prior(network: Network, q: Beliefs, name: str) -> float | None:
    """Return the precision of the prior, if it is one number and the mean is 0."""
    variable = network.hidden[name]
    if any(parent.hidden for parent in variable.conditional.parents()):
        return None
    prior, size = network.priors(q, name), dimension(variable)
    precision = -2 * prior[:, size:].reshape(-1, size, size)
    number = float(precision[0, 0, 0])
    if np.any(prior[:, :size]) or np.any(precision != number * np.eye(size)):
        return None
    return number


def natural_of(side: Side) -> Array:
    """Return the natural parameters of one side."""
    if side.precision.ndim == 2:
        return np.stack([side.precision * side.mean, -0.5 * side.precision], axis=-1)
    linear = np.einsum("eij,ej->ei", side.precision, side.mean)
    square = -0.5 * side.precision.reshape(len(linear), -1)
    return np.concatenate([linear, square], axis=1)

"""The best change of factors (rotation.py) applied to q, where it raises the exact bound.

It serves products of two variables with prior means of 0, whatever else is in the mean of the rows.
The precisions of the priors may differ between factors, and may be Gammas, which are then updated
with the factors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.families.gamma import Gamma
from svmp.inference.products import Product, pairs
from svmp.inference.rotation import Learn, Side, rotated
from svmp.network.beliefs import Beliefs
from svmp.network.linear import dimension
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
    for product in pairs(network):
        sides = sides_of(network, q, product)
        if len(sides) != len(product.operands):
            continue
        before = bound(q) if before is None else before
        precisions = learned_precisions(network, q, product)
        names = [*product.operands, *(p.name for p in precisions)]
        old = {n: (q.natural[n].copy(), q.moments[n].copy()) for n in names}
        learn = learner(precisions, *sides) if precisions else None
        left, right = sides
        for name, side in zip(product.operands, rotated(left, right, learn), strict=True):
            write(network, q, name, natural_of(side))
        for precision in precisions:
            write(network, q, precision.name, precision.natural(network, q, product))
        after = bound(q)
        if after > before:
            before, moved = after, True
            continue
        for name, (natural, moments) in old.items():
            q.natural[name][:], q.moments[name][:] = natural, moments
            q.version += 1
    return moved


class Precision(NamedTuple):
    """A Gamma that is the precision of all factors of some operands, or of each.

    Attributes
    ----------
    name, operands
        Its name, and the positions of the operands.
    alpha, beta
        Parameters of its prior, one of each for every element.
    """

    name: str
    operands: tuple[int, ...]
    alpha: Array
    beta: Array

    def parameters(self, sizes: list[int], moments: list[Array]) -> tuple[Array, Array]:
        """Return alpha and beta of q, given numbers of elements and sums of second moments."""
        count = np.full(len(moments[0]), sum(sizes[i] for i in self.operands))
        total = np.sum([moments[i] for i in self.operands], axis=0)
        if len(self.alpha) == 1:
            count, total = count.sum(keepdims=True), total.sum(keepdims=True)
        return self.alpha + 0.5 * count, self.beta + 0.5 * total

    def natural(self, network: Network, q: Beliefs, product: Product) -> Array:
        """Return the natural parameters of its q given that of the operands."""
        sizes, moments = [], []
        for name in product.operands:
            size, second = dimension(network.hidden[name]), q.moments[name]
            if size == 1:
                second = second[:, 1].reshape(-1, product.width)
            else:
                second = second[:, size :: size + 1]  # the diagonal
            sizes.append(len(second))
            moments.append(second.sum(axis=0))
        alpha, beta = self.parameters(sizes, moments)
        return Gamma().natural(alpha=alpha, beta=beta)


def learner(precisions: list[Precision], left: Side, right: Side) -> Learn:
    """Return the expected precisions as a function of second moments."""
    sizes = [len(left.mean), len(right.mean)]

    def learn(*moments: Array) -> tuple[Array, Array]:
        found = [np.broadcast_to(s.prior, len(moments[0])) for s in (left, right)]
        for precision in precisions:
            alpha, beta = precision.parameters(sizes, [*moments])
            for i in precision.operands:
                found[i] = np.broadcast_to(alpha / beta, len(moments[0]))
        return found[0], found[1]

    return learn


def learned_precisions(network: Network, q: Beliefs, product: Product) -> list[Precision]:
    """Return the Gammas that are precisions of the operands, and of no other variable."""
    users: dict[str, list[int]] = {}
    for place, name in enumerate(product.operands):
        slot = network.hidden[name].conditional.slots["tau"]
        for parent in slot.variables:
            users.setdefault(parent.name, []).append(place)
    found = []
    for name, places in users.items():
        variable = network.hidden.get(name)
        of = {edge.conditional.variable.name for edge in network.edges.get(name, ())}
        operands = {product.operands[i] for i in places}
        complete = all(network.present[n] is None for n in operands)
        if variable is None or of != operands or not complete or name not in q.natural:
            continue
        if not isinstance(variable.family, Gamma) or variable.size not in (1, product.width):
            continue
        means = np.broadcast_to(q.moments[name][:, 0], product.width)
        priors = [diagonal_prior(network, q, n, product.width) for n in operands]
        if any(p is None or not np.allclose(p, means, rtol=1e-12) for p in priors):
            continue  # it is multiplied by other numbers
        prior = Gamma().standard(network.priors(q, name))
        found.append(Precision(name, tuple(places), prior["alpha"], prior["beta"]))
    return found


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
        prior = diagonal_prior(network, q, name, product.width)
        if prior is None or name not in q.natural:
            continue
        natural, size = q.natural[name], dimension(network.hidden[name])
        means = q.moments[name][:, :size].reshape(-1, product.width)
        shape = (-1, product.width) if size == 1 else (-1, size, size)
        found.append(Side(means, (-2 * natural[:, size:]).reshape(shape), prior))
    return found


def diagonal_prior(network: Network, q: Beliefs, name: str, width: int) -> Array | None:
    """Return the expected precision of each factor; None if factors depend, or have other means."""
    variable = network.hidden[name]
    slots, size = variable.conditional.slots, dimension(variable)
    if slots["mu"].variables or variable.conditional.selector is not None:
        return None
    prior = network.priors(q, name)
    precision = -2 * prior[:, size:].reshape(-1, size, size)
    diagonal = np.einsum("eii->ei", precision).reshape(-1, width)
    apart = np.count_nonzero(precision) > np.count_nonzero(diagonal)
    if np.any(prior[:, :size]) or apart or np.any(diagonal != diagonal[0]):
        return None
    return diagonal[0]


def natural_of(side: Side) -> Array:
    """Return the natural parameters of one side."""
    if side.precision.ndim == 2:
        return np.stack([side.precision * side.mean, -0.5 * side.precision], axis=-1)
    linear = np.einsum("eij,ej->ei", side.precision, side.mean)
    square = -0.5 * side.precision.reshape(len(linear), -1)
    return np.concatenate([linear, square], axis=1)

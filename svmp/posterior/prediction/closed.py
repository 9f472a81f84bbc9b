"""Means and variances of rows in closed form, where their parents are uncorrelated.

    E[y] = E[mu],     Var[y] = Var[mu] + E[1 / tau]

for a Normal, with expectations under q for elements that the fit knows, and for new ones

    E[x] = E[mu],     E[x^2] = E[mu^2] + E[1 / tau],

and so on upwards. That is exact if no two parents of a row share an ancestor that was not fixed by
q; elsewhere the caller averages over draws. The rates of Poissons are products of known Gammas.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from svmp import factors, families
from svmp.families.family import Array, Family, stack
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import Conditional
from svmp.network.grid import Ints
from svmp.network.means.linear import Linear
from svmp.network.reader import Reader
from svmp.network.slot import Fixed, Product, Single, Slot
from svmp.posterior.prediction.blocks import (
    is_single,
    is_whole,
    known_in_rows,
    without_variance,
)
from svmp.posterior.prediction.chains import chain_of
from svmp.posterior.prediction.known import Known
from svmp.posterior.prediction.marginals import inverse_moment
from svmp.posterior.prediction.simulation import (
    Needed,
    family_of,
    integrated_moments,
    needed,
    set_values,
)

Moments = tuple[Array, Array]


def closed_moments(known: Known, target: str, rows: Ints, noise: bool) -> Moments | None:
    """Return mean and variance of rows; None where there is no closed form."""
    given = known.variables[target].conditional
    if not isinstance(given.factor, factors.Normal | factors.Poisson) or not len(rows):
        return None
    need = needed(known, target, rows)
    if not uncorrelated(known, need, given):
        return None
    several = [b for b in known.blocks if not is_single(b, need.known)]
    if not all(is_whole(b, given, known.variables, need.known, need.new) for b in several):
        return None
    q = expectations(known, need)
    if q is None:
        return None
    subrows = given.subrows(rows)
    normal = isinstance(given.factor, factors.Normal)
    found = (
        normal_row(given, q, subrows, noise) if normal else poisson_row(given, q, subrows, noise)
    )
    if found is not None and several:
        found = found[0], found[1] + sum(block.added(given, subrows) for block in several)
    if found is None or given.selector is None:
        return found
    weights = given.selector.moments(q, rows)
    mean, var = (part.reshape(weights.shape) for part in found)
    total = np.einsum("rk,rk->r", weights, mean)
    with np.errstate(invalid="ignore"):
        spread = np.where(weights > 0, weights * (var + (mean - total[:, None]) ** 2), 0.0)
    return total, spread.sum(axis=1)


def uncorrelated(known: Known, need: Needed, given: Conditional) -> bool:
    """Whether no two elements that a row reads share an ancestor, and so on upwards."""
    above = need.with_hidden_parents(known.variables)
    rows = (given, *(known.variables[name].conditional for name in need.new))
    return all(disjoint(known, above, conditional) for conditional in rows)


def disjoint(known: Known, above: Mapping[str, list[str]], given: Conditional) -> bool:
    """Whether the parents of a row have no ancestors in common."""

    def lineage(name: str) -> set[str]:
        found, left = {name}, [name]
        while left:
            for parent in above.get(left.pop(), ()):
                if parent not in found and parent not in known.given:
                    found.add(parent)
                    left.append(parent)
        return found

    seen: set[str] = set()
    for slot in given.all_slots():
        for variable in (v for v in slot.variables if v.name not in known.given):
            own = lineage(variable.name)
            shared = slot.width(variable) > 1 and location_is_random(known, above, variable.name)
            if own & seen or shared:
                return False
            seen |= own
    return True


def location_is_random(known: Known, above: Mapping[str, list[str]], name: str) -> bool:
    """Whether new elements of a variable have a mean that is not a fixed number."""
    if name not in above:
        return False
    given = known.variables[name].conditional
    slots = [given.slots[s] for s in ("mu", "p", "beta") if s in given.slots]
    return any(v.name not in known.given for slot in slots for v in slot.variables)


def expectations(known: Known, need: Needed) -> Beliefs | None:
    """Return beliefs with E[x] and E[x^2] of Normals, and natural parameters of the others.

    New Gammas have no hidden parents in it; None if one has, or if another kind of variable is new.
    """
    q, whole = Beliefs(), known_in_rows(known.blocks, need.known, need.known)
    for name in known.given:
        variable = known.variables[name]
        q.moments[name] = variable.conditional.child(q, variable.rows)
    set_values(q, known)
    if any(chain_of(known.variables[name]) is not None for name in need.new):
        return None
    order = [n for n in known.variables if n in need.known or n in need.new]
    for name in order:
        variable = known.variables[name]
        shape = (variable.size, variable.family.size)
        q.moments[name], q.natural[name] = np.full(shape, np.nan), np.full(shape, np.nan)
        set_values(q, known)
        elements = need.known.get(name)
        if elements is not None:
            family = family_of(variable, elements)
            set_natural(q, name, family, elements, known.natural[name][elements])
            if name in whole:
                q.moments[name][elements] = without_variance(
                    q.natural[name][elements], q.moments[name][elements]
                )
        new = need.new.get(name)
        if new is None:
            continue
        given = variable.conditional
        hidden = [v for v in given.parents() if v.name not in known.given]
        if not hidden and given.selector is None:
            set_natural(q, name, family_of(variable, new), new, np.array(given.to_child(q, new)))
        elif isinstance(given.factor, factors.Normal) and given.selector is None:
            found = normal_row(given, q, new, noise=True)
            if found is None:
                return None
            q.moments[name][new] = stack(found[0], found[1] + found[0] ** 2)
        elif isinstance(given.factor, factors.Categorical) and given.selector is None:
            q.moments[name][new] = np.exp(given.slots["p"].moments(q, new))
        else:
            return None
    return q


def set_natural(q: Beliefs, name: str, family: Family, elements: Ints, own: Array) -> None:
    """Set the natural parameters of elements, and their moments; log E[p] for Dirichlets."""
    q.natural[name][elements] = own
    q.moments[name][elements] = integrated_moments(family, own)


def normal_row(given: Conditional, q: Beliefs, rows: Ints, noise: bool) -> Moments | None:
    """Return E[y] and Var[y] of Normal rows."""
    mu = given.slots["mu"]
    if isinstance(mu, Linear):
        mean, var = mu.mean(q, rows), np.maximum(mu.variance(q, rows), 0.0)
    elif isinstance(mu, Fixed):
        mean, var = np.array(mu.moments(q, rows)[:, 0]), np.zeros(len(rows))
    else:
        return None
    if not noise:
        return mean, var
    inverse = power(given.slots["tau"], q, rows, -1)
    return None if inverse is None else (mean, var + inverse)


def poisson_row(given: Conditional, q: Beliefs, rows: Ints, noise: bool) -> Moments | None:
    """Return E[y] and Var[y] of Poisson rows: Var[y] = E[rate] + Var[rate]."""
    rate, square = (power(given.slots["mu"], q, rows, order) for order in (1, 2))
    if rate is None or square is None:
        return None
    return rate, np.maximum(square - rate**2, 0.0) + (rate if noise else 0.0)


def power(slot: Slot, q: Beliefs, rows: Ints, order: int) -> Array | None:
    """E[t^order] of a positive parameter, for order -1, 1 or 2; None if it is not known."""
    if isinstance(slot, Fixed):
        return np.array(slot.moments(q, rows)[:, 0]) ** order
    if isinstance(slot, Single):
        return gamma_power(q, slot.reader, rows, order)
    if not isinstance(slot, Product):
        return None
    value = np.full(len(rows), slot.scale)
    for array in slot.constants:
        value *= slot.scope.look_up(array, rows, rows)
    value **= order
    for reader in slot.readers:
        own = gamma_power(q, reader, rows, order)
        if own is None:
            return None
        value = value * own
    return value


def gamma_power(q: Beliefs, reader: Reader, rows: Ints, order: int) -> Array | None:
    """E[g^order] of the Gamma that each row reads."""
    name, elements = reader.variable.name, reader.element(rows, rows)
    if name not in q.natural:  # observed
        return np.asarray(q.moments[name][elements, 0] ** order)
    natural = q.natural[name][elements]
    if np.isnan(natural).any():
        return None
    alpha, beta = families.Gamma().standard(natural).values()
    if order < 0:
        return inverse_moment(alpha, beta, 1)
    mean = alpha / beta
    return mean if order == 1 else mean**2 * (1 + 1 / alpha)

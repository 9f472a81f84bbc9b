"""The distribution of rows given a draw of their parents, with one parent integrated over.

For each density: which parents can be integrated over in closed form, and what remains
(marginals.py, count_marginals.py). Densities that are not listed are drawn from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from svmp import factors, families
from svmp.families.family import Array, Family
from svmp.families.matrix import inverse
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import Conditional
from svmp.network.grid import Ints
from svmp.network.means.linear import Linear
from svmp.network.partly_known import base_of
from svmp.network.reader import Reader
from svmp.network.slot import Product, Single, Slot
from svmp.network.variable import Variable
from svmp.posterior.prediction import count_marginals, marginals
from svmp.posterior.prediction.blocks import KnownBlock, is_single, is_whole
from svmp.posterior.prediction.known import Known
from svmp.posterior.prediction.marginals import Marginal
from svmp.posterior.prediction.mixtures import Points
from svmp.posterior.prediction.nodes import gamma_nodes
from svmp.posterior.prediction.simulation import Needed, draw


class Parameters(NamedTuple):
    """The marginals of sub-rows.

    Attributes
    ----------
    kind, arrays
        A kind of marginal, and its parameters for each sub-row.
    weights
        Weights (sub-rows, nodes) where one parent is integrated over by quadrature; the arrays then
        have the nodes on their second axis.
    """

    kind: type[Marginal]
    arrays: tuple[Array, ...]
    weights: Array | None = None


def integrable(known: Known, needed: Needed, target: str) -> set[str]:
    """Return the parents of a variable that are integrated over instead of drawn.

    These are conditionally independent given the others: none is an ancestor of another element
    that is needed, and a mean is linear in all of them together.
    """
    variables = known.variables
    given = variables[target].conditional
    above = needed.with_hidden_parents(variables)
    free = {n for n in (*needed.known, *needed.new) if all(n not in p for p in above.values())}
    free -= {n for n in needed.new if switches(variables[n])}
    chosen: set[str] = set()
    if isinstance(given.selector, Single) and given.selector.reader.variable.name in free:
        chosen.add(given.selector.reader.variable.name)
    for slot in (s for name, s in given.slots.items() if name != "tau"):
        if isinstance(slot, Linear):
            chosen |= linear_in(slot, free)
        elif isinstance(slot, Product):
            names = [r.variable.name for r in slot.readers]
            chosen |= set([n for n in names if n in free and known.values(n) is None][:1])
        elif isinstance(slot, Single) and known.values(slot.reader.variable.name) is None:
            chosen |= {slot.reader.variable.name} & free
    chosen |= probabilities_of(known, needed, target, chosen)
    for block in known.blocks:
        mine = {name for name in needed.known if name in block.place}
        whole = is_whole(block, given, variables, needed.known, needed.new) and mine <= chosen
        if block.linear:
            chosen |= mine
        elif not (whole or is_single(block, needed.known)):
            chosen -= mine  # drawn together
    return chosen | precision_in(known, needed, given, free, chosen)


def precision_in(
    known: Known, needed: Needed, given: Conditional, free: Collection[str], chosen: Collection[str]
) -> set[str]:
    """Return the Gamma that is the precision of Normal rows, if nothing else is to be drawn.

    It is integrated over by quadrature, which needs far fewer nodes than draws.
    """
    slot = given.slots.get("tau")
    if not isinstance(given.factor, factors.Normal) or not isinstance(slot, Single):
        return set()
    name = slot.reader.variable.name
    left = {*needed.known, *needed.new} - {*chosen}
    return left if left == {name} & {*free} and known.values(name) is None else set()


def switches(variable: Variable) -> bool:
    """Whether a variable is a mixture or a chain that switches: given its parents, it is drawn."""
    return variable.conditional.selector is not None


def linear_in(slot: Linear, free: Collection[str]) -> set[str]:
    """Return variables of a mean that is linear in all of them together."""
    chosen: set[str] = set()
    for variable in slot.variables:
        beside = {
            r.variable.name
            for term in slot.terms
            if term.reader(variable) is not None
            for r in term.readers
        }
        if variable.name in free and not beside & chosen:
            chosen.add(variable.name)
    return chosen


def probabilities_of(
    known: Known, needed: Needed, target: str, chosen: Collection[str]
) -> set[str]:
    """Return Dirichlets that nothing needs but Categoricals that are integrated over."""
    children: dict[str, set[str]] = {}
    for name in (target, *needed.new):
        for parent in known.variables[name].conditional.parents():
            children.setdefault(parent.name, set()).add(name)
    return {
        name
        for name in (*needed.known, *needed.new)
        if isinstance(base_of(known.variables[name].family), families.Dirichlet)
        and children.get(name, set()) <= set(chosen)
    }


@dataclass(frozen=True, eq=False)
class Target:
    """The rows of a variable, given draws of their parents.

    Attributes
    ----------
    given
        The density.
    integrated, varying
        Variables that are integrated over, and those that differ between draws.
    noise
        Whether rows are predicted, or their means.
    rng
        Random numbers, for densities that are drawn from.
    kept
        What is the same in every draw.
    blocks
        Joint blocks of the fit of which rows read several elements.
    """

    given: Conditional
    integrated: Collection[str]
    varying: Collection[str]
    noise: bool
    rng: np.random.Generator
    kept: dict[str, tuple[Array, Array]]
    blocks: tuple[KnownBlock, ...] = ()

    def parameters(self, q: Beliefs, rows: Ints) -> Parameters:
        """Return the marginals of the sub-rows of some rows."""
        subrows = self.given.subrows(rows)
        make = KINDS.get(type(self.given.factor), drawn)
        return make(self, q, subrows)

    @property
    def is_drawn(self) -> bool:
        """Whether rows are drawn, even given their parents."""
        return self.noise and type(self.given.factor) not in KINDS

    def weights(self, q: Beliefs, rows: Ints) -> Array | None:
        """Return the probability of each component (rows, components); None without components."""
        slot = self.given.selector
        return None if slot is None else slot.moments(q, rows)

    def constant(self, name: str, rows: Ints) -> Array:
        """Return a constant of the density at each sub-row."""
        given, values = self.given, self.given.constants[name]
        found = given.scope.look_up(values, rows, rows)
        events = given.factor.constants[name]
        shape = found.shape[found.ndim - events :]
        return np.broadcast_to(found, (len(rows), *shape))

    def gaussian(self, name: str, q: Beliefs, rows: Ints) -> tuple[Array, Array]:
        """Return mean and variance of a linear parameter, over what is integrated."""
        slot = self.given.slots[name]
        same = not {v.name for v in slot.variables} & set(self.varying)
        if same and name in self.kept:
            return self.kept[name]
        if isinstance(slot, Linear):
            mean = slot.mean(q, rows)
            random = any(v.name in self.integrated for v in slot.variables)
            var = slot.variance(q, rows) if random else np.zeros(len(rows))
            for block in self.blocks:
                if any(v.name in block.place and v.name in self.integrated for v in slot.variables):
                    var = var + block.added(self.given, rows)
            var = np.maximum(var, 0.0)
        else:
            mean, var = np.array(slot.moments(q, rows)[:, 0]), np.zeros(len(rows))
        if same:
            self.kept[name] = mean, var
        return mean, var

    def natural(self, q: Beliefs, reader: Reader, rows: Ints) -> Array:
        """Return the natural parameters of the integrated element that each sub-row reads."""
        return q.natural[reader.variable.name][reader.element(rows, rows)]


def normal(target: Target, q: Beliefs, rows: Ints) -> Parameters:
    """A Normal mean plus noise, Normal given tau."""
    mean, var = target.gaussian("mu", q, rows)
    if not target.noise:
        return points_or(mean, var)
    slot = target.given.slots["tau"]
    if isinstance(slot, Single) and slot.reader.variable.name in target.integrated:
        shape, rate = families.Gamma().standard(target.natural(q, slot.reader, rows)).values()
        tau, weights = gamma_nodes(shape, rate)
        mean = np.broadcast_to(mean[:, None], tau.shape)
        return Parameters(marginals.NormalMarginal, (mean, var[:, None] + 1 / tau), weights)
    tau = slot.moments(q, rows)[:, 0]
    return Parameters(marginals.NormalMarginal, (mean, var + 1 / tau))


def points_or(mean: Array, var: Array) -> Parameters:
    """Return Normals, or points where nothing was integrated over."""
    if not var.any():
        return Parameters(Points, (mean,))
    return Parameters(marginals.NormalMarginal, (mean, var))


def logistic(target: Target, q: Beliefs, rows: Ints) -> Parameters:
    """Integrate the true logistic function, not its bound, over a Normal logit."""
    mean, var = target.gaussian("logit", q, rows)
    n = np.ones(len(rows))
    if "n" in target.given.factor.constants:
        n = np.array(target.constant("n", rows))
    if target.noise and n.max(initial=0) <= 1:
        chance = marginals.mean_expit(mean, var)
        return Parameters(count_marginals.BinomialMarginal, (n, chance))
    if target.noise:
        return Parameters(count_marginals.BinomialLogitNormal, (n, mean, var))
    return Parameters(marginals.LogitNormal, (mean, np.maximum(var, marginals.TINY), n))


def vector(target: Target, q: Beliefs, rows: Ints) -> Parameters:
    """Entries of a Normal vector, given its precision matrix."""
    given = target.given
    mu = given.slots["mu"].moments(q, rows)
    d = int(np.sqrt(mu.shape[-1]))
    mean = mu[:, :d]
    square = np.diagonal(mu[:, d:].reshape(-1, d, d), axis1=1, axis2=2)
    var = np.maximum(square - mean**2, 0.0)
    names = {v.name for v in given.slots["mu"].variables}
    if not names & set(target.integrated):
        var = np.zeros(mean.shape)
    if not target.noise:
        return points_or(np.array(mean), var)
    tau = given.slots["tau"].moments(q, rows)[:, :-1].reshape(-1, d, d)
    noise = np.diagonal(inverse(tau), axis1=1, axis2=2)
    return Parameters(marginals.NormalMarginal, (mean, var + noise))


def rate_of(target: Target, name: str, q: Beliefs, rows: Ints) -> tuple[Array, Array] | Array:
    """Return shape and rate of a positive parameter that is integrated over, else its value."""
    slot: Slot = target.given.slots[name]
    readers = slot.readers if isinstance(slot, Product) else ()
    readers = (slot.reader,) if isinstance(slot, Single) else readers
    for reader in readers:
        if reader.variable.name in target.integrated:
            shape, rate = families.Gamma().standard(target.natural(q, reader, rows)).values()
            if isinstance(slot, Product):
                rate = rate / slot.others(q, reader.variable, rows, rows)
            return shape, rate
    return np.array(slot.moments(q, rows)[:, 0])


def poisson(target: Target, q: Beliefs, rows: Ints) -> Parameters:
    """Poisson with a Gamma rate."""
    rate = rate_of(target, "mu", q, rows)
    if isinstance(rate, tuple):
        kind = count_marginals.NegativeBinomial if target.noise else marginals.GammaMarginal
        return Parameters(kind, rate)
    return Parameters(count_marginals.PoissonMarginal if target.noise else Points, (rate,))


def waiting(target: Target, q: Beliefs, rows: Ints) -> Parameters:
    """Exponential or Gamma with a Gamma rate."""
    exponential = isinstance(target.given.factor, factors.Exponential)
    alpha = np.ones(len(rows)) if exponential else np.array(target.constant("alpha", rows))
    rate = rate_of(target, "lam" if exponential else "beta", q, rows)
    if isinstance(rate, tuple):
        if target.noise:
            return Parameters(marginals.CompoundGamma, (alpha, *rate))
        return Parameters(marginals.InverseGamma, (rate[0], alpha * rate[1]))
    if target.noise:
        return Parameters(marginals.GammaMarginal, (alpha, rate))
    return Parameters(Points, (alpha / rate,))


def trials(target: Target, q: Beliefs, rows: Ints) -> Parameters:
    """Bernoulli, Binomial, Categorical (as its one-hot vector) or Multinomial."""
    slot, factor = target.given.slots["p"], target.given.factor
    n = np.array(target.constant("n", rows)) if "n" in factor.constants else np.ones(len(rows))
    pair = factor.slots["p"] is families.Beta
    n = n if pair else n[:, None]
    if isinstance(slot, Single) and slot.reader.variable.name in target.integrated:
        a = target.natural(q, slot.reader, rows) + 1
        alpha = a[:, 0] if pair else a
        beta = a[:, 1] if pair else np.maximum(a.sum(axis=1, keepdims=True) - a, marginals.TINY)
        n = np.broadcast_to(n, alpha.shape)
        if target.noise and n.max(initial=0) <= 1:
            return Parameters(count_marginals.BinomialMarginal, (n, alpha / (alpha + beta)))
        if target.noise:
            return Parameters(count_marginals.BetaBinomial, (n, alpha, beta))
        return Parameters(marginals.BetaMarginal, (alpha, beta, n))
    p = np.exp(slot.moments(q, rows))
    p = p[:, 0] if pair else p / p.sum(axis=1, keepdims=True)
    n = np.broadcast_to(n, p.shape)
    if target.noise:
        return Parameters(count_marginals.BinomialMarginal, (n, p))
    return Parameters(Points, (n * p,))


def shares(target: Target, q: Beliefs, rows: Ints) -> Parameters:
    """Beta, or the entries of a Dirichlet, with fixed parameters."""
    if isinstance(target.given.factor, factors.Beta):
        alpha, beta = (np.array(target.constant(name, rows)) for name in ("alpha", "beta"))
    else:
        alpha = np.array(target.constant("a", rows))
        beta = np.maximum(alpha.sum(axis=1, keepdims=True) - alpha, marginals.TINY)
    if target.noise:
        return Parameters(marginals.BetaMarginal, (alpha, beta, np.ones(alpha.shape)))
    return Parameters(Points, (alpha / (alpha + beta),))


def drawn(target: Target, q: Beliefs, rows: Ints) -> Parameters:
    """Draw from a density that has no closed form here."""
    given = target.given
    natural = given.factor.to_child(given.given(q, rows))
    natural = np.broadcast_to(natural, (len(rows), natural.shape[-1]))
    family = base_of(given.family).at(rows // given.components)
    values = draw(family, natural, target.rng) if target.noise else family.mean(natural)
    return Parameters(Points, (values,))


KINDS: dict[type, Callable[[Target, Beliefs, Ints], Parameters]] = {
    factors.Normal: normal,
    factors.BernoulliLogit: logistic,
    factors.BinomialLogit: logistic,
    factors.MvNormal: vector,
    factors.Poisson: poisson,
    factors.Exponential: waiting,
    factors.Gamma: waiting,
    factors.Bernoulli: trials,
    factors.Binomial: trials,
    factors.Categorical: trials,
    factors.Multinomial: trials,
    factors.Beta: shares,
    factors.Dirichlet: shares,
}
"""By density, the function that returns the marginals of its rows."""


def marginal_of(family: Family, natural: Array, draws: int, rng: np.random.Generator) -> Parameters:
    """Return the marginals of elements with these natural parameters; a Wishart is drawn from."""
    if family.gaussian is not None:
        mean, var = family.mean(natural)[None], family.var(natural)[None]
        return Parameters(marginals.NormalMarginal, (mean, var))
    if family.precision == "number":
        shape, rate = (p[None] for p in family.standard(natural).values())
        return Parameters(marginals.GammaMarginal, (shape, rate))
    if isinstance(family, families.Beta):
        alpha, beta = (p[None] for p in family.standard(natural).values())
        return Parameters(marginals.BetaMarginal, (alpha, beta, np.ones(alpha.shape)))
    if family.simplex:
        a = family.standard(natural)["a"][None]
        rest = np.maximum(a.sum(axis=-1, keepdims=True) - a, marginals.TINY)
        return Parameters(marginals.BetaMarginal, (a, rest, np.ones(a.shape)))
    if family.nominal or isinstance(family, families.Bernoulli):
        p = family.mean(natural)[None]
        return Parameters(count_marginals.BinomialMarginal, (np.ones(p.shape), p))
    return Parameters(Points, (family.draw(natural, rng, draws),))

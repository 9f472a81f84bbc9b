"""Joint updates of variables in one sum of a mean: intercepts, slopes, group effects.

In y ~ Normal(a + b * x, tau) the mean of `a` depends on that of `b`. Where x is far from 0,
updating one after the other takes many thousands of sweeps. Given all other variables, the bound is
a concave quadratic in the means m of such a block,

    bound(m + d) = bound(m) + g . d - d^T A d / 2,
    A = sum over rows of w x x^T,    g = sum over rows of w x (y - E[mu]),

with x the coefficients of the block in a row and w = E[tau]. The rows are those of the tables whose
mean reads the block, and of its own variables, each a Normal around its prior mean. So the optimal
means are m + d with A d = g. q stays factorised: the precisions of its elements are on the diagonal
of A, as when each is updated alone, and the fixed points are those of coordinate ascent. The rows
of a logit have the w of the tangent at the current q (factors/bernoulli_logit.py), which is a lower
bound that is tight at the current q, so that raising it raises the bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from svmp import factors
from svmp.families.family import Array
from svmp.inference.methods.draw import Draw
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.block_means import (
    FARTHEST,
    coordinate_step,
    natural_of,
    newton_step,
)
from svmp.inference.updaters.linear_design import Coefficients, Design, LinearBlock, unknowns
from svmp.inference.updaters.updater import Change, Term, Updater, blend
from svmp.network.beliefs import Beliefs
from svmp.network.chains.chain import Chain
from svmp.network.conditional import Conditional
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.means.linear import Linear, dimension
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown
from svmp.network.variable import Variable

LARGEST = 512
"""Most unknown means in a block: its matrix is dense."""


@dataclass(frozen=True, eq=False)
class LinearBlockUpdater(Updater):
    """Updates the variables of a block from one solution for all of their means.

    Attributes
    ----------
    terms
        The terms of its variables in the bound.
    """

    block: LinearBlock
    terms: Mapping[str, Term]

    @property
    def label(self) -> str:  # type: ignore[override]
        """Short description."""
        return f"solved jointly: {', '.join(self.names)}"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.block.starts)

    @property
    def solves_together(self) -> bool:
        return True

    def update(self, q: Beliefs, rows: Draw, rho: StepRule) -> Iterator[Change]:
        block = self.block
        precision, means = solve_means(block, q, rows)
        for variable in block.variables:
            name, elements = variable.name, block.network.rows(variable)
            target = natural_of(precision, means, block.places(variable)[elements])
            read = rows.read(name, elements)
            step = rho(q, name, elements, read, target)
            natural = blend(q.natural[name][elements], target, step)
            yield Change(name, elements, natural, int(read.sum()), step, read)

    def bound_term(self, q: Beliefs) -> dict[str, float]:
        return {name: term(q) for name, term in self.terms.items()}


def find_blocks(
    network: Network, apart: frozenset[str] = frozenset(), without: frozenset[str] = frozenset()
) -> dict[str, LinearBlock]:
    """Return the block of each variable that is in one; blocks are cached in the network.

    Where there are too many unknowns for a block, variables with fewer elements have precedence. No
    block has variables that are in `apart` and others that are not, or variables of `without`.
    """
    key = "blocks", apart, without
    blocks: dict[str, LinearBlock] | None = network.derived.get(key)
    if blocks is None:
        blocks = network.derived[key] = {}
        fitting = [v for v in network.hidden.values() if v.name not in without and fits(network, v)]
        for own in (True, False):
            side = [v for v in fitting if (v.name in apart) == own]
            for part in chosen_parts(network, side):
                block = LinearBlock.of(network, part)
                blocks |= {v.name: block for v in part}
    return blocks


def chosen_parts(network: Network, variables: list[Variable]) -> Iterator[list[Variable]]:
    """Yield the variables of each block, of those that fit into one."""
    for group in connected(network, variables):
        chosen, size = set(), 0
        for variable in sorted(group, key=unknowns):
            size += unknowns(variable)
            chosen |= {variable.name} if size <= LARGEST else set()
        for part in connected(network, [v for v in group if v.name in chosen]):
            if share_rows(network, part):
                yield part


def fits(network: Network, variable: Variable) -> bool:
    """Whether the bound is quadratic in a variable's means, jointly with other variables that fit.

    Local variables are excluded: they are optimised for the rows drawn. So are chains, whose rows
    have a q of their own structure.
    """
    given, edges = variable.conditional, network.edges[variable.name]
    normal = isinstance(given.factor, factors.Normal | factors.MvNormal) and given.selector is None
    normal = normal and not isinstance(given, Chain)
    few = bool(edges) and 0 < unknowns(variable) <= LARGEST and len(network.rows(variable)) > 0
    whole = not isinstance(variable.family, PartlyKnown) and variable.name not in network.locals
    return normal and few and whole and all(map(is_linear, edges))


def is_linear(edge: Edge) -> bool:
    """Whether a table's mean is linear in a variable, with known coefficients; no chain's is."""
    given = edge.conditional
    if isinstance(given, Chain) or given.selector is not None or not isinstance(edge.slot, Linear):
        return False
    terms = [t for t in edge.slot.terms if t.reader(edge.parent) is not None]
    return all(sum(r.variable.hidden for r in t.readers) == 1 for t in terms)


def connected(network: Network, variables: list[Variable]) -> list[list[Variable]]:
    """Partition variables into sets that have no table in common."""
    sets: list[tuple[set[str], list[Variable]]] = []
    for variable in variables:
        tables = {
            variable.name,
            *(e.conditional.variable.name for e in network.edges[variable.name]),
        }
        members = [variable]
        for other in [s for s in sets if s[0] & tables]:
            sets.remove(other)
            tables, members = tables | other[0], other[1] + members
        sets.append((tables, members))
    order = {v.name: place for place, v in enumerate(variables)}
    return [sorted(members, key=lambda v: order[v.name]) for _, members in sets]


def share_rows(network: Network, variables: list[Variable]) -> bool:
    """Whether some row depends on two elements; otherwise updating each alone is as good."""
    edges = [e for v in variables for e in network.edges[v.name]]
    return len(variables) > 1 or any(e.slot.width(e.parent) > 1 for e in edges)


def quadratic(q: Beliefs, table: Conditional, rows: Ints) -> tuple[Array, Array]:
    """Return w of each row, and w (y - E[mu])."""
    name, slot = next((n, s) for n, s in table.slots.items() if n != "tau")
    message = table.to_slot(q, name, rows)
    mean = slot.mean(q, rows) if isinstance(slot, Linear) else slot.moments(q, rows)[:, 0]
    weight = -2 * message[:, 1]
    return weight, message[:, 0] - weight * mean


def add_rows(design: Design, q: Beliefs, gradient: Array, precision: Array) -> list[Array]:
    """Add the rows of a table to g and A, in place; return w of each of its blocks of rows."""
    tau, weights = design.table.slots.get("tau"), []
    alike = tau is not None and not tau.varies
    for rows, x in design.parts(q):
        weight, pull = quadratic(q, design.table, rows)
        weights.append(weight)
        gradient += x.weighted_sum(pull)
        if not alike:
            precision += x.weighted_gram(weight)
    if alike and len(design.rows):
        precision += weights[-1][0] * design.gram(q)
    return weights


def solve_means(block: LinearBlock, q: Beliefs, draw: Draw) -> tuple[Array, Array]:
    """Return A and the optimal means, given all other variables.

    The step length along d is computed from the rows. It is 1 up to rounding, and makes sure that
    rounding does not lower the bound, even where A is almost singular. Where the optimal means are
    too far from 0 to compute E[mu^2], a sweep of coordinate ascent is done instead.
    """
    designs = [block.design(draw, table) for table in block.tables]
    means, gradient, precision = prior_of_vectors(block, q)
    own, weights = precision.copy(), list[Array]()
    for design in designs:
        weights += add_rows(design, q, gradient, precision)
    barren = precision.diagonal() == 0  # in no row that counts: they do not move
    precision[barren, barren] = own[barren, barren] = 1.0

    def parts() -> Iterator[tuple[Coefficients, Array]]:
        every = (x for design in designs for _, x in design.parts(q))
        return zip(every, weights, strict=True)

    step = newton_step(precision, gradient)
    square = (means + step) ** 2
    near = np.all(square * precision.diagonal() <= FARTHEST**2)  # all rows' terms together
    if not near and not all(
        (w * x.squares().times(square) <= FARTHEST**2).all() for x, w in parts()
    ):
        step = coordinate_step(precision, gradient)
    curvature = step @ own @ step + sum(w @ x.times(step) ** 2 for x, w in parts())
    length = float(gradient @ step) / curvature if curvature != 0 else 0.0
    return precision, means + length * step


def prior_of_vectors(block: LinearBlock, q: Beliefs) -> tuple[Array, Array, Array]:
    """Return the current means, and the contributions of the priors of MvNormals to g and A.

    The priors of Normals are rows of their own tables, but not what earlier rows taught.
    """
    means, gradient = np.zeros(block.size), np.zeros(block.size)
    precision = np.zeros((block.size, block.size))
    for variable in block.variables:
        size, places = dimension(variable), block.places(variable)
        means[places] = q.moments[variable.name][:, :size]
        prior = block.network.learned.get(variable.name)
        if size > 1:
            prior = block.network.priors(q, variable.name)
        if prior is not None:
            own = -2 * prior[:, size:].reshape(-1, size, size)
            gradient[places] = prior[:, :size] - np.einsum("eij,ej->ei", own, means[places])
            precision[places[:, :, None], places[:, None, :]] = own
    return means, gradient, precision

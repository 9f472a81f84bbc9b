"""Stochastic variational message passing: the paper's Algorithms 1 and 2, and full VB.

For each hidden x_i, with rows_i those that the algorithm draws among its N_i children,

    lambda_i_temp = eta_i + (N_i / |rows_i|) * sum over e in rows_i of eta_(e -> i)
    lambda_i     <- (1 - rho_i) lambda_i + rho_i lambda_i_temp

in option (a) at once, in option (b) at the end of the iteration. Full VB reads all rows with
unit steps, which is equation (5). Where groups of rows are drawn, as documents, the variables that
belong to them alone come first, and are optimised outright.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array, dot
from svmp.inference.fused import fused_update
from svmp.inference.grouped import DrawnGroups
from svmp.inference.guard import check_domain
from svmp.inference.joint import Block
from svmp.inference.linear_block import find_blocks
from svmp.inference.messages import Pass, in_turn, message_sum
from svmp.inference.rows import AllRows, Draw, Sampled, by_colour
from svmp.inference.selection import Selection
from svmp.inference.settled import settle_documents, take_turn
from svmp.inference.steps import StepContext, Steps
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.network import Network

Update = tuple[Ints, Array]
"""Elements, and their new natural parameters."""
MEMORY = 0.1
"""Weight of the newest gradient in the running statistics that a policy may ask for."""
REST = 1e-4
"""A group is at rest when a pass moves its q by at most so many nats an element: for a Normal, by
a hundredth of its standard deviation, which is little beside the noise of drawing groups."""
MOST_PASSES = 100
"""Passes over a group at most, so that one that is slow to rest does not hold up the others."""


def iterate(
    network: Network, q: Beliefs, selection: Selection, steps: Steps, seed: int, iteration: int
) -> Pass:
    """Update every hidden variable once, in place; the variables of the rows drawn go first."""
    draw, together = selection.draw(network, seed, iteration), []
    done = Pass(fresh=draw.fresh)
    q.touched.clear()
    q.settle()
    settle_groups(network, q, draw, done)
    rule = Rule(network, q, draw, steps, iteration, selection.option)
    unscaled = isinstance(draw, AllRows | Sampled) and selection.option == "a"
    blocks = find_blocks(network) if selection.joint and unscaled else {}
    solved: set[str] = set()
    for name in update_order(network, selection.order):
        if name in blocks:  # the first of a block has its turn for all of them
            if name not in solved:
                solved |= blocks[name].update(q, draw, rule, done)
            continue
        if name in q.settled:
            done.accesses += take_turn(network, q, draw, name)
            continue
        at_once = selection.option == "a" or name in draw.locals
        updates: Iterable[Update] | None
        updates = fused_update(network, q, draw, rule, name, selection.joint, at_once, done)
        if updates is None:
            block = Block.of(network, name) if selection.joint else None
            plain = proposals(network, q, draw, rule, name, done)
            updates = plain if block is None else [block.proposal(q, draw, rule, done)]
        for elements, natural in updates:
            check_domain(network.hidden[name], elements, natural)
            if at_once:
                network.move(q, name, elements, natural)
            else:
                together.append((name, elements, natural))
    for name, elements, natural in together:
        network.move(q, name, elements, natural)
    return done


def proposals(
    network: Network, q: Beliefs, draw: Draw, rule: Rule, name: str, done: Pass
) -> Iterator[Update]:
    """Yield the new natural parameters of elements that can be updated together, group by group."""
    for elements in in_turn(network, q, draw, name, draw.groups(name)):
        target = message_sum(network, q, draw, name, elements, done)
        read = draw.read(name, elements)
        rho = rule(name, elements, read, target)
        done.note(name in draw.locals, rho, read)
        step = rho[:, None]
        yield elements, (1 - step) * q.natural[name][elements] + step * target


def settle_locals(network: Network, q: Beliefs, draw: Draw | None = None) -> Pass:
    """Optimise the variables of all rows, of which an algorithm that draws leaves some behind.

    So it does with those of all groups, where groups are drawn.
    """
    draw, done = draw or AllRows(network), Pass()
    settle_groups(network, q, draw, done)
    for name in (n for n in network.locals if n not in q.settled):
        for elements in in_turn(network, q, draw, name, draw.groups(name)):
            optimise(network, q, draw, name, elements, done)
    return done


def settle_groups(network: Network, q: Beliefs, draw: Draw, done: Pass) -> None:
    """Optimise the variables of the drawn groups by coordinate ascent, until each group rests.

    They are found anew from near their prior: what they were before does not matter.
    """
    if not isinstance(draw, DrawnGroups):
        return
    grouping, active = draw.grouping, draw.drawn
    for number, (name, variable) in enumerate(network.hidden.items()):
        if name in grouping.group and name not in q.settled:
            elements = grouping.rows(name, active)
            prior = np.array(network.prior(q, name, elements))
            natural = variable.family.at(elements).start(prior, np.random.default_rng([number, 5]))
            network.move(q, name, elements, natural)
    if q.settled:
        done.accesses += settle_documents(network, q, draw, REST, MOST_PASSES)
        return
    for _ in range(MOST_PASSES):
        moved = np.zeros(grouping.count)
        for name in grouping.locals:
            groups = by_colour(network, name, grouping.rows(name, active))
            for elements in in_turn(network, q, draw, name, groups):
                change = optimise(network, q, draw, name, elements, done)
                moved += np.bincount(grouping.group[name][elements], change, grouping.count)
        active = active[moved[active] > REST * grouping.sizes[active]]
        if not len(active):
            return


def optimise(
    network: Network, q: Beliefs, draw: Draw, name: str, elements: Ints, done: Pass
) -> Array:
    """Give elements the optimum for the rows they read; return how far each moved.

    That is the symmetrised KL between old and new, in nats.
    """
    before, moments = q.natural[name][elements], q.moments[name][elements]
    natural = message_sum(network, q, draw, name, elements, done)
    check_domain(network.hidden[name], elements, natural)
    network.move(q, name, elements, natural)
    return dot(natural - before, q.moments[name][elements] - moments)


@dataclass(frozen=True)
class Rule:
    """The step policy, asked about elements; the rows' own variables are optimised outright."""

    network: Network
    q: Beliefs
    draw: Draw
    steps: Steps
    iteration: int
    option: str

    def __call__(
        self,
        name: str,
        elements: Ints,
        read: Ints,
        target: Array | None = None,
        children: Ints | None = None,
    ) -> Array:
        """Return rho of each element, or one number for all."""
        if name in self.draw.locals:
            return np.ones(1)
        gradient = square = None
        if target is not None and getattr(self.steps, "statistics", False):
            gradient, square = self.q.remember_gradient(name, elements, target, MEMORY)
        look = StepContext(
            name,
            self.iteration,
            self.draw.children(name, elements) if children is None else children,
            read,
            self.draw.coupling[name],
            self.option == "b",
            self.draw.batch_share,
            gradient,
            square,
        )
        try:
            rho = np.atleast_1d(np.asarray(self.steps(look), dtype=np.float64))
            if rho.shape not in ((1,), elements.shape):
                raise ValueError(f"an array of shape {rho.shape} for {len(elements)} elements")
        except (TypeError, ValueError) as error:
            raise ModelError(f"the steps for '{name}' are not a number each: {error}") from None
        if not (np.isfinite(rho) & (rho > 0)).all():
            raise ModelError(f"the steps for '{name}' must be positive and finite, not {rho.min()}")
        return rho


def update_order(network: Network, order: Sequence[str] | None) -> list[str]:
    """Return the names of the hidden variables in the order of their updates."""
    if order is None:
        return network.default_order
    if sorted(order) != sorted(network.hidden):
        raise ModelError(
            f"order names {sorted(order)}, but the hidden variables are {sorted(network.hidden)}"
        )
    return list(order)

"""Iterations for tests: one at a time, on a q that is made by hand."""

from __future__ import annotations

from typing import Any, NamedTuple

import svmp
from svmp.inference.engine import step
from svmp.inference.methods.draw import Draw
from svmp.inference.program.program import Program
from svmp.inference.state.info import Info
from svmp.inference.state.state import State
from svmp.inference.steps import as_policy
from svmp.inference.updaters.plain import PlainUpdater
from svmp.inference.updaters.setup import find_loops
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.network import Network


def program_for(
    network: Network, q: Beliefs, method: Any, steps: Any = None, seed: int = 0
) -> Program:
    """Return the program that serves a q: compiled if `compile_means` or `unstore` was called."""
    kernels = bool(q.row_moments or q.implicit)
    policy = as_policy(steps or svmp.Constant(1.0))
    program = Program.of(network, method, kernels, policy=policy, seed=seed, stored=q.natural)
    program.attach(q)
    return program


def compile_means(network: Network, q: Beliefs) -> Beliefs:
    """Let compiled loops serve a q, where there are any; return it."""
    q.row_moments.update({name: loops.moments for name, loops in find_loops(network).items()})
    return q


def unstore(network: Network, q: Beliefs, method: Any) -> Beliefs:
    """Take the variables that need not be stored out of a q; return it."""
    program = Program.of(network, method)
    program.attach(q)
    for name in q.implicit:
        del q.natural[name], q.moments[name]
    return q


def iterate(
    network: Network, q: Beliefs, method: Any, steps: Any, seed: int, iteration: int
) -> Info:
    """Take one iteration, in place."""
    program = program_for(network, q, method, steps, seed)
    _, info = step(program, State(q, iteration - 1))
    return info


def optimise_locals(network: Network, q: Beliefs, over: str | None = None) -> int:
    """Optimise the local variables of all rows, or of all groups; return the rows read."""
    method = svmp.FullVB() if over is None else svmp.Batch(1, over=over)
    return program_for(network, q, method).optimise_locals(q)


def bound_terms(network: Network, q: Beliefs) -> dict[str, float]:
    """Return the exact bound, by the loops that serve q, if any do."""
    if not (q.row_moments or q.implicit):
        return network.bound(q)
    return program_for(network, q, svmp.FullVB()).bound(q)


class Target(NamedTuple):
    """lambda_temp of some elements, and the number of rows read."""

    total: Any
    accesses: int


def message_sum(network: Network, q: Beliefs, rows: Draw, name: str, elements: Ints) -> Target:
    """Return lambda_temp of some elements, and the number of rows read."""
    updater = PlainUpdater.of(network, name)
    sums, accesses = updater.message_sum(q, rows, elements)
    return Target(network.prior(q, name, elements) + sums, accesses)

"""Sums over parts of the rows add up to those of all rows, and their solution is the update."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pytest

import svmp
from svmp.families.family import Array
from svmp.inference.methods.draw import AllRows, with_locals
from svmp.inference.methods.growing import Sampled
from svmp.inference.program.program import Program
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.updater import SummingUpdater
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network
from tests.inference.tools import GALLERY, gallery
from tests.network.tools import anywhere, optimum


class Part(Sampled):
    """Every third observation from some first one."""

    @cached_property
    def tables(self):
        first = int(self.seed)
        rows = {name: v.rows[first::3] for name, v in self.network.observed.items()}
        return with_locals(self.network, rows)


def summing(network: Network, kernels: bool) -> list[SummingUpdater]:
    """Return the updaters with sums whose children are all rows of observed tables."""
    program = Program.of(network, svmp.FullVB(), kernels, stored=list(network.hidden))
    tables = {*network.observed, *network.locals}
    return [
        u
        for u in program.updaters
        if isinstance(u, SummingUpdater)
        and not set(u.names) & set(network.locals)
        and all(e.conditional.variable.name in tables for e in network.edges[u.names[0]])
    ]


def attached(network: Network, kernels: bool):
    q = anywhere(network, 3)
    return Program.of(network, svmp.FullVB(), kernels, stored=list(network.hidden)).attach(q)


def solved(network: Network, updater: SummingUpdater, q: Beliefs, sums: Array) -> Array:
    """Return lambda_temp of an updater's only variable."""
    (name,) = updater.names
    prior = {name: network.hidden[name].conditional.to_children(q)}
    return updater.solver.solve(sums, prior, q.natural)[name]


@pytest.mark.parametrize("kernels", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("name", GALLERY)
def test_sums_of_parts_add_up(name: str, kernels: bool) -> None:
    network = Network(gallery()[name])
    q = attached(network, kernels)
    for updater in summing(network, kernels):
        whole = updater.sums(q, AllRows(network))
        parts = sum(updater.sums(q, Part(network, 0.5, first)) for first in range(3))
        scale = np.abs(whole).max(initial=1e-300)
        np.testing.assert_allclose(parts, whole, rtol=1e-5, atol=1e-6 * scale)


@pytest.mark.parametrize("name", GALLERY)
def test_plain_solution_is_the_optimum(name: str) -> None:
    network = Network(gallery()[name])
    q = attached(network, kernels=False)
    for updater in summing(network, kernels=False):
        found = solved(network, updater, q, updater.sums(q, AllRows(network)))
        np.testing.assert_allclose(found, optimum(network, q, updater.names[0]), rtol=1e-9)


@pytest.mark.parametrize("name", ["04 paper", "04 vectors", "04 biases", "09", "10"])
def test_compiled_solution_is_the_joint_update(name: str) -> None:
    """The update itself is compared with plain code in tests/kernels."""
    network = Network(gallery()[name])
    program = Program.of(network, svmp.Growing(1.0))
    compiled = [u for u in program.updaters if isinstance(u, SummingUpdater)]
    compiled = [u for u in compiled if u.label.startswith("compiled (")]
    if name.startswith("04"):
        assert compiled
    for updater in compiled:
        q = program.attach(anywhere(network, 3))
        rows = AllRows(network)
        found = solved(network, updater, q, updater.sums(q, rows))
        for change in updater.update(q, rows, StepRule.unit(rows)):
            program.apply(q, change)
        np.testing.assert_allclose(found, q.natural[updater.names[0]], rtol=1e-4, atol=1e-4)


def test_topics_are_solved_from_sums_of_parts() -> None:
    network = Network(gallery()["07"])
    program = Program.of(network, svmp.FullVB())
    (topics,) = [u for u in program.updaters if u.names == ("phi",)]
    assert isinstance(topics, SummingUpdater)
    q = anywhere(network, 3)
    for name in program.implicit:
        del q.natural[name], q.moments[name]
    program.attach(q)
    parts = sum(topics.sums(q, Part(network, 0.5, first)) for first in range(3))
    found = solved(network, topics, q, parts)
    rows = AllRows(network)
    program.begin(q, rows)
    for change in topics.update(q, rows, StepRule.unit(rows)):
        program.apply(q, change)
    np.testing.assert_allclose(found, q.natural["phi"], rtol=1e-6)

"""Sums of parts that are networks of their own, solved, are the update of the undivided network."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import svmp
from svmp.families.family import Array
from svmp.inference.methods.draw import AllRows
from svmp.inference.program.program import Program
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.block_sums import BlockSolver, Member, SummingBlockUpdater
from svmp.inference.updaters.joint import JointSolver
from svmp.inference.updaters.linear_block import LinearBlockUpdater
from svmp.inference.updaters.plain import PlainUpdater
from svmp.inference.updaters.solver import (
    LineSolver,
    MultilinearSolver,
    PlainSolver,
    Solver,
    VectorSolver,
)
from svmp.inference.updaters.updater import SummingUpdater
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network
from tests.inference.updaters.parted import NETWORKS, ROWS, USER, Ints, Make, hierarchy, ratings
from tests.network.tools import anywhere

METHODS = {"joint": svmp.Growing(1.0), "in turn": svmp.FullVB()}


class Piece(NamedTuple):
    """A network with its program and its q."""

    network: Network
    program: Program
    q: Beliefs
    elements: dict[str, Ints]
    own: frozenset[str]

    @property
    def updaters(self) -> dict[tuple[str, ...], SummingUpdater]:
        """The updaters of shared variables that can be solved from sums."""
        return {
            u.names: u
            for u in self.program.updaters
            if isinstance(u, SummingUpdater) and self.solvable(u)
        }

    def solvable(self, updater: SummingUpdater) -> bool:
        """Whether it reads rows of the parts alone, and needs only one round."""
        names = set(updater.names)
        tables = {e.conditional.variable.name for n in names for e in self.network.edges[n]}
        one = isinstance(updater, PlainUpdater) and len(self.network.groups[updater.name]) > 1
        return not names & self.own and tables <= {*self.network.observed, *self.own} and not one


def piece(make: Make, rows: Ints, whole: Beliefs | None, method: Any, kernels: bool) -> Piece:
    part = make(rows)
    network = Network(part.model)
    q = anywhere(network, 3)
    every = {n: np.arange(v.size) for n, v in network.hidden.items()}
    elements = every | dict(part.elements)
    if whole is not None:
        for name in network.hidden:
            q.natural[name] = whole.natural[name][elements[name]]
            q.moments[name] = whole.moments[name][elements[name]]
    program = Program.of(network, method, kernels, apart=part.own)
    return Piece(network, program, q, elements, part.own)


def start(piece: Piece) -> None:
    """Prepare the q of a piece for its program."""
    for name in piece.program.implicit:
        del piece.q.natural[name], piece.q.moments[name]
    piece.program.attach(piece.q)
    piece.program.begin(piece.q, AllRows(piece.network))


def pieces(make: Make, method: Any, kernels: bool) -> tuple[Piece, list[Piece]]:
    """Return the undivided network, and three uneven parts of its rows by user."""
    undivided = piece(make, np.arange(ROWS), None, method, kernels)
    part = np.array([0, 0, 0, 1, 1, 2, 1, 0, 0, 2, 1, 0])[USER]
    rows = [np.flatnonzero(part == p) for p in range(3)]
    found = [piece(make, some, undivided.q, method, kernels) for some in rows]
    for each in (undivided, *found):
        start(each)
    return undivided, found


def shuffled(solver: Solver, sizes: dict[str, int]) -> dict[str, Ints]:
    """Return other places of the elements of each variable; those of a key stay together."""
    rng, found = np.random.default_rng(5), {}
    for name, size in sizes.items():
        if isinstance(solver, LineSolver):
            lines = solver.elements(size // solver.width)
            found[name] = np.empty(size, dtype=np.int64)
            found[name][lines] = rng.permutation(lines)
        else:
            found[name] = rng.permutation(size)
    return found


def updated(whole: Piece, updater: SummingUpdater) -> dict[str, Array]:
    """Return the natural parameters after the update of the undivided network."""
    rows, q = AllRows(whole.network), whole.q
    before = {n: (q.natural[n].copy(), q.moments[n].copy()) for n in updater.names}
    for change in updater.update(q, rows, StepRule.unit(rows)):
        whole.program.apply(q, change)
    found = {n: q.natural[n].copy() for n in updater.names}
    for name, (natural, moments) in before.items():
        q.natural[name][:], q.moments[name][:] = natural, moments
    q.version += 1
    whole.program.begin(q, rows)
    return found


def assert_close(found: Array, expected: Array, rtol: float = 1e-10) -> None:
    """Compare natural parameters, with errors relative to the largest entry of each element."""
    scale = np.abs(expected).max(axis=1, keepdims=True)
    assert np.max(np.abs(found - expected) / scale) <= rtol


def summed(whole: Piece, parts: list[Piece], in_place: bool) -> Iterator[tuple[Any, ...]]:
    """Yield the solver of each updater, the natural parameters found, and those expected."""
    for names, updater in whole.updaters.items():
        solver = pickle.loads(pickle.dumps(updater.solver))  # as it is sent to another process
        assert solver == updater.solver
        sizes = {n: whole.network.hidden[n].size for n in names}
        at = shuffled(solver, sizes)
        total = solver.empty(sizes)
        for part in parts:
            own = part.updaters[names]
            places = {n: at[n][part.elements[n]] for n in names}
            rows = AllRows(part.network)
            if in_place:
                own.add_sums(part.q, rows, total, places)
            else:
                solver.add(total, own.sums(part.q, rows), places)
        back = {n: np.argsort(at[n]) for n in names}
        prior = {n: whole.network.prior(whole.q, n, back[n]) for n in names}
        natural = {n: whole.q.natural[n][back[n]] for n in names}
        found = solver.solve(total, prior, natural)
        expected = updated(whole, updater)
        for name in names:
            yield solver, found[name][at[name]], expected[name]


@pytest.mark.parametrize("in_place", [False, True], ids=["added", "in place"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernels", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("make", NETWORKS, ids=lambda make: make.__name__)
def test_the_solution_of_sums_of_parts_is_the_update_of_all(make, kernels, method, in_place):
    whole, parts = pieces(make, METHODS[method], kernels)
    for part in parts:
        assert set(part.updaters) == set(whole.updaters)
    for _, found, expected in summed(whole, parts, in_place):
        assert_close(found, expected)


def test_every_solver_is_used_by_these_networks() -> None:
    used = set()
    for make in NETWORKS:
        for kernels in (False, True):
            whole = piece(make, np.arange(ROWS), None, METHODS["joint"], kernels)
            assert whole.updaters
            used |= {type(u.solver) for u in whole.updaters.values()}
    assert used == {PlainSolver, MultilinearSolver, VectorSolver, JointSolver, BlockSolver}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernels", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("make", NETWORKS, ids=lambda make: make.__name__)
def test_scaled_sums_are_those_of_repeated_rows(make, kernels, method):
    whole, _ = pieces(make, METHODS[method], kernels)
    for names, updater in whole.updaters.items():
        sums = updater.sums(whole.q, AllRows(whole.network))
        thrice = {n: np.full(whole.network.hidden[n].size, 3.0) for n in names}
        found = updater.solver.scaled(sums, thrice)
        total = np.zeros_like(sums)
        for _ in range(3):
            updater.solver.add(total, sums, dict.fromkeys(names))
        np.testing.assert_allclose(found, total, rtol=1e-12, atol=1e-12)


def test_elements_without_rows_get_their_prior() -> None:
    solver = MultilinearSolver.of("v", 3, joint=True)
    prior = np.tile([0.4, -1.5], (6, 1))
    found = solver.solve(solver.empty({"v": 6}), {"v": prior}, {"v": np.tile([0.0, -0.5], (6, 1))})
    np.testing.assert_allclose(found["v"], prior, rtol=1e-14)


BAD_PLACES = {
    "not whole numbers": ([0.0, 1.0, 2.0, 3.0], "4 whole numbers"),
    "too few": ([0, 1], "4 whole numbers"),
    "beyond the total": ([4, 5, 6, 7], "elements of a total that has 6"),
    "negative": ([-2, -1, 0, 1], "elements of a total that has 6"),
    "twice": ([0, 1, 0, 1], "different elements"),
    "keys taken apart": ([0, 2, 1, 3], "in the same order"),
    "keys turned round": ([1, 0, 3, 2], "in the same order"),
}


@pytest.mark.parametrize("solver", [MultilinearSolver.of("v", 2, True), JointSolver.of("v", 2, 1)])
@pytest.mark.parametrize("case", BAD_PLACES)
def test_places_that_are_no_keys_of_the_total_are_refused(case: str, solver: LineSolver) -> None:
    places, message = BAD_PLACES[case]
    total, sums = solver.empty({"v": 6}), solver.empty({"v": 4})
    with pytest.raises(svmp.ModelError, match=message):
        solver.add(total, sums, {"v": np.array(places)})
    with pytest.raises(svmp.ModelError, match="have 2 keys, and the total 3"):
        solver.add(total, sums, {"v": None})


def test_solutions_of_other_sizes_are_refused() -> None:
    solver = VectorSolver.of("v", 2)
    natural = {"v": np.zeros((4, 6))}
    with pytest.raises(svmp.ModelError, match="'v' differ in size"):
        solver.solve(solver.empty({"v": 3}), natural, natural)


def test_totals_of_single_precision_are_added_to() -> None:
    whole, _ = pieces(ratings(5), METHODS["joint"], kernels=True)
    updater, rows = whole.updaters["v",], AllRows(whole.network)
    total = updater.solver.empty({"v": 7 * 5}).astype(np.float32)
    updater.add_sums(whole.q, rows, total, {"v": None})
    np.testing.assert_allclose(total, updater.sums(whole.q, rows), rtol=1e-6)


def test_blocks_keep_variables_of_a_part_apart() -> None:
    model = hierarchy(np.arange(ROWS)).model
    network = Network(model)
    together = Program.of(network, METHODS["joint"])
    apart = Program.of(network, METHODS["joint"], apart=["u"])
    assert {"top", "slope", "u"} in [set(u.names) for u in together.updaters]
    for updater in apart.updaters:
        assert updater.names == ("u",) or "u" not in updater.names
    assert Program.of(network, METHODS["joint"]).explain() == together.explain()


def test_blocks_with_parents_of_each_other_have_no_sums() -> None:
    network = Network(hierarchy(np.arange(ROWS)).model)
    (block,) = [
        u
        for u in Program.of(network, METHODS["joint"]).updaters
        if isinstance(u, LinearBlockUpdater)
    ]
    assert not isinstance(block, SummingBlockUpdater)


def test_singular_blocks_are_solved_by_coordinate_ascent() -> None:
    """Two means that are read in the same rows only, with almost no prior, have no one solution."""
    solver = BlockSolver((Member("a", 1, True), Member("b", 1, True)))
    sums = np.array([[4.0, 4.0, 8.0, 4.0], [4.0, 4.0, 8.0, 4.0]])
    nothing = {n: np.array([[0.0, -1e-300]]) for n in "ab"}
    current = {n: np.array([[0.0, -0.5]]) for n in "ab"}
    found = solver.solve(sums, nothing, current)
    means = {n: float(-0.5 * found[n][0, 0] / found[n][0, 1]) for n in "ab"}
    assert means["a"] + means["b"] == pytest.approx(2.0)


def test_plain_updates_of_one_set_of_elements_after_the_other() -> None:
    """Elements that share rows are updated in rounds, each from sums of its own."""
    whole, parts = pieces(ratings(5), METHODS["in turn"], kernels=False)
    (plain,) = [u for u in whole.program.updaters if u.names == ("v",)]
    assert isinstance(plain, PlainUpdater)
    groups = whole.network.groups["v"]
    assert len(groups) > 1
    natural = whole.q.natural["v"].copy()
    for elements in groups:
        total = plain.solver.empty({"v": len(elements)})
        for part in parts:
            (own,) = [u for u in part.program.updaters if u.names == ("v",)]
            here = np.flatnonzero(np.isin(part.elements["v"], elements))
            at = np.searchsorted(elements, part.elements["v"][here])
            assert isinstance(own, PlainUpdater)
            sums = own.sums(part.q, AllRows(part.network), here)
            plain.solver.add(total, sums, {"v": at})
        prior = {"v": whole.network.prior(whole.q, "v", elements)}
        natural[elements] = plain.solver.solve(total, prior, {"v": natural[elements]})["v"]
        for part in parts:
            part.network.move(
                part.q, "v", np.arange(len(part.elements["v"])), natural[part.elements["v"]]
            )
            part.program.begin(part.q, AllRows(part.network))
    rows = AllRows(whole.network)
    for change in plain.update(whole.q, rows, StepRule.unit(rows)):
        whole.program.apply(whole.q, change)
    assert_close(natural, whole.q.natural["v"])

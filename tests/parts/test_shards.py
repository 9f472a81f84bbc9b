"""Sums in shards: the same bits for any number of shards, homes and groups."""

from __future__ import annotations

import numpy as np
import pytest

from svmp.families.normal import Normal
from svmp.inference.updaters.joint import JointSolver
from svmp.inference.updaters.solver import LineSolver, MultilinearSolver, PlainSolver
from svmp.parts.context import SharedQ, Visited
from svmp.parts.schedule import Asked, Visit
from svmp.parts.shards import (
    MOST_SHARDS,
    SHARD_BYTES,
    Shard,
    add_lines,
    join_shards,
    nodes_by_home,
    shards_of,
    solve_lines,
)
from svmp.parts.tree import added_up, single_nodes

LINES, GROUPS = 7, 5


def visits(solver: LineSolver, rng: np.random.Generator) -> list[Visited]:
    """Sums of random rows in groups, and those of another variable."""
    found = []
    for group in range(GROUPS):
        sums = rng.standard_normal((LINES, solver.numbers))
        if isinstance(solver, MultilinearSolver):
            u = rng.standard_normal((LINES, 9, solver.width))
            gram = np.einsum("lri,lrj->lij", u, u)
            rows, columns = np.tril_indices(solver.width)
            sums = np.zeros_like(sums)
            sums[:, : len(rows)] = gram[:, rows, columns]
        other = rng.standard_normal((3, 2))
        counts = {"v": rng.integers(0, 9, LINES * solver.width)}
        found.append(Visited([other, sums], counts, {((group,),): {}}, group, {}))
    return found


@pytest.mark.parametrize("solver", [PlainSolver.of("v", 2), MultilinearSolver.of("v", 3, True)])
@pytest.mark.parametrize("solved", [None, 1])
def test_shards_and_homes_change_no_bit(solver: LineSolver, solved: int | None) -> None:
    rng = np.random.default_rng(0)
    every, size = visits(solver, rng), LINES * solver.width
    prior = {"v": np.tile([0.5, -0.5], (size, 1))}
    shared = SharedQ({"v": np.tile([0.1, -1.0], (size, 1))}, {})
    asked = [
        Asked(("w",), PlainSolver.of("w", 2)),
        Asked(("v",), solver, family=Normal(), table="y"),
    ]
    visit = Visit(asked=asked, measures=True)
    nodes = single_nodes(GROUPS)
    total = added_up(iter([v.totals[1] for v in every]), nodes, np.add)
    other = added_up(iter([v.totals[0] for v in every]), nodes, np.add)
    target = solver.solve(total, prior, shared.natural)["v"]
    moments = [Normal().moments(natural) for natural in (shared.natural["v"], target)]
    gains = solver.gains(total, *moments)
    for homes in ("aaaaa", "aaaab", "aabbb", "abcab"):
        for among in (1, 2, 3, LINES + 1):
            found = []
            for shard in (Shard(number, among) for number in range(among)):
                places = nodes_by_home(list(homes))
                pieces = [add_lines(shard, every[node.start : node.stop]) for node in places]
                found.append(solve_lines(pieces, places, shard, shared, visit, prior, solved))
            joined = join_shards(found)
            assert np.array_equal(joined.totals[0], other)
            assert joined.accesses == sum(range(GROUPS))
            assert np.array_equal(joined.children["v"], sum(v.children["v"] for v in every))
            assert not joined.own
            if solved is None:
                assert np.array_equal(joined.totals[1], total)
            else:
                assert joined.target is not None
                assert np.array_equal(joined.target["v"], target)
                assert np.array_equal(joined.gains, gains)
                assert not len(joined.totals[1])


@pytest.mark.parametrize("after", [0, 1, 2])
def test_shards_of_sums_whose_elements_lie_apart_give_the_same_solution(after: int) -> None:
    rng, solver = np.random.default_rng(0), JointSolver.of("v", 3, after)
    sums = rng.uniform(0, 1, (8, solver.numbers))
    sums[:, -solver.width :] += 9
    prior = {"v": np.stack([rng.standard_normal(24), np.full(24, -0.5)], axis=1)}
    shared, visit = SharedQ({"v": np.tile([0.1, -1.0], (24, 1))}, {}), Visit()
    visit.asked = [Asked(("v",), solver)]
    shards = shards_of(visit.asked, MOST_SHARDS * SHARD_BYTES, 4, 0)
    nodes, found = [range(1)], []
    for shard in shards:
        pieces = [add_lines(shard, [Visited([sums], {}, {}, 0, {})])]
        found.append(solve_lines(pieces, nodes, shard, shared, visit, prior, 0))
    target = join_shards(found).target
    assert target is not None
    np.testing.assert_array_equal(target["v"], solver.solve(sums, prior, shared.natural)["v"])
    assert len(shards) == (4 if after == 1 else 1)

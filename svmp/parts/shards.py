"""Sums of all groups on workers, in shards: each worker adds and solves some of the lines.

    total[lines] = ((g0 + g1) + (g2 + g3))[lines],   lambda_temp[lines] = solve(total[lines])

Lines of sums are added and solved independently of each other, so that bits do not depend on the
number of shards. What comes back for a solution is lambda_temp, and no sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.inference.updaters.solver import LineSolver
from svmp.parts.context import Own, SharedQ, Visited
from svmp.parts.schedule import Asked, Visit
from svmp.parts.solution import Solution
from svmp.parts.tasks import sums_by_lines
from svmp.parts.tree import added_up, halves

MOST_SHARDS = 32
"""Most shards: every worker has a task for each of them."""
SHARD_BYTES = 1 << 18
"""Fewest bytes of a shard: with fewer, tasks cost more than they save."""


class Shard(NamedTuple):
    """A part of the lines of every total: number `number` of `among`."""

    number: int
    among: int

    def lines(self, length: int) -> slice:
        """Return the lines of a total of some length.

        >>> [Shard(i, 3).lines(10) for i in range(3)]
        [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
        """
        return slice(self.number * length // self.among, (self.number + 1) * length // self.among)


def shards_of(asked: Sequence[Asked], sizes: int, places: int, solved: int | None) -> list[Shard]:
    """Return the shards of a visit.

    Parameters
    ----------
    asked
        The sums that parts are asked for.
    sizes
        Bytes of all of them.
    places
        Number of workers.
    solved
        Which of the sums a solution is computed from, if any.
    """
    count = max(1, min(places, MOST_SHARDS, sizes // SHARD_BYTES))
    solver = None if solved is None else asked[solved].solver
    if solver is not None and not (isinstance(solver, LineSolver) and solver.divides):
        count = 1  # it needs all sums
    return [Shard(number, count) for number in range(count)]


def nodes_by_home(homes: Sequence[str | None]) -> list[range]:
    """Return the highest nodes of the tree whose groups have one home each.

    >>> nodes_by_home("aaab")
    [range(0, 2), range(2, 3), range(3, 4)]
    """

    def below(node: range) -> list[range]:
        if len({homes[number] for number in node}) <= 1:
            return [node] if node else []
        return [found for half in halves(node) for found in below(half)]

    return below(range(len(homes)))


def add_lines(shard: Shard, every: Sequence[Visited]) -> Visited:
    """Return the sums of the groups of a node for the lines of a shard.

    The first shard has what does not belong to any lines.
    """
    whole = range(len(every))
    return _added([_cut(visited, shard) for visited in every], [range(i, i + 1) for i in whole])


def solve_lines(
    pieces: Sequence[Visited],
    nodes: Sequence[range],
    shard: Shard,
    shared: SharedQ,
    visit: Visit,
    prior: Own | None,
    solved: int | None,
) -> Visited:
    """Add the sums of all nodes for the lines of a shard, and solve for the elements of these.

    Parameters
    ----------
    pieces, nodes
        The results of `add_lines` of all nodes, in their order.
    shard
        The lines.
    shared, visit
        q of the shared variables, and what parts were asked for.
    prior, solved
        eta_i by variable, and which of the sums the solution is computed from; None for no
        solution. That total is then empty in what is returned.
    """
    if solved is None or prior is None or pieces[0].target is not None:
        return _added(pieces, nodes)
    every, wanted = [piece.totals[solved] for piece in pieces], visit.asked[solved]
    natural = {
        name: shared.natural[name]
        if wanted.elements is None
        else shared.natural[name][wanted.elements]
        for name in wanted.names
    }
    if isinstance(wanted.solver, LineSolver):
        some = elements_of(wanted.solver, shard, len(natural[wanted.solver.name]))
        prior, natural = (
            {name: array[some] for name, array in arrays.items()} for arrays in (prior, natural)
        )
    solution = Solution.of(solved, wanted, prior, natural, visit.measures)
    _solve(solution, every, nodes)
    found = _added([_without(piece, solved) for piece in pieces], nodes)
    return found._replace(target=solution.target, gains=solution.gains)


def _solve(solution: Solution, every: Sequence[Array], nodes: Sequence[range]) -> None:
    """Add the sums of all nodes and solve, some lines at a time where that is possible.

    An array for all lines would be as large as those that were received, and new memory takes
    longer than the addition.
    """
    solver = solution.solver
    if len(every) == 1 or not (isinstance(solver, LineSolver) and solver.divides):
        solution.take(slice(0, len(every[0])), added_up(iter(every), nodes, np.add))
        return
    adders = [[partial(_add_some, sums)] for sums in every]
    length, numbers = every[0].shape
    for lines, total in sums_by_lines(adders, length, numbers, nodes):
        solution.take(lines, total)


def _add_some(sums: Array, total: Array, lines: slice, first: int) -> None:
    """Add some lines of sums to a total of these lines."""
    total += sums[lines]


def _without(visited: Visited, number: int) -> Visited:
    """Return a result without one of its totals, which is empty then."""
    totals = list(visited.totals)
    totals[number] = totals[number][:0]
    return visited._replace(totals=totals)


def elements_of(solver: LineSolver, shard: Shard, elements: int) -> slice:
    """Return the elements whose sums are on the lines of a shard."""
    lines = shard.lines(elements // solver.width)
    return slice(lines.start * solver.width, lines.stop * solver.width)


def join_shards(every: Sequence[Visited]) -> Visited:
    """Return the results of all shards together."""
    first, *_ = every
    totals = [np.concatenate(some) for some in zip(*(one.totals for one in every), strict=True)]
    target: Own | None = None
    if first.target is not None:
        target = {
            name: np.concatenate([one.target[name] for one in every if one.target is not None])
            for name in first.target
        }
    gains = [one.gains for one in every if one.gains is not None]
    return first._replace(
        totals=totals, target=target, gains=np.concatenate(gains) if gains else None
    )


def _cut(visited: Visited, shard: Shard) -> Visited:
    """Return the lines of a shard of a result, without the q of own variables."""
    totals = [total[shard.lines(len(total))] for total in visited.totals]
    if shard.number:
        return Visited(totals, {}, {}, 0, {}, target=visited.target, gains=visited.gains)
    return visited._replace(totals=totals, own={})


def _added(every: Sequence[Visited], nodes: Sequence[range]) -> Visited:
    """Return the results of some nodes together, in arrays of their own if there are several."""
    return added_up(iter(every), nodes, _sum)


def _sum(one: Visited, other: Visited) -> Visited:
    totals: list[Array] = [a + b for a, b in zip(one.totals, other.totals, strict=True)]
    children = {name: count + other.children[name] for name, count in one.children.items()}
    terms, accesses = one.terms | other.terms, one.accesses + other.accesses
    return Visited(totals, children, {}, accesses, terms)

"""The order in which the unknowns of a sparse symmetric matrix are eliminated: minimum degree.

To eliminate a node p from a graph connects all of its neighbours L_p with each other: they are the
rows of column p of the factor. The graph is kept as a quotient (George and Liu 1989): p becomes an
*element* whose members L_p stand for that clique, and absorbs the elements that it was itself a
member of, so that no edge is ever added.

Which nodes are adjacent to a node i is read from its list, which has the numbers of neighbours as
they were at first. Those that were eliminated since stand for elements: `absorbed_by` leads from
each to the element that has absorbed it. So nothing is written to a node of a later stage when its
neighbours are eliminated. The lists of a few nodes are as long as the graph, those of an intercept
for instance, and to write to them each time would take quadratic time.

Nodes are eliminated in stages, the largest factor of a model first. Without stages two crossed
factors with similar degrees would be eliminated in turn, each of which makes the other one denser:
of 5,000 crossed with 5,000 levels nearly 10,000 would stay, in place of 5,000.
"""

from __future__ import annotations

import numpy as np

from svmp.kernels.machine.compiling import jit, shared
from svmp.network.grid import Ints


@jit
def absorber(absorbed_by: Ints, node: int) -> int:
    """Return the element that has absorbed an eliminated node; shorten the way to it."""
    last = node
    while absorbed_by[last] != last:
        last = absorbed_by[last]
    while absorbed_by[node] != last:
        node, absorbed_by[node] = absorbed_by[node], last
    return last


@shared
def eliminate(
    starts: Ints,
    adjacent: Ints,
    weight: Ints,
    stage: Ints,
    stages: int,
    share: float,
    few: int,
    many: int,
    most_work: float,
) -> tuple[Ints, Ints, Ints]:
    """Return the nodes in the order of their elimination, and the members L_p of each.

    Parameters
    ----------
    starts, adjacent
        The neighbours of each node, without itself.
    weight
        Number of unknowns of each node.
    stage, stages
        In which stage each node may be eliminated, and the number of stages.
    share
        A node stays if it has more neighbours than this share of all unknowns that are left, or
        than twice this share while more than `many` are left.
    few, many
        Nothing more is eliminated once no more than `few` unknowns are left; more than `many` are
        too many for a dense matrix.
    most_work
        Nothing more is eliminated once the squares of the numbers of neighbours add up to this.

    Returns
    -------
    order, ends, members
        L_p of the k-th node are the members before ends[k], from ends[k - 1] on.
    """
    nodes, left = len(weight), weight.sum()
    entries, first, length = adjacent.copy(), starts[:-1].copy(), np.diff(starts)
    absorbed_by, gone = np.arange(nodes), np.zeros(nodes, np.bool_)
    begin, end = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)  # of the members of elements
    members, count = np.empty(max(len(adjacent), 16), np.int64), 0
    order, ends, done = np.empty(nodes, np.int64), np.empty(nodes, np.int64), 0
    seen, met, stamp = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), 0
    # Nodes of one degree are a doubly linked list: the smallest degree is known at all times.
    most = int(2 * share * left) + 1
    head, after = np.full(most + 1, -1), np.full(nodes, -1)
    before, degree = np.full(nodes, -1), np.full(nodes, -1)
    renew, work = np.empty(nodes, np.int64), 0.0
    for now in range(stages):
        some = 0
        for i in range(nodes - 1, -1, -1):  # the first of equal degrees is then eliminated first
            if stage[i] == now and not gone[i]:
                renew[some] = i
                some += 1
        lowest = most + 1
        while True:
            for place in range(some):  # the degrees of nodes whose neighbours have changed
                i = renew[place]
                if degree[i] >= 0:
                    if before[i] >= 0:
                        after[before[i]] = after[i]
                    else:
                        head[degree[i]] = after[i]
                    if after[i] >= 0:
                        before[after[i]] = before[i]
                    degree[i] = -1
                stamp += 1
                seen[i] = stamp
                kept, total = first[i], 0
                limit = min(most, (2 * share if left > many else share) * left)
                for k in range(first[i], first[i] + length[i]):
                    x = entries[k]
                    if gone[x]:
                        x = absorber(absorbed_by, x)
                        if met[x] == stamp:
                            continue
                        met[x] = stamp
                        if total <= limit:  # else it stays, whatever the others are
                            for m in range(begin[x], end[x]):
                                if seen[members[m]] != stamp:
                                    seen[members[m]] = stamp
                                    total += weight[members[m]]
                    elif seen[x] != stamp:
                        seen[x] = stamp
                        total += weight[x]
                    entries[kept] = x
                    kept += 1
                length[i] = kept - first[i]
                if total <= limit:
                    degree[i], before[i], after[i] = total, -1, head[total]
                    if head[total] >= 0:
                        before[head[total]] = i
                    head[total] = i
                    lowest = min(lowest, total)
            while lowest <= most and head[lowest] < 0:
                lowest += 1
            if (
                left <= few
                or work > most_work
                or lowest > min(most, (2 * share if left > many else share) * left)
            ):
                break
            p = head[lowest]
            head[lowest] = after[p]
            if after[p] >= 0:
                before[after[p]] = -1
            degree[p], gone[p] = -1, True
            work += weight[p] * float(lowest) * lowest
            left -= weight[p]
            if count + left > len(members):
                more = np.empty(2 * len(members) + left, np.int64)
                more[:count] = members[:count]
                members = more
            stamp += 1
            seen[p], begin[p], some = stamp, count, 0
            for k in range(first[p], first[p] + length[p]):
                x = entries[k]
                if gone[x]:
                    x = absorber(absorbed_by, x)
                    if x == p:
                        continue
                    absorbed_by[x] = p
                    for m in range(begin[x], end[x]):
                        i = members[m]
                        if seen[i] != stamp:
                            seen[i] = stamp
                            members[count] = i
                            count += 1
                elif seen[x] != stamp:
                    seen[x] = stamp
                    members[count] = x
                    count += 1
            end[p] = count
            order[done], ends[done] = p, count
            done += 1
            for m in range(begin[p], count):
                if stage[members[m]] == now and degree[members[m]] >= 0:
                    renew[some] = members[m]
                    some += 1
        for i in range(nodes):  # those that stay are no longer in lists
            degree[i] = -1
        head[:] = -1
    return order[:done], ends[:done], members[:count]


@shared
def sort_rows(starts: Ints, rows: Ints, size: int) -> Ints:
    """Return the rows of the columns of a pattern in ascending order, by two transpositions."""
    place = np.zeros(size + 1, np.int64)
    for k in range(len(rows)):
        place[rows[k] + 1] += 1
    for i in range(size):
        place[i + 1] += place[i]
    ends = place[1:].copy()
    column = np.empty(len(rows), np.int64)
    for j in range(len(starts) - 1):
        for k in range(starts[j], starts[j + 1]):
            column[place[rows[k]]] = j
            place[rows[k]] += 1
    found, place = np.empty(len(rows), np.int64), starts[:-1].copy()
    first = 0
    for i in range(size):
        for k in range(first, ends[i]):
            found[place[column[k]]] = i
            place[column[k]] += 1
        first = ends[i]
    return found

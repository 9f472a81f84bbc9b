"""The algorithm, the steps and the code that `fit` uses by default, chosen from the child counts.

Sampling rows pays where elements have many children: a small sample then has most of the
information, at a fraction of the cost. Where a typical element has a handful of children, a sample
leaves most elements without any, and reading all rows from the start is best. The same holds for
topic models: the topics of a document hardly change once they were fitted to a few of its words.
Where there are many documents, their topics are found faster and better part by part (`Memoized`).
docs/steps_measured.md and docs/performance.md have the measurements. Chains are read in sequence,
so all of their rows are read from the start, and so are those of classes that are chosen for
several rows at once: their sums need no stored q where rows are read together.

Compiled loops pay where there is much to compute: the first fit on a machine waits until they are
compiled. Whether they are used depends on the size of the network only, so that a fit has the same
bits whatever was compiled before.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from svmp.errors import ModelError
from svmp.families import Categorical
from svmp.inference.methods import Growing, Memoized, Method
from svmp.inference.steps import Constant, Nodewise, Policy
from svmp.network.network import Network

CHILDREN = 2
"""Smallest median number of children of an element in the first sample."""
ROWS = 10_000
"""Smallest number of rows in the first sample: on fewer, full VB is as fast."""
CHOICES = 100
"""Smallest median number of local children in the first sample, for variables that have some (a
document's shares of topics, whose children are its tokens' topics)."""
SMALL = 10_000
"""Fewest accesses in a sweep of full VB for which loops are compiled. At this size a sweep of plain
code takes some 5 ms and one of loops 0.6, and compiling the loops of a factorization 10 s."""
DOCUMENTS = 1000
"""Fewest documents whose topics are found part by part: 100 in each of 10 parts. Also the number of
documents in a part where earlier ones have taught the topics."""
LARGEST = 0.25
"""Largest first sample, as a share of the rows: a larger one costs more than it saves."""


def choose(
    network: Network, method: Method | None, policy: Policy | None
) -> tuple[Method, Policy, bool]:
    """Return the algorithm, the steps, and whether to go on after a divergence."""
    if policy is None:
        if method is None:
            first, dim = first_sample(network), documents(network)
            growing = Growing(1.0 if first > LARGEST else first)
            method = growing if dim is None else Memoized(dim, parts_of(network, dim))
        return method, Constant(1.0) if method.unit_steps else Nodewise(), True
    return method or policy.default_method(), policy, policy.adaptive


def uses_loops(network: Network) -> bool:
    """Return whether loops are compiled for a network, or for all parts of one, by its size."""
    return network.sweep_accesses >= SMALL


def first_sample(network: Network) -> float:
    """Return the share of the observations in the first sample, from the child counts."""
    rows = sum(v.count for v in network.observed.values())
    if rows <= ROWS or network.chains or chooses_for_several(network):
        return 1.0
    if all(v.conditional.summarised for v in network.observed.values()):
        return 1.0  # sums over all rows are known
    typical = typical_count(network, network.observed)
    if typical <= CHILDREN:
        return 1.0
    share, choices = max(CHILDREN / typical, ROWS / rows), typical_count(network, network.locals)
    return max(share, CHOICES / choices) if choices else share


def chooses_for_several(network: Network) -> bool:
    """Return whether a Categorical chooses the components of several rows at once."""
    several = (edges for name, edges in network.edges.items() if name not in network.locals)
    return any(edge.choosing for edges in several for edge in edges)


def documents(network: Network) -> str | None:
    """Return the dim of the documents of a topic model that is fitted part by part, or None.

    In a topic model each token has a choice among topics, with shares that belong to its document,
    and no row depends on topics and on another global variable. None is returned for other
    networks, and for fewer than `DOCUMENTS` documents unless earlier ones have taught the topics.
    """
    for name in network.locals:
        shares = [p for p in network.hidden[name].conditional.parents() if p.hidden]
        tables = [edge.conditional for edge in network.edges[name] if edge.choosing]
        if len(shares) != 1 or not shares[0].plate.labels or len(tables) != 1:
            continue
        if tables[0].factor.child is not Categorical:
            continue
        dim = shares[0].plate.labels[0]
        many = network.learned or network.model.sizes[dim] >= DOCUMENTS
        if many and is_divided(network, dim):
            return dim
    return None


def parts_of(network: Network, dim: str) -> int:
    """Return the number of parts that documents are divided into.

    Topics that earlier documents have taught hardly move, and each update of them costs as much as
    hundreds of documents.
    """
    most = Memoized.parts
    return min(max(network.model.sizes[dim] // DOCUMENTS, 1), most) if network.learned else most


def is_divided(network: Network, dim: str) -> bool:
    """Return whether rows can be divided by a dim, and global variables then share no rows."""
    try:
        grouping = network.grouped(dim)
    except ModelError:
        return False
    return not grouping.shares_rows


def typical_count(network: Network, children: Collection[str]) -> float:
    """Return the median child count of the variables with such children; 0 if there are none."""
    counts = [
        network.child_counts[name]
        for name, edges in network.edges.items()
        if name not in network.locals
        and any(e.conditional.variable.name in children for e in edges)
    ]
    return float(np.median(np.concatenate(counts))) if counts else 0.0

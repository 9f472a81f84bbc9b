"""What `fit` does when it is not told: the algorithm and the steps that suit a network.

Reading a part of the rows pays where children are many: then a small sample says most of what all
rows say, at a fraction of the cost. Where a typical element has a handful of children, a sample
leaves most elements without any, and all rows from the start are best. So they are for topics:
what a document's topics seem to be by a few of its words, they stay. docs/steps.md has the figures.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from svmp.inference.methods import Growing, Method
from svmp.inference.steps import Constant, Nodewise, Policy
from svmp.network.network import Network

CHILDREN = 2
"""How many children half of the elements should have in the first sample, at least."""
ROWS = 10_000
"""How many rows the first sample has at least: on fewer, full VB is as quick."""
CHOICES = 100
"""How many children half of those with children of the rows' own should have (a document's shares
of topics, whose children are its tokens' topics)."""
LARGEST = 0.25
"""A first sample with more than this share of the rows is not worth the detour."""


def choose(
    network: Network, method: Method | None, policy: Policy | None
) -> tuple[Method, Policy, bool]:
    """Return the algorithm, the steps, and whether to persist after a divergence."""
    if policy is None:
        if method is None:
            first = first_sample(network)
            method = Growing(1.0 if first > LARGEST else first)
        return method, Constant(1.0) if method.unit_steps else Nodewise(), True
    return method or policy.default_method(), policy, policy.adaptive


def first_sample(network: Network) -> float:
    """Return the share of the observations to begin with, from the child counts."""
    rows = sum(v.count for v in network.observed.values())
    typical = typical_count(network, network.observed)
    if rows <= ROWS or typical <= CHILDREN:
        return 1.0
    share, choices = max(CHILDREN / typical, ROWS / rows), typical_count(network, network.locals)
    return max(share, CHOICES / choices) if choices else share


def typical_count(network: Network, children: Collection[str]) -> float:
    """Return the median child count of variables with some of these children; 0 if none has."""
    counts = [
        network.child_counts[name]
        for name, edges in network.edges.items()
        if name not in network.locals
        and any(e.conditional.variable.name in children for e in edges)
    ]
    return float(np.median(np.concatenate(counts))) if counts else 0.0

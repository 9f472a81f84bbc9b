"""lambda_temp: the prior's message to an element, and the sum of those of the rows it reads.

The rows of a convex bound send tangents. Where they touch is decided when the turn of a variable
begins, and stays while its elements are updated one after the other: each raises the tangents, and
so the bound, which is at least as high at the end of the turn as it was at its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from svmp.families.family import Array
from svmp.inference.fused import noise_message
from svmp.inference.rows import Draw
from svmp.inference.settled import settled_message
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.network import Network


@dataclass
class Pass:
    """What one iteration did.

    Attributes
    ----------
    accesses, most
        Rows accessed, and the most that one element read.
    steps
        By variable, the step of each element or one number for all, and how many they are.
    fresh
        The rows of the groups that were drawn, if it was groups.
    """

    accesses: int = 0
    most: int = 0
    steps: list[tuple[Array, int]] = field(default_factory=list)
    fresh: dict[str, Ints] = field(default_factory=dict)

    def note(self, local: bool, rho: Array, read: Ints) -> None:
        """Remember the steps of variables other than the rows' own."""
        if not local and len(read):
            self.steps.append((rho, len(read)))
            self.most = max(self.most, int(read.max()))

    @property
    def every_step(self) -> Array:
        """The step of every element, or one number if it is the same for all."""
        alike = {float(rho[0]) if len(rho) == 1 else None for rho, _ in self.steps}
        if len(alike) <= 1 and None not in alike:
            return np.array([*alike] or [1.0])
        return np.concatenate([np.broadcast_to(rho, count) for rho, count in self.steps])


def in_turn(
    network: Network, q: Beliefs, draw: Draw, name: str, groups: list[Ints]
) -> Iterator[Ints]:
    """Yield the groups of a variable's elements, with the same tangents for all of them."""
    touch(network, q, draw, name, groups)
    yield from groups
    q.touched.clear()


def touch(network: Network, q: Beliefs, draw: Draw, name: str, groups: list[Ints]) -> None:
    """Fix where the tangents touch for the turn of a variable whose elements meet in rows."""
    q.touched.clear()
    edges = [e for e in network.edges[name] if e.conditional.factor.convex and not e.choosing]
    for edge in edges if len(groups) > 1 else []:
        conditional, table = edge.conditional, edge.conditional.variable
        rows = np.unique(np.concatenate([draw.rows(edge, some).rows for some in groups]))
        moments = np.zeros((table.size * conditional.components, 2))
        step = conditional.chunk(2)
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            moments[part] = edge.slot.moments(q, part)
        q.touched[table.name] = moments


def message_sum(
    network: Network, q: Beliefs, draw: Draw, name: str, elements: Ints, done: Pass
) -> Array:
    """Return lambda_temp: the prior's message and the scaled sum of those of the rows drawn."""
    natural = np.array(network.prior(q, name, elements))
    for edge in network.edges[name]:
        local = network.settling(q, edge.conditional.variable.name)
        if local is not None:
            message, read = settled_message(q, draw, local, edge, elements)
            natural += message
            done.accesses += read
            continue
        noise = noise_message(q, draw, edge, elements)
        if noise is not None:
            natural += noise[0]
            done.accesses += noise[1]
            continue
        if edge.conditional.pools and draw.reads_all(edge.conditional.variable.name):
            natural += edge.pooled_message(q, elements)
            done.accesses += int(edge.children[elements].sum())
            continue
        owner, rows, scale = draw.rows(edge, elements)
        natural += scale[:, None] * edge.message(q, elements, owner, rows)
        done.accesses += len(rows) // edge.fan
    return natural

"""lambda_temp: the prior's message to an element, and the sum of those of the rows it reads."""

from __future__ import annotations

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
        owner, rows, scale = draw.rows(edge, elements)
        natural += scale[:, None] * edge.message(q, elements, owner, rows)
        done.accesses += len(rows) // edge.fan
    return natural

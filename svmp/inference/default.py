"""What `fit` does when it is not told: the algorithm and the steps that suit a network."""

from __future__ import annotations

from svmp.inference.selection import Children, FullVB, Growing, Selection
from svmp.inference.steps import Constant, Nodewise, Steps
from svmp.network.network import Network


def choose(
    network: Network, method: Selection | None, steps: Steps | None
) -> tuple[Selection, Steps, bool]:
    """Return the algorithm, the steps, and whether to persist after a divergence."""
    if method is None and steps is None:
        return FullVB(), Constant(1.0), True
    if method is None:
        return Children(5), steps or Nodewise(), False
    if steps is None:
        return method, Constant(1.0) if isinstance(method, FullVB | Growing) else Nodewise(), True
    return method, steps, False

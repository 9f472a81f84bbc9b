"""Full variational Bayes: coordinate ascent over all rows, equation (5) of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from svmp.inference.methods.draw import AllRows, Draw
from svmp.inference.methods.method import Method, Option
from svmp.network.grid import Ints
from svmp.network.network import Network


@dataclass(frozen=True)
class FullVB(Method):
    """Full variational Bayes: every element reads all of its rows and takes a unit step.

    Parameters
    ----------
    order
        Names of the hidden variables in the order of their updates. By default the choices among
        components come first, precisions last, and the others as they were declared.
    """

    title: ClassVar[str] = "Full variational Bayes"
    unit_steps: ClassVar[bool] = True
    order: Sequence[str] | None = None
    option: Option = field(default="a", init=False, repr=False)
    joint: bool = field(default=False, init=False, repr=False)

    def draw(self, network: Network, seed: int, iteration: int) -> Draw:
        return AllRows(network)

    def visited_parts(self, sizes: Ints, seed: int, iteration: int) -> Ints:
        return np.arange(len(sizes))

    def reads_all(self, iteration: int) -> bool:
        return True

    @property
    def label(self) -> str:
        return "Full VB"

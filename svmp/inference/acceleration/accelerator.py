"""What an accelerator is: it moves q before a sweep, so that fewer sweeps are needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from svmp.inference.methods import Method
from svmp.inference.state.relaxation import Means, Relaxation
from svmp.inference.state.state import State
from svmp.inference.updaters.setup import Setup
from svmp.inference.updaters.updater import Updater
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network

Bound = Callable[[Beliefs], float]
"""The exact bound of q."""


class Accelerator(ABC):
    """Moves q before a sweep. A move that lowers the bound is undone, or pauses the next."""

    @classmethod
    @abstractmethod
    def find(cls, setup: Setup, updaters: Sequence[Updater]) -> Self | None:
        """Return the accelerator of a network; None if it has nothing to do there."""

    @abstractmethod
    def apply(self, state: State, last: Relaxation, bound: Bound) -> Relaxation:
        """Move q in place before the iteration that follows `state`.

        Parameters
        ----------
        state
            The state of the run.
        last
            What accelerators have kept, some of which the earlier ones of the list have changed.
        bound
            Computes the exact bound of q.

        Returns
        -------
        Relaxation
            What is kept until the next iteration.
        """


@dataclass(frozen=True, eq=False)
class BeforeWholeSweeps(Accelerator):
    """Changes q before every sweep over all rows but the first."""

    network: Network
    method: Method

    def apply(self, state: State, last: Relaxation, bound: Bound) -> Relaxation:
        if state.iteration > 0 and self.method.reads_all(state.iteration + 1):
            self.change(state.q, last.before)
        return last

    @abstractmethod
    def change(self, q: Beliefs, before: Means) -> None:
        """Change q in place, and with it the means of blocks before their last update."""

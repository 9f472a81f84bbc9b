"""The state of a run: everything that changes from one iteration to the next."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace

import numpy as np

from svmp.families.family import Array
from svmp.inference.methods.sums_by_part import Memo
from svmp.inference.state.approach import Approach
from svmp.inference.state.relaxation import Relaxation
from svmp.inference.state.window import Window
from svmp.inference.steps.rule import GradientStatistics
from svmp.inference.trace import Trace
from svmp.network.beliefs import Beliefs

MOST_ROLLBACKS = 50
"""Most rollbacks of a run that diverges."""


@dataclass
class Measured:
    """The last exact bound.

    Attributes
    ----------
    terms
        Its terms, by variable; empty before the first.
    accesses, iteration
        When it was computed; -1 before the first.
    local_accesses
        Accesses that optimising the local variables of all groups took.
    """

    terms: dict[str, float] = field(default_factory=dict)
    accesses: int = -1
    iteration: int = -1
    local_accesses: int = 0

    @property
    def bound(self) -> float:
        """The bound."""
        return sum(self.terms.values())


@dataclass
class Safety:
    """The state of the guard against divergence.

    Attributes
    ----------
    start
        Mean expected log density at the start, of the random rows and of the farthest (guard.py).
    sound
        The last q that was sound, where the method can diverge or keeps sums.
    damping, rollbacks
        Factor by which rollbacks have reduced the steps, and the number of rollbacks.
    """

    start: Array = field(default_factory=lambda: np.zeros(2))
    sound: Beliefs | None = None
    damping: float = 1.0
    rollbacks: int = 0


@dataclass
class State:
    """The state of a run.

    Attributes
    ----------
    q
        The approximate posterior.
    iteration, accesses
        Number of iterations, and of rows read, so far.
    statistics
        Statistics of the natural gradient, for step policies that use them.
    window
        Averages of q, whose distance shows whether it still moves.
    approach
        How q approaches its limit, by which convergence is decided.
    memo
        Sums by part, for methods that keep them.
    relaxation
        The state of over-relaxation.
    measured
        The last exact bound.
    safety
        The state of the guard against divergence.
    trace
        The table of bounds so far.
    seconds
        Time spent before the run was resumed.
    """

    q: Beliefs
    iteration: int = 0
    accesses: int = 0
    statistics: GradientStatistics = field(default_factory=GradientStatistics)
    window: Window = field(default_factory=Window)
    approach: Approach = field(default_factory=Approach)
    memo: Memo = field(default_factory=Memo)
    relaxation: Relaxation = field(default_factory=Relaxation)
    measured: Measured = field(default_factory=Measured)
    safety: Safety = field(default_factory=Safety)
    trace: Trace = field(default_factory=Trace)
    seconds: float = 0.0

    def copy(self) -> State:
        """Return a copy that shares nothing that changes."""
        sound = self.safety.sound
        return replace(
            copy.deepcopy(replace(self, q=Beliefs(), safety=replace(self.safety, sound=None))),
            q=self.q.copy(),
            safety=replace(self.safety, sound=None if sound is None else sound.copy()),
        )

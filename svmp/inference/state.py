"""Everything about a run that changes, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from svmp.families.family import Array
from svmp.inference.steps.rule import GradientStatistics
from svmp.inference.trace import Trace
from svmp.inference.window import Window
from svmp.network.beliefs import Beliefs


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
        Accesses that it took to optimise the local variables of all groups for it.
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
    """What the guard against divergence keeps.

    Attributes
    ----------
    start
        Mean expected log density of the watched rows at the start: of any, and of the farthest.
    sound
        The last q that was sound, where the method can diverge.
    damping, rollbacks
        Factor by which steps are reduced since the run was rolled back, and how often it was.
    """

    start: Array = field(default_factory=lambda: np.zeros(2))
    sound: Beliefs | None = None
    damping: float = 1.0
    rollbacks: int = 0


@dataclass
class State:
    """Everything about a run that changes.

    Attributes
    ----------
    q
        The approximate posterior.
    iteration, accesses
        Number of iterations, and of rows read, so far.
    statistics
        Of the natural gradient, for step policies that ask for them.
    window
        Of the stopping rule.
    measured
        The last exact bound.
    safety
        What the guard against divergence keeps.
    trace
        What happened on the way.
    seconds
        Time that was spent before the run was resumed.
    """

    q: Beliefs
    iteration: int = 0
    accesses: int = 0
    statistics: GradientStatistics = field(default_factory=GradientStatistics)
    window: Window = field(default_factory=Window)
    measured: Measured = field(default_factory=Measured)
    safety: Safety = field(default_factory=Safety)
    trace: Trace = field(default_factory=Trace)
    seconds: float = 0.0

"""The diagnosis of a run that diverged under fixed steps: where, and which first step is safe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from svmp.inference.program.program import Program
from svmp.inference.running.recording import Recorder
from svmp.inference.running.run import Run, watch_divergence
from svmp.inference.running.stopping import Budget
from svmp.inference.state.state import State
from svmp.inference.steps import RobbinsMonro
from svmp.network.beliefs import Beliefs

SMALLEST = 10
"""Most times that the probe halves the first step: down to 1/1024."""
MOST_ITERATIONS = 200


@dataclass(frozen=True)
class Diagnosis:
    """Where a run diverged.

    Attributes
    ----------
    variable, index
        The element that left its domain, or that had moved most when the run diverged.
    iteration, accesses, step
        When the divergence was detected, and the largest step of that iteration.
    reason
        How the divergence showed.
    bound
        The exact bound there, which may be infinite or NaN.
    """

    variable: str
    index: tuple[int, ...]
    iteration: int
    accesses: int
    step: float
    reason: str
    bound: float
    _probe: Callable[[], float | None] = field(repr=False, compare=False)

    @cached_property
    def safe_rho1(self) -> float | None:
        """The largest of 1/2, 1/4, ..., 1/1024 as rho1 with which a short run does not diverge.

        The short runs use the same algorithm with `RobbinsMonro` steps; None if all of them
        diverge. They are made on first access, which can take longer than the run that diverged.
        """
        return self._probe()

    @property
    def event(self) -> str:
        """Description of the divergence."""
        return (
            f"diverged in iteration {self.iteration} after {self.accesses:,} accesses at "
            f"'{self.variable}' {self.index} with step {self.step:.3g}: {self.reason}"
        )

    @property
    def advice(self) -> str:
        """Description of the safe first step."""
        if self.safe_rho1 is None:
            return "no first step down to 1/1024 was safe"
        return f"a short probe was sound from rho1 = 1/{round(1 / self.safe_rho1)}"

    def __str__(self) -> str:
        return f"{self.event}; {self.advice}"

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields to pickle: the result of the probe instead of the run."""
        safe = self.safe_rho1
        return {**vars(self), "_probe": None, "safe_rho1": safe}


def diagnose(run: Run, probe: Callable[[], float | None]) -> Diagnosis:
    """Describe the divergence of a run; `probe` returns a safe first step."""
    alarm = run.alarm
    assert alarm is not None
    when = run.state.iteration, run.state.accesses, run.info.largest_step
    return Diagnosis(alarm.variable, alarm.index, *when, alarm.reason, run.diverged_bound, probe)


def safe_first_step(run: Run, begin: Callable[[Program], Beliefs]) -> float | None:
    """Return the largest first step with which a run does not diverge; `begin` makes its start."""
    length = min(max(20, 3 * run.state.iteration), MOST_ITERATIONS)
    for halvings in range(1, SMALLEST + 1):
        policy = RobbinsMonro(run.program.policy.decay, rho1=0.5**halvings, force=True)
        program = run.program.under(policy)
        if is_sound(program, begin(program), length):
            return float(0.5**halvings)
    return None


def is_sound(program: Program, q: Beliefs, length: int) -> bool:
    """Return whether a run of `length` iterations does not diverge."""
    budget = Budget()
    probe = Run(program, State(q), budget, tol=0.0, persistent=False, recorder=Recorder(budget))
    for _ in range(length):
        probe.advance()
        if watch_divergence(probe) is not None:
            return False
    return True

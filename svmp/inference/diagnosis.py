"""What went wrong when a fixed schedule diverged, and which first step would have been safe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from svmp.inference.run import Run
from svmp.inference.steps import RobbinsMonro
from svmp.inference.stopping import Budget, Window
from svmp.inference.trace import Trace
from svmp.network.beliefs import Beliefs

SMALLEST = 10
"""The probe halves the first step at most so often: down to 1/1024."""
MOST_ITERATIONS = 200


@dataclass(frozen=True)
class Diagnosis:
    """Where a run diverged.

    Attributes
    ----------
    variable, index
        The element that left its domain, or that had moved most when the run ran away.
    iteration, accesses, step
        When it was found, and the largest step of that iteration.
    reason
        What was seen.
    safe_rho1
        The largest of 1/2, 1/4, ..., 1/1024 from which a short run of the same algorithm under
        `RobbinsMonro` stayed sound; None if none did.
    """

    variable: str
    index: tuple[int, ...]
    iteration: int
    accesses: int
    step: float
    reason: str
    safe_rho1: float | None

    def __str__(self) -> str:
        advice = "no first step down to 1/1024 was safe"
        if self.safe_rho1 is not None:
            advice = f"a short probe was sound from rho1 = 1/{round(1 / self.safe_rho1)}"
        return (
            f"diverged in iteration {self.iteration} after {self.accesses:,} accesses at "
            f"'{self.variable}' {self.index} with step {self.step:.3g}: {self.reason}; {advice}"
        )


def diagnose(run: Run, begin: Callable[[], Beliefs]) -> Diagnosis:
    """Describe the divergence of a run; `begin` makes its starting point anew."""
    assert run.alarm is not None
    kappa = getattr(run.steps, "kappa", 0.6)
    length = min(max(20, 3 * run.iteration), MOST_ITERATIONS)
    safe = None
    for halvings in range(1, SMALLEST + 1):
        if is_sound(run, begin(), RobbinsMonro(kappa, rho1=0.5**halvings, force=True), length):
            safe = 0.5**halvings
            break
    alarm = run.alarm
    return Diagnosis(
        alarm.variable,
        alarm.index,
        run.iteration,
        run.accesses,
        run.largest_step,
        alarm.reason,
        safe,
    )


def is_sound(run: Run, q: Beliefs, steps: RobbinsMonro, length: int) -> bool:
    """Return whether a run of some length under these steps gives no alarm."""
    probe = replace(
        run,
        q=q,
        steps=steps,
        budget=Budget(),
        iteration=0,
        accesses=0,
        trace=Trace(),
        window=Window(),
        alarm=None,
        bound_terms={},
    )
    return all(probe.advance() is not None for _ in range(length))

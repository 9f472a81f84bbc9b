"""Recording the trace of a run: exact bounds, estimates in between, held-out scores."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from svmp.errors import ImproperError
from svmp.inference.program.program import Program
from svmp.inference.running.estimate import Estimator
from svmp.inference.running.held_out import Scorer
from svmp.inference.running.stopping import Budget
from svmp.inference.state.info import Info
from svmp.inference.state.state import Measured, State
from svmp.inference.trace import BUFFERS
from svmp.network.beliefs import Beliefs

Watch = Callable[[dict[str, float]], object]
BOUND_SHARE = 10
"""By default the exact bound is computed once for this many times its own cost in accesses."""


@dataclass(frozen=True)
class Recorder:
    """Computes bounds and adds rows to the trace.

    Attributes
    ----------
    budget
        Provides the time for the trace.
    bound_every
        Iterations between exact bounds, or a function from the number of an iteration to whether
        it has one; None for so often that bounds cost about a tenth of the accesses.
    held_out
        Scores held-out values, which is a column of the trace.
    watch
        Called with each new row of the trace.
    estimator
        Estimates the bound where there are many rows.
    """

    budget: Budget
    bound_every: int | Callable[[int], bool] | None = None
    held_out: Scorer | None = None
    watch: Watch | None = None
    estimator: Estimator | None = None

    def is_due(self, program: Program, state: State) -> bool:
        """Return whether the exact bound is due."""
        if callable(self.bound_every):
            return self.bound_every(state.iteration)
        if self.bound_every is not None or program.method.reads_all(state.iteration):
            return self.measures(program, state.iteration)
        cost = program.observations + state.measured.local_accesses
        spent = state.accesses - max(state.measured.accesses, 0)
        return spent >= BOUND_SHARE * cost

    def measures(self, program: Program, iteration: int) -> bool:
        """Return whether an iteration is known to have an exact bound before it is run.

        A function of the user is asked once, after the iteration.
        """
        if callable(self.bound_every):
            return False
        if self.bound_every is not None:
            return iteration % self.bound_every == 0
        ends = program.method.reads_all(iteration) and program.ends_sweep(iteration)
        return ends and not program.is_early(iteration)

    def measure(self, program: Program, state: State) -> None:
        """Compute the exact bound, after optimising local variables that the method has not."""
        local = 0
        method = program.method
        if not (method.keeps_sums or method.reads_all(max(state.iteration, 1))):
            local = program.optimise_locals(state.q)
        state.measured = Measured(
            program.bound(state.q),
            state.accesses,
            state.iteration,
            0 if program.method.over is None else local,
        )

    def estimate(self, program: Program, state: State, info: Info) -> None:
        """Add an estimate of the bound to the trace if it is due; q is not changed."""
        if self.estimator is None:
            return
        rows = self.held_out.count if self.held_out is not None else 0
        since = state.accesses - (state.trace.last("accesses") if len(state.trace) else 0)
        if since >= self.estimator.accesses(rows):
            sample = self.estimator.draw(program.seed, state.iteration)
            with suppress(ImproperError):  # q is diverging
                bound, se = self.estimator.estimate(state.q, sample, optimise=True)
                self.note(program, state, info, bound, se)

    def note(
        self, program: Program, state: State, info: Info, bound: float, se: float = 0.0
    ) -> None:
        """Add a row to the trace, unless one of its numbers is not finite."""
        steps = info.every_step
        low, high = float(steps.min()), float(steps.max())
        row = {
            "iteration": state.iteration,
            "accesses": state.accesses,
            "seconds": self.budget.seconds,
            "bound": bound,
            "bound_se": se,
            "moved": state.window.moved,
            "step_min": low,
            "step_median": low if low == high else float(np.median(steps)),
            "step_max": high,
            "C": info.most,
            "rollbacks": state.safety.rollbacks,
        }
        if program.method.length is not None:
            row |= buffers_of(state.q)
        with suppress(ImproperError):  # q is diverging
            if self.held_out is not None:
                row["held_out"] = self.held_out.score(program, state.q)
            if np.isfinite(list(row.values())).all():
                state.trace.append(**row)
                if self.watch is not None:
                    self.watch(row)


def buffers_of(q: Beliefs) -> dict[str, float]:
    """Return the rows of the longest buffer of subchains so far, and what was left untold."""
    found = [arrays["buffers"] for arrays in q.joint.values() if "buffers" in arrays]
    both = np.max(found, axis=0) if found else np.zeros(2)
    return dict(zip(BUFFERS, both.tolist(), strict=True))

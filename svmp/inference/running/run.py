"""A run of a program: a loop over iterations until it converges, diverges or must stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from svmp.errors import ImproperError
from svmp.inference.engine import step
from svmp.inference.methods import Method
from svmp.inference.program.program import Program
from svmp.inference.running.guard import Alarm, Guard, has_fallen
from svmp.inference.running.recording import Recorder
from svmp.inference.running.stopping import Budget, Interrupt, Status
from svmp.inference.state.info import Info
from svmp.inference.state.state import MOST_ROLLBACKS, State
from svmp.inference.state.visible import Visible
from svmp.inference.state.window import Window
from svmp.network.network import Network

ROUNDING = 1e-9
"""Largest fall of the bound, relative to its size, that counts as rounding: the compiled loops of
documents compute in single precision."""
TOL = 1e-6
"""Tolerance of runs that draw rows, or whose rows lie in parts, where it is not given."""
Observer = Callable[["Run"], Status | None]
"""Looks at a run after each iteration; returns a status to end it."""


@dataclass
class Run:
    """A loop over iterations, with observers.

    Attributes
    ----------
    program, state
        The program, and the state of the run.
    budget
        Limits of the run.
    tol
        The tolerance of convergence; None to judge by what can be seen (approach.py).
    persistent
        Whether to roll back and reduce the steps on divergence, instead of stopping.
    recorder, guard
        Write the trace, and watch for divergence.
    observers
        Called in turn after each iteration, until one of them returns a status: that ends the run,
        or rolls it back after a divergence.
    alarm, diverged_bound
        The divergence that was detected, if any, and the exact bound there.
    info
        The record of the last iteration.
    """

    program: Program
    state: State
    budget: Budget
    tol: float | None
    persistent: bool
    recorder: Recorder
    observers: tuple[Observer, ...] = ()
    alarm: Alarm | None = None
    diverged_bound: float = np.nan
    info: Info = field(default_factory=Info)
    guard: Guard = field(init=False)

    def __post_init__(self) -> None:
        network, q = self.program.network, self.state.q
        self.guard = Guard.of(network, farthest=not self.safe)
        if not self.state.window.last:
            self.state.safety = self.guard.begin(q)
            if not self.safe:
                self.guard.keep(q, self.state.safety)
            self.state.window = self.window()

    def window(self) -> Window:
        """Return the window of the convergence criterion, starting at the current q."""
        program, q = self.program, self.state.q
        return Window.at(q, global_names(program.network, program.method, q.natural))

    @property
    def safe(self) -> bool:
        """Whether the method cannot diverge, so that no q is kept for a rollback."""
        return self.program.safe

    @property
    def sweeps(self) -> float:
        """Accesses in units of a sweep of full VB."""
        cost = self.program.network.sweep_accesses
        return self.state.accesses / cost if cost else float(self.state.iteration)

    @cached_property
    def visible(self) -> Visible | None:
        """What can be seen of q, if that decides when to stop."""
        return self.program.visible if self.tol is None and self.safe else None

    @property
    def tolerance(self) -> float:
        """The tolerance of convergence."""
        return TOL if self.tol is None else self.tol

    @property
    def remaining(self) -> float | None:
        """How far q is from its limit in sds, by extrapolation; None if that is not known."""
        found = self.state.approach.remaining
        return found if self.visible is not None and np.isfinite(found) else None

    def has_arrived(self, settled: bool) -> bool:
        """Return whether q is near its limit.

        `settled` says whether the last stretch of the run has changed q and the bound by less than
        the tolerance, which decides where a tolerance is used.
        """
        state, visible = self.state, self.visible
        if visible is None:
            return settled
        state.approach.sweeps += 1
        if self.program.is_early(state.iteration) or not state.approach.is_due:
            return False
        known = state.measured.iteration == state.iteration
        bound, seen = state.measured.bound if known else np.nan, visible.read(state.q)
        return state.approach.add(seen, bound, visible.distance, visible.traded)

    def go(self, interrupt: Interrupt) -> Status:
        """Iterate until the run converges, runs out of budget, diverges or is interrupted."""
        if self.state.measured.accesses < 0 and not self.program.method.reads_all(1):
            if not self.safe:  # short steps would take barren elements to their prior slowly
                self.program.follow_parents(self.state.q)
            self.measure(Info())
        while self.budget.used(self.sweeps, self.state.accesses) < 1:
            if interrupt.pressed:
                return "interrupted"
            self.advance()
            seen = (observer(self) for observer in (*OBSERVERS, *self.observers))
            end: Status | None = next((status for status in seen if status), None)
            if end == "diverged":
                self.note_divergence()
                if self.persistent and self.state.safety.rollbacks < MOST_ROLLBACKS:
                    self.roll_back()
                    continue
            if end is not None:
                return end
        return "budget"

    def advance(self) -> None:
        """Run one iteration."""
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                measured = self.recorder.measures(self.program, self.state.iteration + 1)
                self.state, self.info = step(self.program, self.state, measured)
        except ImproperError as error:
            if self.safe:
                raise
            self.state = replace(self.state, iteration=self.state.iteration + 1)
            self.alarm = self.guard.alarm(error)

    def roll_back(self) -> None:
        """Return to the last sound q, and halve the steps."""
        state, safety = self.state, self.state.safety
        assert safety.sound is not None
        state.q = safety.sound.copy()
        safety.damping *= 0.5
        safety.rollbacks += 1
        self.alarm = None
        moved = state.window.moved
        state.window = self.window()
        state.window.moved = moved
        state.measured = replace(state.measured, terms={}, iteration=-1)  # of the q given up

    def measure(self, info: Info) -> None:
        """Compute the exact bound, add it to the trace, and keep q if it is sound."""
        if self.state.measured.iteration != self.state.iteration:
            self.recorder.measure(self.program, self.state)
        bound = self.state.measured.bound
        if not self.safe and bound >= self.first_bound:
            self.guard.keep(self.state.q, self.state.safety)
        self.recorder.note(self.program, self.state, info, bound)

    def keep_sweep(self) -> bool:
        """Compute the exact bound after a sweep over parts; undo the sweep if the bound has fallen.

        The first sweeps, in which the variables of groups start anew, are not compared, and their
        bounds not computed. Later the bound can fall where variables that share rows are updated
        from sums that are out of date. The next sweeps then use none: one at first, and twice as
        many after each further fall.
        """
        state, memo, safety = self.state, self.state.memo, self.state.safety
        exact, memo.exact = memo.exact > 0, max(memo.exact - 1, 0)
        if self.program.is_early(state.iteration):
            return True
        self.recorder.measure(self.program, state)
        if self.is_below(state.measured.bound, memo.bound) and not exact:
            memo.exact = 2**safety.rollbacks
            safety.rollbacks = min(safety.rollbacks + 1, MOST_ROLLBACKS)
            self.undo_sweep()
            return False
        if state.measured.bound >= memo.bound:
            memo.bound, safety.sound = state.measured.bound, state.q.copy()
        return True

    def undo_sweep(self) -> None:
        """Return to the q of the last sweep over parts."""
        assert self.state.safety.sound is not None
        self.state.q = self.state.safety.sound.copy()
        self.state.window = self.window()
        self.state.approach.restart()
        self.state.measured = replace(self.state.measured, terms={}, iteration=-1)

    @staticmethod
    def is_below(bound: float, before: float) -> bool:
        """Return whether a bound is lower than another by more than rounding."""
        return not bound >= before - ROUNDING * abs(before)

    def bound_has_fallen(self) -> bool:
        """Return whether the exact bound is far below the first."""
        return not self.safe and has_fallen(self.state.measured.bound, self.first_bound)

    @property
    def first_bound(self) -> float:
        """The bound at the start."""
        return float(self.state.trace["bound"][0]) if len(self.state.trace) else -np.inf

    def note_divergence(self) -> None:
        """Keep the bound of an iteration that diverged; add a row for it if it is finite.

        An improper q has none.
        """
        q, hidden = self.state.q, self.program.network.hidden
        with np.errstate(all="ignore"):
            proper = all(hidden[n].family.in_domain(a).all() for n, a in q.natural.items())
            self.diverged_bound = sum(self.program.bound(q).values()) if proper else np.nan
            self.recorder.note(self.program, self.state, self.info, self.diverged_bound)

    def finish(self, status: Status) -> Status:
        """Make sure that q is sound and the bound is that of this q; return the status.

        A persistent run ends with a bound no lower than at its start.
        """
        state = self.state
        state.q.means.clear()
        self.program.follow_parents(state.q)
        if self.program.is_within_first_sweep(state.iteration):
            self.program.optimise_locals(state.q)
            state.measured = replace(state.measured, iteration=-1)
        if status != "diverged" and state.measured.iteration != state.iteration:
            self.measure(self.info)
            if self.bound_has_fallen():
                self.alarm = self.guard.divergence(state.q, state.safety)
                self.diverged_bound = state.measured.bound
                status = status if self.persistent else "diverged"
        if state.measured.bound < state.memo.bound:  # in the middle of a sweep over parts
            self.undo_sweep()
            self.recorder.measure(self.program, state)
        worse = not self.safe and not state.measured.bound >= self.first_bound
        if status == "diverged" or (self.persistent and worse):
            assert state.safety.sound is not None
            state.q = state.safety.sound.copy()
            self.program.follow_parents(state.q)
            self.recorder.measure(self.program, state)
            if not len(state.trace):  # it diverged before there was a bound: the start is sound
                start = replace(state, iteration=0, accesses=0)
                self.recorder.note(self.program, start, Info(), state.measured.bound)
        self.program.follow_parents(
            state.q
        )  # again: measuring optimised the variables of all groups
        return status


def watch_divergence(run: Run) -> Status | None:
    """End a run that has diverged."""
    if run.alarm is None and not run.safe:
        run.alarm = run.guard.check(run.state.q, run.state.safety, run.info.fresh)
    return None if run.alarm is None else "diverged"


def watch_convergence(run: Run) -> Status | None:
    """Record the bound, exact or estimated; end a run whose q and bound have converged."""
    program, state, info = run.program, run.state, run.info
    method, network = program.method, program.network
    full, ends = method.reads_all(state.iteration), program.ends_sweep(state.iteration)
    before, last = state.measured, state.memo.bound
    if method.keeps_sums and ends and not run.keep_sweep():
        return None
    moved = None
    if ends or not full:  # not in the middle of a sweep over parts
        moved = state.window.add(state.q, info.smallest_median, network.hidden)
    judged = moved is not None and (full or not run.safe)
    quiet = judged and state.window.moved <= run.tolerance and not program.is_early(state.iteration)
    settled = False
    if quiet or run.recorder.is_due(program, state):
        run.measure(info)
        if run.bound_has_fallen():
            run.alarm = run.guard.divergence(state.q, state.safety)
            return "diverged"
        bound = state.measured.bound
        known = np.isfinite(last) if method.keeps_sums else bool(before.terms)
        change = bound - (last if method.keeps_sums else before.bound)
        settled = quiet and known and abs(change) <= run.tolerance * max(1.0, abs(bound))
    elif not full:  # beside a full sweep an exact bound is cheap: no need for estimates
        run.recorder.estimate(program, state, info)
    return "converged" if judged and run.has_arrived(settled) else None


OBSERVERS: tuple[Observer, ...] = (watch_divergence, watch_convergence)
"""The observers of every run; `fit` adds progress and checkpoints."""


def global_names(network: Network, method: Method, names: Iterable[str]) -> list[str]:
    """Return the variables that belong neither to a row, a sequence, nor a drawn group."""
    grouping = method.grouping(network)
    groups = {} if grouping is None else grouping.group
    return [name for name in names if name not in {*network.locals, *network.chains, *groups}]

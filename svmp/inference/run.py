"""A run of an algorithm: iterations under a guard, with a trace, until it ends somehow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from svmp.errors import ImproperError
from svmp.families.family import Array
from svmp.inference.engine import iterate, settle_locals
from svmp.inference.estimate import Estimator
from svmp.inference.grouped import DrawnGroups
from svmp.inference.guard import Alarm, Guard, fell
from svmp.inference.held_out import HeldOut
from svmp.inference.messages import Pass
from svmp.inference.selection import FullVB, Growing, Selection
from svmp.inference.steps import StepContext, Steps
from svmp.inference.stopping import Budget, Interrupt, Window
from svmp.inference.trace import Trace
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network

Status = Literal["converged", "budget", "diverged", "interrupted"]
Watch = Callable[[dict[str, float]], object]

BOUND_SHARE = 10
"""Without a cadence of its own, the bound is computed once for so many readings of all rows."""
MOST_ROLLBACKS = 50


@dataclass(frozen=True)
class Damped:
    """A policy with all its steps reduced."""

    steps: Steps
    factor: float

    @property
    def statistics(self) -> bool:
        """Whether the policy asks for the gradient's running statistics."""
        return getattr(self.steps, "statistics", False)

    def __call__(self, look: StepContext) -> np.ndarray:
        return self.factor * np.asarray(self.steps(look))


@dataclass
class Run:
    """Everything that a run is made of; checkpoints keep what changes.

    Attributes
    ----------
    persistent
        Whether to roll back and reduce the steps on divergence, instead of stopping.
    iteration, accesses, rollbacks
        How far it is.
    damping
        By how much the policy's steps are reduced, after rollbacks.
    bound_terms, bound_at, bound_iteration, settling
        The last exact bound, the accesses and the iteration at which it was computed, and the
        accesses that it took to settle all groups for it.
    held_out
        Values left out of training, whose score is a column of the trace.
    watch
        Told of each new row of the trace.
    """

    network: Network
    q: Beliefs
    method: Selection
    steps: Steps
    seed: int
    tol: float
    budget: Budget
    persistent: bool = False
    bound_every: int | Callable[[int], bool] | None = None
    held_out: HeldOut | None = None
    iteration: int = 0
    accesses: int = 0
    rollbacks: int = 0
    damping: float = 1.0
    largest_step: float = 1.0
    moved: float = 0.0
    bound_terms: dict[str, float] = field(default_factory=dict)
    bound_at: int = -1
    bound_iteration: int = -1
    settling: int = 0
    trace: Trace = field(default_factory=Trace)
    window: Window = field(default_factory=Window)
    alarm: Alarm | None = None
    last: Pass = field(default_factory=Pass)
    watch: Watch | None = None

    def __post_init__(self) -> None:
        self.full = self.reads_all(1)
        self.safe = is_safe(self.method)
        self.guard = Guard.of(self.network, self.q, self.safe)
        self.over = getattr(self.method, "over", None)
        self.estimator = None if self.over is not None else Estimator.of(self.network)
        self.globals = global_names(self.network, self.method, self.q.natural)
        if not self.window.last:
            self.window = Window.at(self.q, self.globals)

    def reads_all(self, iteration: int) -> bool:
        """Return whether an iteration is a sweep over all rows."""
        if isinstance(self.method, Growing):
            return self.method.share(iteration) >= 1
        return isinstance(self.method, FullVB)

    @property
    def sweeps(self) -> float:
        """Accesses in units of a sweep of full VB."""
        cost = self.network.sweep_accesses
        return self.accesses / cost if cost else float(self.iteration)

    def go(
        self, interrupt: Interrupt, report: Callable[[Run], None], save: Callable[[Run], None]
    ) -> Status:
        """Iterate until the run converges, runs out of budget, diverges or is interrupted."""
        status: Status = "budget"
        if self.bound_at < 0 and not self.full:
            if not self.safe:  # short steps would keep barren elements off their prior for long
                self.follow_parents()
            self.measure(Pass())
        while self.budget.used(self.sweeps, self.accesses) < 1:
            if interrupt.pressed:
                status = "interrupted"
                break
            done = self.advance()
            rests = done is not None and self.at_rest(done)
            if self.alarm is not None:
                self.note_fall()
                if self.persistent and self.rollbacks < MOST_ROLLBACKS:
                    self.roll_back()
                    continue
                status = "diverged"
                break
            if rests:
                status = "converged"
                break
            report(self)
            save(self)
        return status

    def advance(self) -> Pass | None:
        """Take one iteration; return None if it diverged."""
        self.iteration += 1
        method, steps = self.method, self.steps
        self.full = self.reads_all(self.iteration)
        if hasattr(steps, "selection"):
            method = steps.selection(method, self.iteration)
        if self.damping < 1:
            steps = Damped(steps, self.damping)
        self.q.means.clear()
        if self.full:
            self.network.remember_means(self.q)
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                done = iterate(self.network, self.q, method, steps, self.seed, self.iteration)
        except ImproperError as error:
            if self.safe:
                raise
            self.alarm = self.guard.alarm(error)
            return None
        self.accesses += done.accesses
        self.last = done
        self.largest_step = max((float(rho.max()) for rho, _ in done.steps), default=1.0)
        self.alarm = None if self.safe else self.guard.check(self.q, done.fresh)
        return done if self.alarm is None else None

    def roll_back(self) -> None:
        """Return to the last q that was sound, and go on with steps half as long."""
        assert self.guard.sound is not None
        self.q = self.guard.sound.copy()
        self.damping *= 0.5
        self.rollbacks += 1
        self.alarm = None
        self.window = Window.at(self.q, self.globals)

    def at_rest(self, done: Pass) -> bool:
        """Note the iteration; return whether q and the bound have come to rest."""
        step = min((middle(rho) for rho, _ in done.steps), default=1.0)
        moved, quiet = self.window.pass_by(self.q, step, self.network.hidden), False
        if moved is not None:
            self.moved = moved
            quiet = moved <= self.tol and (self.full or not self.safe)
        before, had = sum(self.bound_terms.values()), bool(self.bound_terms)
        if not (quiet or self.bound_is_due()):
            if not self.full:  # a sweep's exact bound is cheap beside it: who wants one asks for it
                self.estimate(done)
            return False
        self.measure(done)
        bound = sum(self.bound_terms.values())
        if self.fell():
            self.alarm = self.guard.lost(self.q)
        return quiet and had and abs(bound - before) <= self.tol * max(1.0, abs(bound))

    def fell(self) -> bool:
        """Return whether the exact bound is far below the first."""
        return not self.safe and fell(sum(self.bound_terms.values()), self.first_bound)

    @property
    def first_bound(self) -> float:
        """The bound at the start."""
        return float(self.trace["bound"][0]) if len(self.trace) else -np.inf

    def bound_is_due(self) -> bool:
        """Return whether the exact bound can be afforded again."""
        if callable(self.bound_every):
            return self.bound_every(self.iteration)
        if self.bound_every is not None:
            return self.iteration % self.bound_every == 0
        rows = sum(v.count for v in self.network.observed.values())
        cost = rows + self.settling
        return self.full or self.accesses - max(self.bound_at, 0) >= BOUND_SHARE * cost

    def measure(self, done: Pass | None = None) -> None:
        """Compute the exact bound of q, and add a row to the trace."""
        if not self.full:
            everything = DrawnGroups.all(self.network, self.over) if self.over else None
            settling = settle_locals(self.network, self.q, everything)
            self.settling = 0 if self.over is None else settling.accesses
        self.bound_terms = self.network.bound(self.q)
        self.bound_at, self.bound_iteration = self.accesses, self.iteration
        if done is not None:
            bound = sum(self.bound_terms.values())
            if bound >= self.first_bound:
                self.guard.keep(self.q)
            self.note(bound, 0.0, done)

    def estimate(self, done: Pass) -> None:
        """Add an estimate of the bound to the trace, if it can be afforded; q stays as it is."""
        if self.estimator is None:
            return
        rows = self.held_out.count if self.held_out is not None else 0
        since = self.accesses - (self.trace.last("accesses") if len(self.trace) else 0)
        if since >= self.estimator.accesses(rows):
            sample = self.estimator.draw(self.seed, self.iteration)
            with suppress(ImproperError):  # of a q on its way out
                self.note(*self.estimator.estimate(self.q, sample, optimise=True), done)

    def note_fall(self) -> None:
        """Add a row for an iteration that ran away, where its bound is still a number."""
        with np.errstate(all="ignore"):
            self.note(sum(self.network.bound(self.q).values()), 0.0, self.last)

    def note(self, bound: float, se: float, done: Pass) -> None:
        """Add a row to the trace, unless some number of it is none."""
        steps = done.every_step
        row = {
            "iteration": self.iteration,
            "accesses": self.accesses,
            "seconds": self.budget.seconds,
            "bound": bound,
            "bound_se": se,
            "moved": self.moved,
            "step_min": float(steps.min()),
            "step_median": float(np.median(steps)),
            "step_max": float(steps.max()),
            "C": done.most,
            "rollbacks": self.rollbacks,
        }
        with suppress(ImproperError):  # of a q on its way out
            if self.held_out is not None:
                row["held_out"] = self.held_out.score(self.q)
            if np.isfinite(list(row.values())).all():
                self.trace.append(**row)
                if self.watch is not None:
                    self.watch(row)

    def finish(self, status: Status) -> Status:
        """Make sure that q is sound and the bound is that of this q; return how the run ended.

        A run that does not give up ends no lower than it began.
        """
        self.q.means.clear()
        self.follow_parents()
        if status != "diverged" and self.bound_iteration != self.iteration:
            self.measure(self.last)
            if self.fell():
                self.alarm = self.guard.lost(self.q)
                status = status if self.persistent else "diverged"
        worse = not self.safe and sum(self.bound_terms.values()) < self.first_bound
        if status == "diverged" or (self.persistent and worse):
            assert self.guard.sound is not None
            self.q = self.guard.sound.copy()
            self.follow_parents()
            self.measure()
        self.follow_parents()  # again: to measure is to optimise the variables of all groups
        return status

    def follow_parents(self) -> None:
        """Give the variables that the data say nothing about the q that their parents' says.

        With unit steps those without hidden parents have it already.
        """
        present = self.network.present
        names = [n for n in self.network.hidden if not self.safe or present[n] is not None]
        self.network.follow_parents(self.q, names)


def is_safe(method: Selection) -> bool:
    """Return whether an algorithm cannot diverge, so that nothing is kept to go back to."""
    return isinstance(method, FullVB | Growing)


def global_names(network: Network, method: Selection, names: Iterable[str]) -> list[str]:
    """Return those variables that belong neither to a row nor to a group that is drawn."""
    over = getattr(method, "over", None)
    groups = {} if over is None else network.grouped(over).group
    return [name for name in names if name not in {*network.locals, *groups}]


def middle(steps: Array) -> float:
    """Return the median; most often there is one step for all."""
    return float(steps[0] if len(steps) == 1 else np.median(steps))

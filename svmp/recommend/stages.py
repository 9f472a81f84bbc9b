"""Early stopping on held-out ratings: sweeps in stages, until the next no longer helps.

A factorised q underestimates the dependence between factors. At convergence of the bound, weak
factors have vanished or strong ones overfit the noise; predictions are better before that. So the
run proceeds in stages, and ends when the next stage no longer reduces the held-out error.

Biases are fitted first, without factors, which is cheap, until a stage improves little: they are
fitted further beside the factors. Factors start from there, and are kept if they improve the
predictions of the held-out ratings by half a standard error; otherwise the run without factors is
resumed.

How informative the prior of the factors' precisions should be depends on the data: if there are
more factors than the data support, the others should vanish. One stage is run with both weights,
and the one with the lower held-out error is kept. If that is the firm one, and factors that have
helped overfit later, the run goes on with the other.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from svmp.inference.running.stopping import Interrupt
from svmp.posterior.marginals.posterior import Posterior
from svmp.recommend.network import FIRM, LOOSE
from svmp.recommend.top import shown

FIRST, GROWTH = 3, 1.5
"""Sweeps of the first stage, and growth of the total number of sweeps with each stage."""
PATIENT, CLEARLY = 10, 1.004
"""Minimum number of sweeps, since factors may need some to move away from 0; twice as many unless
the mean squared error exceeds CLEARLY times the least so far."""
PROBABLY = 0.5
"""Standard errors by which the held-out error must be lower with factors. Factors that help by less
may look better by chance, and then harm."""
FOR_BIASES = 0.4
"""Share of the sweeps that may be spent on biases alone, if there are factors."""
HASTY, ENOUGH, RESUMED = 5, 5e-4, 1e-4
"""Biases before factors: minimum number of sweeps, and the relative decrease of the held-out error
below which a stage is the last; and that of biases that are resumed without factors."""


class Sweeper(Protocol):
    """A q that is updated sweep by sweep."""

    @property
    def iteration(self) -> int:
        """Number of sweeps so far."""

    @property
    def posteriors(self) -> dict[str, Posterior]:
        """Posterior of every hidden variable; valid until the next sweep."""

    def copy(self) -> Self:
        """Return an independent copy."""


Run = TypeVar("Run", bound=Sweeper)


class Stage(NamedTuple):
    """The state of a run after a stage, and its held-out errors.

    Attributes
    ----------
    posteriors
        q after the stage.
    factors, weight
        Number of factors, and weight of the prior of their precisions.
    errors
        Errors of the held-out ratings.
    """

    posteriors: Mapping[str, Posterior]
    factors: int
    weight: float
    errors: NDArray[Any]

    @property
    def error(self) -> float:
        """Mean squared error."""
        return float(np.mean(self.errors**2))

    def better_than(self, other: Stage, by: float) -> bool:
        """Whether the mean squared error is lower by more than some standard errors."""
        less = other.errors**2 - self.errors**2
        return bool(less.mean() > by * less.std() / np.sqrt(len(less)))


class StageRecord(NamedTuple):
    """What is known about a stage after the run.

    Attributes
    ----------
    factors, weight
        Number of factors, and weight of the prior of their precisions.
    sweeps
        Number of sweeps of this run so far; those of biases are counted apart.
    seconds
        Time since the search began.
    rmse
        Root mean squared error of the held-out ratings.
    """

    factors: int
    weight: float
    sweeps: int
    seconds: float
    rmse: float


class Search(ABC, Generic[Run]):
    """How to begin a run, to sweep over the training rows, and to score the held-out ones.

    Attributes
    ----------
    tol
        Relative decrease of the held-out error below which the run stops.
    progress
        Whether to show progress; by default on a terminal or in a notebook.
    biases
        Minimum number of sweeps if there are no factors.
    first, patient
        Sweeps of the first stage with factors, and the minimum number of sweeps with factors.
    trial, limit
        Sweeps after which the other weight of the prior is tried, and the maximum number of sweeps
        with factors.
    records
        A record of every stage.
    stopped
        Whether the last run ended because its held-out error no longer fell.
    """

    biases: ClassVar[int]
    first: ClassVar[int] = FIRST
    patient: ClassVar[int] = PATIENT
    trial: ClassVar[int] = PATIENT
    limit: ClassVar[float] = math.inf
    tol: float
    progress: bool | None

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.records: list[StageRecord] = []
        self.stopped = False

    def recorded(
        self, run: Run, factors: int, weight: float, sweeps: int, interrupt: Interrupt
    ) -> Stage:
        """Advance a run by `sweep`, and add a record."""
        stage = self.sweep(run, factors, weight, sweeps, interrupt)
        seconds, error = time.perf_counter() - self.began, math.sqrt(stage.error)
        self.records.append(StageRecord(factors, weight, run.iteration, seconds, error))
        return stage

    @abstractmethod
    def begin(self, factors: int, init: Mapping[str, Any]) -> Run:
        """Return a run that starts at the given q."""

    @abstractmethod
    def sweep(
        self, run: Run, factors: int, weight: float, sweeps: int, interrupt: Interrupt
    ) -> Stage:
        """Advance a run by some sweeps, at least one; fewer after Ctrl-C."""

    @abstractmethod
    def kept(self, stage: Stage) -> Stage:
        """Return a stage whose q does not change with its run."""


def search_best(
    search: Search[Run],
    factors: int,
    init: Mapping[str, Any],
    most: int,
    interrupt: Interrupt,
) -> tuple[Stage, int]:
    """Fit biases, then factors; return the best stage and the number of sweeps, at most `most`."""
    few = max(1, int((FOR_BIASES if factors else 1.0) * most))
    biases = search.begin(0, {})
    alone = (HASTY, max(ENOUGH, search.tol)) if factors else (search.biases, search.tol)
    best, sweeps = stages(search, biases, 0, few, None, interrupt, alone)
    left = most - sweeps
    if factors and left > 0 and not interrupt.pressed:
        run = search.begin(factors, {**init, **best.posteriors})
        found, more = stages(search, run, factors, int(min(left, search.limit)), best, interrupt)
        best = found if found.better_than(best, by=PROBABLY) else best
        sweeps += more
        left = most - sweeps
        if not best.factors and left > 0 and not interrupt.pressed:
            until, alone = biases.iteration + left, (0, max(RESUMED, search.tol))
            best, more = stages(search, biases, 0, until, best, interrupt, alone)
            sweeps += more
    return best, sweeps


def stages(
    search: Search[Run],
    run: Run,
    factors: int,
    most: int,
    best: Stage | None,
    interrupt: Interrupt,
    alone: tuple[int, float] | None = None,
) -> tuple[Stage, int]:
    """Sweep over the training rows until the held-out error stops falling.

    For biases, `alone` is the minimum number of sweeps, and the relative decrease of the error
    below which they end.

    Returns the best stage and the number of sweeps. A stage replaces the best one if its error is
    lower; with factors, early stages do not count, because factors have hardly moved by then and
    look better by chance. There are at most `most` sweeps, including earlier ones of the run and
    both variants of the stage that is run twice. Ctrl-C also ends the run; its state is then valid.
    """
    weight, patient, search.stopped = FIRM, search.patient, False
    begun = spent = run.iteration
    tried = 0
    first = search.first if factors else FIRST
    for end in shown(
        [x for x in ends(most, first) if x > begun], search.progress, "sweeping", few=1
    ):
        until = min(end, most - tried)
        if until == spent:
            break
        other = None
        undecided = factors and not tried and weight == FIRM
        if undecided and spent >= search.trial and spent + 2 <= most:
            other, until = run.copy(), min(until, spent + (most - spent) // 2)
        now = search.recorded(run, factors, weight, until - spent, interrupt)
        if other is not None:
            tried = until - spent
            found = search.recorded(other, factors, LOOSE, tried, interrupt)
            if found.error < now.error:
                now, run, weight = found, other, LOOSE
        spent, before = until, np.inf if best is None else best.error
        early = factors and until < min(patient, most)
        if best is None or (now.error < before and not early):
            best = search.kept(now)
        worse = now.error > CLEARLY * before
        patience, least = alone or (patient if worse else 2 * patient, search.tol)
        if interrupt.pressed:
            break
        if now.error >= (1 - least) * before and spent >= patience:
            if not (worse and best.factors and weight == FIRM):
                search.stopped = True
                break
            weight = LOOSE  # factors that have helped overfit
    assert best is not None
    return best, run.iteration - begun + tried


def status_of(search: Search[Any] | None, spare: float, last: str) -> str:
    """Return how a fit ended, in words.

    Parameters
    ----------
    search
        The search; None if all sweeps are over all ratings.
    spare
        Sweeps that the search had left.
    last
        Status of the sweeps over all ratings.
    """
    if search is None or last == "interrupted":
        return "stopped at the limit of sweeps" if last == "budget" else last
    if search.stopped:
        return "stopped early: the held-out error no longer fell"
    if spare > 0:
        return f"stopped after {search.limit:g} sweeps of the factors, enough with covariances"
    return "stopped at the limit of sweeps"


def ends(max_sweeps: float, first: int = FIRST) -> list[int]:
    """Return the total number of sweeps at the end of each stage.

    >>> ends(30)
    [3, 5, 8, 12, 18, 27, 30]
    """
    found, most = [first], math.ceil(max_sweeps)
    while found[-1] < most:
        found.append(math.ceil(GROWTH * found[-1]))
    return [*found[:-1], most]

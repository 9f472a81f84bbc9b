"""Run an algorithm on a network until it converges or its budget is spent.

`svmp.fit` and `Fit.update` check their arguments, prepare the network and the start, and call
`execute`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from svmp.errors import ClusterError, ConvergenceWarning, DivergenceWarning, ModelError
from svmp.inference.blas import one_blas_thread
from svmp.inference.checkpoints.checkpoint import Checkpoints, checkpoints_at
from svmp.inference.checkpoints.resuming import Saved
from svmp.inference.loops import refusing_loops, use_loops
from svmp.inference.methods import Method
from svmp.inference.program.default import uses_loops
from svmp.inference.program.joint_blocks import Joint
from svmp.inference.program.program import Program
from svmp.inference.running.arguments import check_method_and_steps, check_numbers, given_values
from svmp.inference.running.diagnosis import Diagnosis, diagnose, safe_first_step
from svmp.inference.running.held_out import Scorer
from svmp.inference.running.problem import HeldOutArgument, Problem
from svmp.inference.running.progress import report_to
from svmp.inference.running.recording import Recorder, Watch
from svmp.inference.running.run import Observer, Run
from svmp.inference.running.seeds import whole_seed
from svmp.inference.running.stopping import Budget, Status, catch_interrupt
from svmp.inference.starts.start import Init, check_finite
from svmp.inference.state.approach import NEAR
from svmp.inference.state.state import State
from svmp.inference.steps import Steps, as_policy
from svmp.inference.updaters.linear_block import find_blocks
from svmp.kernels.machine.threads import use_threads
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network

MAX_SWEEPS = 1000
"""Default limit of sweeps."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """A run that has ended.

    Attributes
    ----------
    run, status
        The run, and how it ended.
    diagnosis
        Where and why it diverged; None if it did not.
    warning
        What to warn the user of; None if there is nothing.
    """

    run: Run
    status: Status
    diagnosis: Diagnosis | None
    warning: ConvergenceWarning | None


@refusing_loops
def execute(
    problem: Problem,
    method: Method | None = None,
    *,
    steps: Steps | None = None,
    seed: int | np.random.Generator = 0,
    init: Init | None = None,
    joint: Joint | None = None,
    tol: float | None = None,
    max_sweeps: float | None = MAX_SWEEPS,
    max_accesses: float | None = None,
    max_seconds: float | None = None,
    bound_every: int | Callable[[int], bool] | None = None,
    held_out: HeldOutArgument | None = None,
    progress: bool | None = None,
    watch: Watch | None = None,
    kernels: bool | None = None,
    threads: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: str | int = "30s",
    resume: str | os.PathLike[str] | None = None,
    observers: tuple[Observer, ...] = (),
) -> Outcome:
    """Run an algorithm on a problem; the arguments are those of `svmp.fit`, and more observers."""
    check_method_and_steps(method, steps, watch)
    check_numbers(seed, tol, bound_every, max_sweeps, max_accesses, max_seconds)
    seed = whole_seed(seed)
    keep = checkpoints_at(checkpoint, every)
    problem.check()
    if joint is not None:
        problem = problem.joining(joint)
    policy = None if steps is None else as_policy(steps)
    held: Scorer | None = None
    if held_out is not None:
        problem, held = problem.with_held_out(held_out)
    saved = None if resume is None else Saved.read(resume, problem, method, policy)
    stored = given_values(init)
    if saved is not None and resume is not None:
        saved.check_held_out(held)
        problem = problem.joining(saved.check_joint(None if joint is None else problem.joint))
        method, policy, stored = saved.method, saved.policy, set(saved.stored)
        seed, tol, kernels = saved.seed, saved.tol, saved.kernels
        keep = keep or Checkpoints(Path(resume), every)
        same = keep.path.absolute() == Path(resume).absolute()
        keep.spoilt = same and keep.path.absolute() != saved.path.absolute()
    method, policy, persistent = problem.choose(method, policy)
    persistent = persistent if saved is None else saved.persistent

    def begin(program: Program) -> Beliefs:
        return problem.start(program, init)

    def probe() -> float | None:
        with _computing(threads, tell=False), use_loops(bool(kernels)):
            return safe_first_step(run, begin)

    budget = Budget(max_sweeps, max_accesses, max_seconds)
    recorder = Recorder(budget, bound_every, held, watch, problem.estimator(method))
    with _computing(threads, tell=progress is not False), ExitStack() as stack:
        kernels = uses_loops(problem.network) if kernels is None else kernels
        stack.enter_context(use_loops(kernels))
        program = problem.program(method, policy, kernels, seed, stored)
        program.prepare()
        state = State(begin(program), memo=program.memo())
        run = Run(program, state, budget, tol, persistent, recorder)
        check_finite(problem.network, run.state.q, run.guard.rows)
        if saved is not None:
            saved.restore(run.state)
            saved.restore_joint(run.state, problem.joint)
            budget.began -= run.state.seconds
        with catch_interrupt() as interrupt, report_to(progress, budget) as report:
            run.observers = (report, *observers) if keep is None else (report, *observers, keep)
            with names_checkpoint(keep):
                status = run.go(interrupt)
            if keep is not None and status != "diverged":
                keep.write(run)  # before the last bound, which a longer run would not compute here
            status = run.finish(status)
    for name, term in run.state.measured.terms.items():
        if not np.isfinite(term):
            raise ModelError(f"the run made numbers too large to compute with: see '{name}'")
    limited = status == "budget" and max_sweeps == MAX_SWEEPS and run.sweeps >= MAX_SWEEPS
    diagnosis = diagnose(run, probe) if status == "diverged" else None
    warning: ConvergenceWarning | None = None
    if diagnosis is not None:
        warning = DivergenceWarning(diverged(run, diagnosis))
    elif limited:
        warning = ConvergenceWarning(unconverged(run))
    return Outcome(run, status, diagnosis, warning)


@contextmanager
def names_checkpoint(keep: Checkpoints | None) -> Iterator[None]:
    """Let the error of a cluster that is lost name the checkpoint to go on from."""
    try:
        yield
    except ClusterError as error:
        if keep is None or not keep.path.exists():
            raise
        raise ClusterError(error.fact, str(keep.path)) from error


def diverged(run: Run, diagnosis: Diagnosis) -> str:
    """Return the warning for a run that diverged."""
    given = f"bound {diagnosis.bound:,.6g}" if np.isfinite(diagnosis.bound) else "no finite bound"
    return (
        f"the fit {diagnosis.event} ({given} there); its q is that of the last sound iteration, "
        f"with bound {run.state.measured.bound:,.6g}: leave out steps= and the method (the default "
        "cannot diverge), or begin with smaller steps (fit.diagnosis.safe_rho1 finds how small)"
    )


def unconverged(run: Run) -> str:
    """Return the warning for a run that ends at the default limit before it converged."""
    alone = not run.program.method.joint and find_blocks(run.program.network)
    moved = f"its last sweep moved q by {run.state.window.moved:.2g} nats an element"
    if run.visible is None:
        seen = f"{moved}, and tol is {run.tolerance:g}"
    elif run.remaining is None:
        seen = f"{moved}, and its distance from its limit cannot be estimated"
    else:
        seen = f"by extrapolation {run.remaining:.2g} sds from there, where {NEAR} is near enough"
    return (
        f"the fit stopped at max_sweeps={MAX_SWEEPS} before it converged, so its means may be far "
        f"from where they would end ({seen}); "
        + ("leave out the method (the default solves linear terms together), " if alone else "")
        + ("centre and scale covariates, " if weighs_covariates(run.program.network) else "")
        + "continue with init=fit, raise max_sweeps=, or "
        + ("raise tol=" if run.tol is not None else "accept a coarser result with tol=1e-4")
    )


def weighs_covariates(network: Network) -> bool:
    """Return whether the mean or logit of a table multiplies hidden variables by an array."""
    means = [variable.conditional.linear for variable in network.observed.values()]
    terms = [term for mean in means if mean is not None for term in mean.terms if term.readers]
    return any(t.design is not None or any(c.axes for c in t.constants) for t in terms)


@contextmanager
def _computing(threads: int | None, tell: bool) -> Iterator[None]:
    """Use a number of threads, and no NumPy warnings: overflows are detected and reported."""
    quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")
    with quiet, one_blas_thread(), use_threads(threads, tell=tell):
        yield

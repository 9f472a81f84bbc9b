"""`svmp.fit`: run an algorithm on a model until it converges or its budget is spent.

Numba is imported here, where few imports are under way. Deeper in the stack its tables of types
took 0.2 s in place of 0.01: where a frame ends a chunk of the stack, CPython 3.11 allocates the
next chunk anew in each of 20,000 calls.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numba  # noqa: F401
import numpy as np

from svmp.errors import ModelError
from svmp.fitting.restarts import best_start, check_restarts
from svmp.inference.checkpoints.checkpoint import checkpoints_at
from svmp.inference.execute import MAX_SWEEPS, execute
from svmp.inference.methods import Method
from svmp.inference.program.default import uses_loops
from svmp.inference.program.joint_blocks import Joint
from svmp.inference.program.program_summary import ProgramSummary
from svmp.inference.running.arguments import check_method_and_steps, check_model
from svmp.inference.running.problem import Divided, HeldOutArgument, OneTable, Problem
from svmp.inference.running.recording import Watch
from svmp.inference.starts.start import Init
from svmp.inference.steps import Steps, as_policy
from svmp.network.keywords import known_keywords
from svmp.network.model import Model
from svmp.network.network import Network
from svmp.posterior.record.restart_record import Restarts
from svmp.posterior.result.result import Fit


@known_keywords
def fit(
    model: Model | Network | Divided,
    method: Method | None = None,
    *,
    steps: Steps | None = None,
    seed: int | np.random.Generator = 0,
    restarts: int = 1,
    init: Init | Fit | None = None,
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
    client: Any = None,
) -> Fit:
    """Approximate the posterior of every hidden variable of a model.

    Parameters
    ----------
    model
        The declared network, or `svmp.Parts` of rows that lie in parts. A `Network` can be given
        instead, to be fitted several times: rows are then sorted once.
    method
        The algorithm: `FullVB()`, `Children(...)`, `Batch(...)`, `Batch(..., over="doc")` for
        minibatches of documents or other groups, `Memoized(over="doc")`, or `Growing(...)`. By
        default it is chosen from the child counts, see docs/steps.md.
    steps
        How far an update moves: a step policy, as `RobbinsMonro(...)`, or a function from a
        `StepContext` to steps. By default unit steps under `FullVB`, `Growing` and
        `Memoized`, and `Nodewise()` elsewhere.
    seed
        Seed of the start and of the draws of rows: a whole number, which gives the same bits each
        time, or a `numpy.random.Generator`, from which one is drawn.
    restarts
        Number of starts, from seeds that are derived from `seed`. The fit with the best bound is
        returned, and `fit.restarts` has how all of them ended. They run side by side, on `threads`;
        those that can no longer become the best are stopped early: see docs/uncertainty.md. The
        limits of sweeps and accesses are those of each start, `max_seconds` that of all together.
    init
        Starting values by variable: an array of means (or probabilities), standard parameters by
        name, as `{"tau": {"alpha": 1, "beta": 2}}`, or the posterior of an earlier fit; or a whole
        earlier fit. Components of a mixture of which only the means are given start at the rows
        nearest to these.
    joint
        Blocks of Normals and MvNormals whose q is one multivariate Normal instead of a product:
        `[("mu", "school")]`, or "auto" for all that share rows. Their standard deviations are then
        not too small because of each other, see docs/uncertainty.md. It needs all rows in every
        iteration: `FullVB()` or `Growing(first=1)`, which is then the default. None and False mean
        no blocks.
    tol
        By default a run has converged when means of rows and parameters are within about 0.03 of
        their sds of where more sweeps would lead, by extrapolation; `fit.remaining` says how near
        they are, see docs/convergence.md. With a number it has converged when a sweep changes the
        bound by at most `tol` of its size, and q by a symmetrised KL of at most `tol` nats an
        element. Runs that draw rows, and those on `svmp.Parts`, have `tol=1e-6` by default.
    max_sweeps, max_accesses, max_seconds
        Limits of the run; None means no limit. An access is one row read for one hidden
        element. An iteration that has begun is finished, even if it exceeds a limit. A run that
        ends at the default limit of sweeps gives a `ConvergenceWarning`; one that ends at a limit
        that the caller gave does not.
    bound_every
        Number of iterations between exact bounds; or a function from the number of an iteration to
        whether the bound is computed. By default it is computed at every sweep of full VB, and
        otherwise so often that it costs about a tenth of the accesses. Where there are more than
        100,000 observed rows, the trace has estimates in between, with their standard errors in
        `bound_se`; they cost a hundredth of the accesses, and are not used for stopping.
    held_out
        By observed variable the true values of rows that are missing in training: an array of the
        same shape, NaN or masked where nothing is held out. The trace then has a column `held_out`,
        the mean over these rows of what each would add to the bound, its own local variables
        optimised: a lower bound on the predictive log density. It is not used for stopping. With
        `resume` the same values must be given again. For `svmp.Parts`, a function from the rows of
        a part to its held-out values.
    progress
        Whether to show a line of progress; by default on a terminal or in a notebook.
    watch
        A function that is called with each new row of the trace during the run, as a dict from
        column to number. An exception that it raises ends the run.
    kernels
        Whether to use compiled loops for the updates that they support; the result is the same up
        to rounding. By default they are used unless the network is small: fewer than 10,000
        accesses in a sweep, of all rows together if they lie in parts. Local choices that are not
        stored always follow the other variables; under an `order` in which they are not first, a
        stored q would lag behind. See `svmp.explain`.
    threads
        Number of threads of the compiled loops; by default the environment variable `SVMP_THREADS`,
        or the number of cores. It does not change the bits: BLAS, whose bits depend on its
        threads, has one while a fit runs.
    checkpoint, every
        A file to which the run is written, and how often: "30s", "5m", "2h", or a number of
        iterations. The file is replaced atomically, and the previous one is kept as `path.before`.
        An existing file that is not a checkpoint is refused before the run begins.
    resume
        A checkpoint from which to continue, to the same bits as a run without interruption. The
        algorithm, steps, seed and tolerance are taken from it, and the model and the data must be
        the same. An algorithm of the same class, or other steps, replace those of the run.

    client
        A Dask client whose workers process the parts; only for `svmp.Parts`. The result is the
        same, to the bit.

    Returns
    -------
    Fit
        q, its exact bound, and how the run ended: "converged"; "budget" if a limit was reached
        first; "diverged" if q diverged under the given steps, with the last sound q and a
        `DivergenceWarning`; or "interrupted" after Ctrl-C.

    >>> import svmp
    >>> with svmp.Model() as model:
    ...     rate = svmp.Gamma("rate", alpha=2, beta=1)
    ...     count = svmp.Poisson("count", mu=rate, observed=[3, 4, 8])
    >>> fit = svmp.fit(model)
    >>> fit.status, fit["rate"].alpha, fit["rate"].beta
    ('converged', array(17.), array(4.))
    """
    checkpoints_at(checkpoint, every)  # refuses other files before any rows are read
    starts: Restarts | None = None
    options: dict[str, Any] = {
        "method": method,
        "steps": steps,
        "init": init.posteriors if isinstance(init, Fit) else init,
        "joint": joint,
        "tol": tol,
        "max_sweeps": max_sweeps,
        "max_accesses": max_accesses,
        "max_seconds": max_seconds,
        "bound_every": bound_every,
        "held_out": held_out,
        "progress": progress,
        "watch": watch,
        "kernels": kernels,
        "threads": threads,
        "checkpoint": checkpoint,
        "every": every,
        "resume": resume,
    }
    count = check_restarts(restarts, options)
    with problem_of(model, client) as problem:
        if count == 1:
            found = execute(problem, seed=seed, **options)
        else:
            found, starts = best_start(problem, count, seed, options)
        if found.warning is not None:
            warnings.warn(found.warning, stacklevel=3)
        return replace(Fit.of(found), restarts=starts)


@contextmanager
def problem_of(model: Model | Network | Divided, client: Any) -> Iterator[Problem]:
    """Yield what is to be fitted, and release it at the end."""
    if isinstance(model, Divided):
        try:
            yield model.problem(client)
        finally:
            model.close()
        return
    if client is not None:
        raise ModelError(
            "client= is for rows in parts: divide the rows, as in svmp.Parts(declare, parts)"
        )
    check_model(model.model if isinstance(model, Network) else model)
    network = model if isinstance(model, Network) else Network(model)
    yield OneTable(network)
    if network is not model:
        network.derived.clear()  # sorted rows are not left to the garbage collector


def explain(
    model: Model | Network | Divided,
    method: Method | None = None,
    *,
    steps: Steps | None = None,
    joint: Joint | None = None,
    kernels: bool | None = None,
) -> ProgramSummary:
    """Return which updater `fit` would use for each hidden variable, without fitting.

    Parameters
    ----------
    model, method, steps, joint, kernels
        As for `svmp.fit`.

    Returns
    -------
    ProgramSummary
        A table to print: the updater of each variable and, if it is not compiled, the reason.

    >>> import svmp
    >>> with svmp.Model() as model:
    ...     rate = svmp.Gamma("rate", alpha=2, beta=1)
    ...     count = svmp.Poisson("count", mu=rate, observed=[3, 4, 8])
    >>> print(svmp.explain(model))
    Growing
      rate  plain (not compiled: the network is small; see kernels=)
    """
    check_method_and_steps(method, steps)
    policy = None if steps is None else as_policy(steps)
    with problem_of(model, None) as problem:
        problem.check()
        problem = problem.joining(joint)
        method, policy, _ = problem.choose(method, policy)
        loops = uses_loops(problem.network) if kernels is None else kernels
        return problem.program(method, policy, loops, seed=0, stored=()).explain()

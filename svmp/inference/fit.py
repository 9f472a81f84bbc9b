"""`svmp.fit`: run an algorithm on a model until it converges or its budget is spent."""

from __future__ import annotations

from svmp.errors import ModelError
from svmp.inference.default import choose
from svmp.inference.engine import update_order
from svmp.inference.fused import find_loops
from svmp.inference.progress import report_to
from svmp.inference.result import Fit
from svmp.inference.run import Run
from svmp.inference.selection import Selection
from svmp.inference.start import Init, start
from svmp.inference.steps import Steps
from svmp.inference.stopping import Budget, catch_interrupt
from svmp.network.model import Model
from svmp.network.network import Network


def fit(
    model: Model,
    method: Selection | None = None,
    *,
    steps: Steps | None = None,
    seed: int = 0,
    init: Init | None = None,
    tol: float = 1e-6,
    max_sweeps: float | None = 1000,
    max_accesses: float | None = None,
    max_seconds: float | None = None,
    bound_every: int | None = None,
    progress: bool | None = None,
    kernels: bool = True,
) -> Fit:
    """Approximate the posterior of every hidden variable of a model.

    Parameters
    ----------
    model
        The declared network.
    method
        The algorithm; full variational Bayes by default.
    seed
        Decides the start. The same seed gives the same bits.
    init
        Starting values by variable: an array of means (or probabilities), standard parameters by
        name, as `{"tau": {"alpha": 1, "beta": 2}}`, or the posterior of an earlier fit.
    tol
        The run has converged when a sweep changes the bound by at most `tol` of its size, and q
        by a symmetrised KL of at most `tol` nats an element.
    max_sweeps, max_accesses, max_seconds
        What the run may spend. An access is one row read for one hidden element.
    progress
        Whether to show a line of progress; by default on a terminal only.

    Returns
    -------
    Fit
        q, its exact bound, and how the run ended: "converged", "budget" or, after Ctrl-C,
        "interrupted".

    >>> import svmp
    >>> with svmp.Model() as model:
    ...     rate = svmp.Gamma("rate", alpha=2, beta=1)
    ...     count = svmp.Poisson("count", mu=rate, observed=[3, 4, 8])
    >>> fit = svmp.fit(model)
    >>> fit.status, fit["rate"].alpha, fit["rate"].beta
    ('converged', array(17.), array(4.))
    """
    if not tol >= 0:
        raise ModelError(f"tol must not be negative, not {tol}")
    budget = Budget(max_sweeps, max_accesses, max_seconds)
    network = Network(model)
    network.check()
    method, steps, persistent = choose(network, method, steps)
    update_order(network, method.order)
    q = start(network, seed, init)
    if kernels:
        q.loops.update(find_loops(network))
    run = Run(network, q, method, steps, seed, tol, budget, persistent, bound_every)
    with catch_interrupt() as interrupt, report_to(progress, budget) as report:
        status = run.go(interrupt, report, lambda run: None)
    return Fit.of(run, status)

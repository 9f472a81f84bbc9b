"""`svmp.fit`: run an algorithm on a model until it converges or its budget is spent."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from svmp.errors import ModelError
from svmp.inference.default import choose
from svmp.inference.engine import update_order
from svmp.inference.fused import find_loops
from svmp.inference.progress import report_to
from svmp.inference.result import Fit
from svmp.inference.run import Run
from svmp.inference.selection import Selection
from svmp.inference.start import Init, check_finite, start
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
    init: Init | Fit | None = None,
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
        The algorithm: `FullVB()`, `Children(...)`, `Batch(...)` or `Growing(...)`. By default it is
        chosen from the child counts, see docs/steps.md.
    steps
        How far an update moves: a step policy, as `RobbinsMonro(...)`, or a function from a `Look`
        to steps. By default unit steps under `FullVB` and `Growing`, and `Nodewise()` elsewhere.
    seed
        Decides the start and the rows that are drawn. The same seed gives the same bits.
    init
        Starting values by variable: an array of means (or probabilities), standard parameters by
        name, as `{"tau": {"alpha": 1, "beta": 2}}`, or the posterior of an earlier fit; or a whole
        earlier fit.
    tol
        The run has converged when a sweep changes the bound by at most `tol` of its size, and q
        by a symmetrised KL of at most `tol` nats an element.
    max_sweeps, max_accesses, max_seconds
        What the run may spend; None means without limit. An access is one row read for one hidden
        element. An iteration that has begun is finished, even if it goes over the budget.
    bound_every
        How often the exact bound is computed, in iterations. By default at every sweep of full VB,
        and else so that it costs about a tenth of the accesses.
    progress
        Whether to show a line of progress; by default on a terminal only.
    kernels
        Whether compiled loops may do the updates that they know; the result is the same up to
        rounding.

    Returns
    -------
    Fit
        q, its exact bound, and how the run ended: "converged"; "budget" if a limit was reached
        first; "diverged" if q ran away under the steps that were given, with the last sound q; or
        "interrupted" after Ctrl-C.

    >>> import svmp
    >>> with svmp.Model() as model:
    ...     rate = svmp.Gamma("rate", alpha=2, beta=1)
    ...     count = svmp.Poisson("count", mu=rate, observed=[3, 4, 8])
    >>> fit = svmp.fit(model)
    >>> fit.status, fit["rate"].alpha, fit["rate"].beta
    ('converged', array(17.), array(4.))
    """
    check_model_and_method(model, method, steps)
    check_numbers(seed, tol, bound_every, max_sweeps, max_accesses, max_seconds)
    budget = Budget(max_sweeps, max_accesses, max_seconds)
    network = Network(model)
    network.check()
    method, steps, persistent = choose(network, method, steps)
    update_order(network, method.order)
    # Numbers that overflow are refused by name, as soon as a parameter or a density has them.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        q = start(network, int(seed), init)
        if kernels:
            q.loops.update(find_loops(network))
        run = Run(network, q, method, steps, int(seed), tol, budget, persistent, bound_every)
        check_finite(network, q, run.guard.rows)
        with catch_interrupt() as interrupt, report_to(progress, budget) as report:
            status = run.go(interrupt, report, lambda run: None)
    for name, term in run.bound_terms.items():
        if not np.isfinite(term):
            raise ModelError(f"the run made numbers too large to compute with: see '{name}'")
    return Fit.of(run, status)


def check_model_and_method(model: Any, method: Any, steps: Any) -> None:
    """Refuse what is not a model, an algorithm or a step policy, or is a class and not one of it.

    >>> from svmp.inference.selection import FullVB
    >>> check_model_and_method(Model(), FullVB, None)
    Traceback (most recent call last):
    svmp.errors.ModelError: method must be an algorithm, as svmp.FullVB(), not <class '...FullVB'>
    """
    if not isinstance(model, Model):
        raise ModelError(f"model must be a svmp.Model, not {_short(model)}")
    members = ("draw", "option", "order")
    if method is not None and not (_made(method) and all(hasattr(method, m) for m in members)):
        raise ModelError(f"method must be an algorithm, as svmp.FullVB(), not {_short(method)}")
    if steps is not None and not (_made(steps) and callable(steps)):
        raise ModelError(
            f"steps must be a step policy, as svmp.RobbinsMonro(), not {_short(steps)}"
        )
    order = getattr(method, "order", None)
    listed = isinstance(order, Sequence) and not isinstance(order, str)
    if order is not None and not (listed and all(isinstance(name, str) for name in order)):
        raise ModelError(f"order must be a list of names of variables, not {_short(order)}")


def check_numbers(
    seed: Any,
    tol: Any,
    bound_every: Any,
    max_sweeps: Any,
    max_accesses: Any,
    max_seconds: Any,
) -> None:
    """Refuse numbers that are out of range, or are none."""
    if not isinstance(seed, Integral) or int(seed) < 0:
        raise ModelError(f"seed must be a whole number of at least 0, not {_short(seed)}")
    if not isinstance(tol, Real) or not float(tol) >= 0:
        raise ModelError(f"tol must be a number of at least 0, not {_short(tol)}")
    if bound_every is not None and not (isinstance(bound_every, Integral) and int(bound_every) > 0):
        raise ModelError(f"bound_every must be a positive whole number, not {_short(bound_every)}")
    limits = {"max_sweeps": max_sweeps, "max_accesses": max_accesses, "max_seconds": max_seconds}
    for name, limit in limits.items():
        if limit is not None and not (isinstance(limit, Real) and float(limit) > 0):
            raise ModelError(f"{name} must be a positive number or None, not {_short(limit)}")


def _made(value: Any) -> bool:
    """Return whether a value is an object, and not the class that makes it."""
    return not isinstance(value, type)


def _short(value: Any) -> str:
    """Show a value in at most one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."

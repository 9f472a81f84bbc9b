"""Single series that are declared in one line: random walks and autoregressions.

Both are chains of vectors (linear_chains.py), and return what stands for the value of a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from svmp import factors
from svmp.errors import ModelError
from svmp.network.distributions import Gamma, MvNormal, Normal
from svmp.network.expressions import Expression, diag
from svmp.network.linear_chains import LinearGaussianChain
from svmp.network.model import current
from svmp.network.validation import array, shown, text
from svmp.network.variable import Component

EXACT = 1e8
"""Precision of entries of a state that are copies, in multiples of that of the innovations."""
VAGUE = Normal.dist(mu=0.0, tau=1e-3)


def GaussianRandomWalk(
    name: str,
    tau: Any,
    init: Component = VAGUE,
    *,
    mu: float = 0.0,
    step: ArrayLike | None = None,
    sequence: ArrayLike | None = None,
    order: ArrayLike | None = None,
    sequence_dim: str = "sequence",
    dims: str,
) -> Expression:
    """Declare a random walk over the rows of a table: x_t ~ N(x_(t-1) + mu, 1 / tau).

    Parameters
    ----------
    name
        Its name.
    tau
        Precision of a step: a number or a Gamma, also one for each sequence, or read by a key.
    init
        Density of the first value, an `svmp.Normal.dist`.
    mu
        Mean of a step.
    step
        Time since the row before, if it is not always 1: both the mean and the variance of a step
        are multiplied by it.
    sequence, order, sequence_dim
        As for `svmp.DiscreteMarkovChain`.
    dims
        The dimension of the rows.

    Returns
    -------
    Expression
        The value of each row, for the mean of a Normal. `fit[name]` has vectors of length 1.

    >>> import svmp
    >>> with svmp.Model(coords={"day": 4}) as model:
    ...     level = svmp.GaussianRandomWalk("level", tau=1.0, dims="day")
    ...     y = svmp.Normal("y", mu=level, tau=1.0, dims="day", observed=[1, 2, 4, 3])
    >>> svmp.fit(model).mean("level")[:, 0].round(1)
    array([1.6, 2.2, 3.1, 3. ])
    """
    state = _state(name, dims, 1)
    inputs: dict[str, Any] = {}
    if mu != 0:
        sizes = current(name).coords.sizes
        if dims not in sizes:
            raise ModelError(f"'{name}' has a drift mu, so the size of '{dims}' must be in coords")
        time = np.ones(sizes[dims]) if step is None else np.asarray(step, dtype=np.float64)
        inputs = {"B": np.array([[float(mu)]]), "u": time}
    x = LinearGaussianChain(
        name,
        init=init,
        A=1.0,
        tau=tau,
        **inputs,
        step=step,
        sequence=sequence,
        order=order,
        sequence_dim=sequence_dim,
        dims=(dims, state),
    )
    return x[:, 0]


def AR(
    name: str,
    rho: Any,
    tau: Any,
    init: Component = VAGUE,
    *,
    sequence: ArrayLike | None = None,
    order: ArrayLike | None = None,
    sequence_dim: str = "sequence",
    dims: str,
) -> Expression:
    """Declare a hidden autoregression: x_t ~ N(rho_1 x_(t-1) + ... + rho_p x_(t-p), 1 / tau).

    An observed series needs no chain: it is a regression on its own past values.

    Parameters
    ----------
    name
        Its name.
    rho
        Coefficients: p numbers, or their prior `svmp.MvNormal.dist(mu, tau)` with a mean of length
        p. The variable `<name>_rho` then has the transition matrix, whose first row is rho.
    tau
        Precision of the innovations: a number, or its prior `svmp.Gamma.dist(alpha, beta)`, which
        becomes the variable `<name>_tau`.
    init
        Density of the first p values, an `svmp.Normal.dist`.
    sequence, order, sequence_dim
        As for `svmp.DiscreteMarkovChain`.
    dims
        The dimension of the rows.

    Returns
    -------
    Expression
        The value of each row. `fit[name]` has vectors of the last p values.
    """
    text(name, "a variable's name")
    prior = rho if isinstance(rho, Component) else None
    if prior is not None and not isinstance(prior.factor, factors.MvNormal):
        raise ModelError(f"rho of '{name}' must be numbers, or svmp.MvNormal.dist(mu, tau)")
    mean = array(rho if prior is None else prior.parameters["mu"])
    if mean is None or mean.dtype.kind not in "biuf" or mean.ndim != 1 or not len(mean):
        raise ModelError(f"rho of '{name}' must have p numbers, not {shown(rho)}")
    p = len(mean)
    state = _state(name, dims, p)
    companion = np.vstack([mean.astype(np.float64), np.eye(p)[: p - 1]])
    typical = _typical(name, tau)
    A: Any = companion
    if prior is not None:
        A = _coefficients(name, prior, companion, state)
    noise = _noise(name, tau, typical, p, state)
    x = LinearGaussianChain(
        name,
        init=init,
        A=A,
        tau=noise,
        sequence=sequence,
        order=order,
        sequence_dim=sequence_dim,
        dims=(dims, state),
    )
    return x[:, 0]


def _state(name: str, dims: Any, size: int) -> str:
    """Return the dimension of the states of a series, which is added to the model."""
    text(name, "a variable's name")
    if not isinstance(dims, str):
        raise ModelError(
            f"dims of '{name}' must be the one dimension of its rows, not {dims!r:.40}"
        )
    state = f"{name}_state"
    current(name).coords.add(state, size)
    return state


def _typical(name: str, tau: Any) -> float:
    """Return the precision of innovations that is expected."""
    if isinstance(tau, Component) and isinstance(tau.factor, factors.Gamma):
        alpha, beta = (array(tau.parameters[key]) for key in ("alpha", "beta"))
        if alpha is not None and beta is not None and alpha.ndim == 0 and beta.ndim == 0:
            return float(alpha / beta)
    elif not isinstance(tau, Component | Expression):
        number = array(tau)
        if number is not None and number.ndim == 0 and number > 0:
            return float(number)
    raise ModelError(
        f"tau of '{name}' must be a positive number, or svmp.Gamma.dist(alpha, beta) of numbers"
    )


def _coefficients(name: str, prior: Component, companion: np.ndarray, state: str) -> Any:
    """Declare the matrix of an autoregression; its rows but the first are known."""
    p = len(companion)
    known = array(prior.parameters["tau"])
    if known is None or known.shape not in ((), (p, p)):
        raise ModelError(f"the prior of rho of '{name}' needs a {p} x {p} precision matrix")
    tau = np.tile(1e12 * np.eye(p), (p, 1, 1))
    tau[0] = known * np.eye(p) if known.ndim == 0 else known
    lag = f"{name}_lag"
    current(name).coords.add(lag, p)
    return MvNormal(f"{name}_rho", mu=companion, tau=tau, dims=(state, lag))


def _noise(name: str, tau: Any, typical: float, p: int, state: str) -> Any:
    """Return the precision of a state, whose entries but the first are copies."""
    copies = EXACT * typical
    if not isinstance(tau, Component):
        return diag(np.array([typical] + [copies] * (p - 1)))
    alpha, beta = float(tau.parameters["alpha"]), float(tau.parameters["beta"])
    sure = 1e12  # a Gamma that no data move
    return Gamma(
        f"{name}_tau",
        alpha=np.array([alpha] + [sure] * (p - 1)),
        beta=np.array([beta] + [sure / copies] * (p - 1)),
        dims=state,
    )

"""Single series that are declared in one line: random walks and autoregressions.

Both are chains of vectors (linear_chains.py), and return what stands for the value of a row.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from svmp import factors
from svmp.errors import ModelError
from svmp.network.chains.linear_chains import LinearGaussianChain
from svmp.network.distributions import Gamma, MvNormal, Normal
from svmp.network.expressions import Expression
from svmp.network.model import current
from svmp.network.validation import array, shown, text
from svmp.network.variable import Component

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
        p, which becomes the variable `<name>_rho`.
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
    _check_noise(name, tau)
    A: Any = mean.astype(np.float64)[None, :]
    if prior is not None:
        known = array(prior.parameters["tau"])
        if known is None or known.shape not in ((), (p, p)):
            raise ModelError(f"the prior of rho of '{name}' needs a {p} x {p} precision matrix")
        A = MvNormal(
            f"{name}_rho", mu=mean, tau=known if known.ndim else known * np.eye(p), dims=state
        )
    if isinstance(tau, Component):
        tau = Gamma(f"{name}_tau", **tau.parameters)
    x = Autoregression(
        name,
        init=init,
        A=A,
        tau=tau,
        sequence=sequence,
        order=order,
        sequence_dim=sequence_dim,
        dims=(dims, state),
    )
    return x[:, 0]


class Autoregression(LinearGaussianChain):
    """A chain whose states are the last p values of a series: only the first entry moves."""

    lags: ClassVar[bool] = True


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


def _check_noise(name: str, tau: Any) -> None:
    """Refuse a precision of innovations that is no number and no Gamma."""
    if isinstance(tau, Component) and isinstance(tau.factor, factors.Gamma):
        return
    number = None if isinstance(tau, Component | Expression) else array(tau)
    if number is None or number.ndim or number.dtype.kind not in "biuf" or not number > 0:
        raise ModelError(
            f"tau of '{name}' must be a positive number, or svmp.Gamma.dist(alpha, beta)"
        )

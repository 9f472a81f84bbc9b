"""Declaring chains of vectors: `svmp.LinearGaussianChain`."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import ArrayLike

from svmp import factors
from svmp.errors import ModelError
from svmp.network.chains.chain_variable import ChainVariable
from svmp.network.chains.linear_chain import LinearChain
from svmp.network.chains.sequences import read_sequences
from svmp.network.conditional import Conditional
from svmp.network.model import current
from svmp.network.validation import dim_name, text
from svmp.network.variable import Component, Dims


class LinearGaussianChain(ChainVariable):
    """A hidden chain of Normal vectors over the rows of a table, with linear dynamics.

    The first state of each sequence has the density `init`. Each later one is Normal with the mean
    `A x_(t-1) + B u_t` and the precision matrix `tau`. Its marginals are MvNormals, and can be used
    wherever one can: `svmp.dot(C, x)` as the mean of observations, or `x[row]` in another table.

    Parameters
    ----------
    name
        Its name.
    init
        Density of the first state: `svmp.MvNormal.dist(mu, tau)`, or `svmp.Normal.dist(mu, tau)`
        for independent entries. Its parameters may be numbers or variables.
    A
        How a state depends on the one before: a number (times the identity), a matrix, an MvNormal
        whose last two dims are those of the matrix (its elements are the rows), or `svmp.diag` of
        numbers or of a Normal; also one for each sequence, or read by a key for each row.
    tau
        Precision matrix of the steps: numbers or a Gamma (those of a diagonal), `svmp.diag` of
        them, a positive definite matrix, or a Wishart.
    B, u
        Coefficients, as A, and the inputs of each row, (rows, inputs).
    step
        Factors of the covariance of the steps to each row, such as the time since the row before in
        a random walk.
    switch
        A Categorical or a DiscreteMarkovChain over the same rows, which chooses among the dynamics:
        those of A, B and tau that have the dimension of its categories.
    sequence, order, sequence_dim
        As for `svmp.DiscreteMarkovChain`.
    dims
        The dimension of the rows, and that of the vectors.

    >>> import numpy as np, svmp
    >>> y = np.array([1.1, 1.9, np.nan, 4.2, 5.0])
    >>> with svmp.Model(coords={"row": 5, "latent": 1}) as model:
    ...     x = svmp.LinearGaussianChain(
    ...         "x", init=svmp.Normal.dist(0, 1), A=1.0, tau=1.0, dims=("row", "latent")
    ...     )
    ...     svmp.Normal("y", mu=x[:, 0], tau=4.0, dims="row", observed=y, missing=True)
    <observed Normal 'y' {'row': 5}>
    >>> svmp.fit(model).mean("x")[:, 0].round(1)
    array([1.1, 1.9, 3. , 4.1, 4.8])
    """

    _factor = factors.MvNormal()
    lags: ClassVar[bool] = False
    """Whether only the first entry of a state moves, and the others are those before it."""

    def __init__(
        self,
        name: str,
        init: Any,
        A: Any,
        tau: Any,
        *,
        B: Any = None,
        u: ArrayLike | None = None,
        step: ArrayLike | None = None,
        switch: Any = None,
        sequence: ArrayLike | None = None,
        order: ArrayLike | None = None,
        sequence_dim: str = "sequence",
        dims: Dims = None,
    ) -> None:
        model = current(text(name, "a variable's name"))
        given = {"init": init, "A": A, "B": B, "tau": tau, "u": u, "step": step, "switch": switch}
        given |= {"sequence": sequence, "order": order, "sequence_dim": dim_name(sequence_dim)}
        self._declare(model.coords, model.free_name(name), given, dims)
        model.add(self)

    def _density(self, component: Component, length: int | None, selector: Any) -> Conditional:
        given, dim = self.given, self.given["sequence_dim"]
        if len(self.plate.labels) != 1:
            raise ModelError(
                f"'{self.name}' must have two dimensions: that of its rows, and that of its vectors"
            )
        if dim in self.dims:
            raise ModelError(
                f"sequence_dim of '{self.name}' is '{dim}', one of its dims; give it another name"
            )
        found, self._sequence_coord = read_sequences(
            self.name, self.coords, dim, self.plate.size, given["sequence"], given["order"]
        )
        parameters = {name: given[name] for name in ("init", "A", "B", "tau")}
        u, step, switch = (given[name] for name in ("u", "step", "switch"))
        return LinearChain(self, found, parameters, u, step, switch, lags=self.lags)

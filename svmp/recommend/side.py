"""q of all users, or of all items: each has a bias and a vector of factors.

For a user with bias a and factors u, and an item with b and v, all Normal and independent under q,
the score is s = mean + a + b + u . v, with

    E[s]   = mean + E[a] + E[b] + E[u] . E[v]
    Var[s] = Var[a] + Var[b] + tr(E[u u'] Cov[v]) + E[v]' Cov[u] E[v]

In a model of ratings, biases are among the factors, next to a slope (network.py):
u = (factors, a, slope), v = (factors, slope, b), and there are no other biases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError, RatingsError, UnknownError
from svmp.kernels.machine.compiling import jit
from svmp.kernels.machine.sorting import read_only
from svmp.models import NormalPrior
from svmp.network.tables import Columns, first_and_last, text_table
from svmp.ratings.table import Ids, keys_of

Floats = NDArray[np.floating[Any]]
"""Floating-point numbers; stored ones have single precision."""
Keys = NDArray[np.int64]
PAIRS = 1024
"""Pairs of users and items that are scored at a time."""
WIDE = 9
"""Columns of a table of users or items that are printed."""


@dataclass(frozen=True, eq=False)
class Side:
    """q of users, or of items: one side of the matrix of ratings.

    Attributes
    ----------
    bias, bias_var
        Mean and variance of each bias; 0 if biases are among the factors.
    mean
        Means of the factors, one row per element; behind them bias and slope, if they are joined.
    cov
        Variances of the factors, one row per element, or one covariance matrix per element.
    """

    bias: Floats
    bias_var: Floats
    mean: Floats
    cov: Floats

    @classmethod
    def prior(cls, of_bias: Any, of_factors: Any, full: bool, mean: Any = 0.0) -> Side:
        """Return one element with the given precisions and mean of the factors, and bias 0.

        If `of_bias` is None, biases are among the factors.
        """
        var = 1 / np.asarray(of_factors)
        around = np.broadcast_to(mean, len(var))
        arrays = (
            [0.0],
            [0.0 if of_bias is None else 1 / of_bias],
            [around],
            [np.diag(var) if full else var],
        )
        return cls(*(np.array(array, np.float32) for array in arrays))

    def scaled(self, scale: float) -> Side:
        """Return q for ratings that are multiplied by `scale`."""
        root = np.float32(np.sqrt(scale))
        squared = np.float32(scale) ** 2
        arrays = self.bias * np.float32(scale), self.bias_var * squared
        return Side(*arrays, self.mean * root, self.cov * np.float32(scale))

    @property
    def full(self) -> bool:
        """Whether the factors of an element have a covariance matrix."""
        return self.cov.ndim == 3

    @property
    def joined(self) -> bool:
        """Whether the last two entries of `mean` are a bias and a slope, and biases are 0."""
        return self.width > 0 and not self.bias_var.any()

    @property
    def width(self) -> int:
        """Length of the vector of an element."""
        return self.mean.shape[1]

    @property
    def factors(self) -> int:
        """Number of factors."""
        return self.width - 2 if self.joined else self.width

    def tastes(self) -> tuple[Floats, Floats]:
        """Return means and variances, or covariances, of the factors without bias and slope."""
        some = slice(self.factors)
        return self.mean[:, some], self.cov[:, some, some] if self.full else self.cov[:, some]

    def __len__(self) -> int:
        return len(self.bias)

    def at(self, keys: Any) -> Side:
        """Return the elements at some keys."""
        return Side(*(array[keys] for array in self.arrays()))

    def arrays(self) -> tuple[Floats, Floats, Floats, Floats]:
        """All arrays, in the order of the constructor."""
        return self.bias, self.bias_var, self.mean, self.cov

    def square(self) -> Floats:
        """E[x] E[x]', or only its diagonal if covariances are zero; flattened."""
        outer = self.mean[:, :, None] * self.mean[:, None, :] if self.full else self.mean**2
        return outer.reshape(len(self), prod(self.cov.shape[1:]))

    def spread(self) -> Floats:
        """Cov[x], or its diagonal; flattened."""
        return self.cov.reshape(len(self), prod(self.cov.shape[1:]))

    def precision(self) -> Floats:
        """Inverse of the variances, or of the covariances."""
        return np.linalg.inv(self.cov) if self.full else 1 / self.cov

    def bias_prior(self) -> NormalPrior:
        """Return q of the biases as a prior."""
        return NormalPrior(self.bias, 1 / self.bias_var)

    def factor_prior(self) -> NormalPrior:
        """Return q of the factors as a prior."""
        return NormalPrior(self.mean, self.precision())

    def draw(self, rng: np.random.Generator, width: float = 1.0) -> Side:
        """Return one draw from q of each element, with `width` times its standard deviation."""
        noise = rng.standard_normal((len(self), self.width + 1), np.float32)
        noise *= np.float32(width)
        bias = self.bias + np.sqrt(self.bias_var) * noise[:, 0]
        if self.full:
            root = np.linalg.cholesky(self.cov)
            mean = self.mean + np.einsum("nij,nj->ni", root, noise[:, 1:])
        else:
            mean = self.mean + np.sqrt(self.cov) * noise[:, 1:]
        return replace(self, bias=bias, mean=mean)


@dataclass(frozen=True, eq=False)
class EntityTable(Columns):
    """Ids and q of all users, or of all items, and the prior of an unknown one.

    Attributes
    ----------
    what
        "user" or "item".
    ids
        Their ids.
    side
        q of each.
    prior
        A single element: q of an unknown user or item.
    """

    what: str
    ids: Ids
    side: Side
    prior: Side

    def __len__(self) -> int:
        return len(self.ids)

    def columns_by_name(self) -> dict[str, NDArray[Any]]:
        """Return the id of each, and means and standard deviations of its bias and factors."""
        side = self.side
        var = np.diagonal(side.cov, axis1=1, axis2=2) if side.full else side.cov
        bias, bias_var = side.bias, side.bias_var
        if side.joined:
            bias, bias_var = side.mean[:, -2], var[:, -2]
        found = {self.what: np.asarray(self.ids), "bias": bias, "bias_sd": np.sqrt(bias_var)}
        for place in range(side.factors):
            found[f"factor_{place}"] = side.mean[:, place]
            found[f"factor_{place}_sd"] = np.sqrt(var[:, place])
        return found

    def __repr__(self) -> str:
        columns = dict(list(self.columns_by_name().items())[:WIDE])
        more = 2 * self.side.factors + 3 - WIDE
        below = f"\n... {more} more columns" if more > 0 else ""
        return text_table(list(columns), first_and_last(columns)) + below

    @cached_property
    def _order(self) -> Keys:
        return np.argsort(self.ids, kind="stable")

    def keys(self, ids: Any, unknown: str | None = None) -> Keys:
        """Return the keys of ids; -1 for unknown ids, if `unknown` is "prior".

        Calls without an argument `unknown` leave it out, and the error does not name it.
        """
        if unknown not in (None, "error", "prior"):
            raise ModelError(f"unknown must be 'error' or 'prior', not {unknown!r:.60}")
        wanted = np.atleast_1d(ids)
        try:
            keys = keys_of(self.ids, wanted, self._order)
        except RatingsError as error:
            raise UnknownError(f"{self.what}: {error}") from None
        if unknown != "prior" and (keys < 0).any():
            raise UnknownError(
                f"there is no {self.what} {wanted[np.argmax(keys < 0)]!s:.60} in the model",
                "unknown='prior' predicts as for one without any data" if unknown else "",
            )
        return keys

    def at(self, keys: Keys) -> Side:
        """Return q at some keys, and the prior at -1."""
        some = self.side.at(np.maximum(keys, 0))
        absent = keys < 0
        if absent.any():
            for array, prior in zip(some.arrays(), self.prior.arrays(), strict=True):
                array[absent] = prior[0]
        return some


def score(users: Side, items: Side) -> tuple[Floats, Floats]:
    """Return mean and variance of a + b + u . v of each row."""
    mean = users.bias + items.bias + np.einsum("rk,rk->r", users.mean, items.mean)
    second = users.square() + users.spread()
    var = users.bias_var + items.bias_var + np.einsum("rk,rk->r", second, items.spread())
    return mean, var + np.einsum("rk,rk->r", users.spread(), items.square())


def score_pairs(
    users: Side | EntityTable, user: NDArray[Any], items: Side | EntityTable, item: NDArray[Any]
) -> tuple[Floats, Floats]:
    """Return mean and variance of a + b + u . v of pairs of keys.

    Pairs are scored in blocks: with covariances a pair reads K^2 numbers of each side.
    """
    mean, var = np.empty(len(user), np.float32), np.empty(len(user), np.float32)
    for some in (slice(x, x + PAIRS) for x in range(0, len(user), PAIRS)):
        mean[some], var[some] = score(users.at(user[some]), items.at(item[some]))
    return mean, var


@jit
def dot(rows, one):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return inner products of rows with one vector, in single precision and on one thread."""
    products = np.empty(len(rows), np.float32)
    for row in range(len(rows)):
        total = np.float32(0)
        for k in range(len(one)):
            total += rows[row, k] * one[k]
        products[row] = total
    return products


def score_all(users: Side, items: Side) -> Floats:
    """Return the mean of a + b + u . v of every user with every item."""
    if len(users) == 1:  # too little work for the threads of BLAS
        products = dot(read_only(items.mean), read_only(users.mean[0]))[None]
    else:
        products = users.mean @ items.mean.T
    for bias in (users.bias[:, None], items.bias):  # 0 if biases are among the factors
        if bias.any():
            products += bias  # in place: memory bandwidth takes most of the time
    return products


def variance_all(users: Side, items: Side) -> Floats:
    """Return the variance of a + b + u . v of every user with every item."""
    var = (users.square() + users.spread()) @ items.spread().T + users.spread() @ items.square().T
    return var + users.bias_var[:, None] + items.bias_var

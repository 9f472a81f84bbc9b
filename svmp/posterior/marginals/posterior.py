"""The posterior of one variable as users read it: arrays with the model's dims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from svmp.errors import ModelError
from svmp.families.family import Array, Family
from svmp.inference.earlier import EarlierBeliefs, EarlierQ
from svmp.inference.running.seeds import Seed, generator
from svmp.network.partly_known import base_of
from svmp.network.tables import Row, text_table
from svmp.network.validation import array, shown
from svmp.posterior.marginals.rows import (
    ENTRIES,
    LARGEST,
    entry_heads,
    entry_names,
    entry_rows,
    posterior_html,
    row,
)

OTHER = {
    "sd": "std",
    "stddev": "std",
    "variance": "var",
    "covariance": "cov",
    "samples": "draw(size)",
    "sample": "draw(size)",
    "hdi": "interval(prob)",
    "values": "mean",
}
"""By attribute that a posterior does not have, the one that it has."""


@dataclass(frozen=True, eq=False)
class Posterior(EarlierQ):
    """The approximate posterior of one hidden variable.

    Attributes
    ----------
    name, dims, family
        As in the model.
    plate
        Sizes of the plate axes.
    natural
        Natural parameters, (elements, size).
    labels
        The labels along each axis of the mean, of a small array in a fit; by default its places.
    covariances
        What its variances are those of: "q", "a joint block" or "linear response".

    Its standard parameters are attributes too: `fit["tau"].alpha`. The natural parameters are
    read-only; every other array is a new one, which the caller may change.
    """

    name: str
    dims: tuple[str, ...]
    plate: tuple[int, ...]
    family: Family
    natural: Array
    labels: tuple[tuple[str, ...], ...] | None = field(default=None, kw_only=True)
    covariances: str = field(default="q", kw_only=True)

    def __post_init__(self) -> None:
        own = self.natural.view()
        own.flags.writeable = False
        object.__setattr__(self, "natural", own)

    @property
    def parameters(self) -> dict[str, Array]:
        """The standard parameters, with the model's dims."""
        return {k: self._shaped(v) for k, v in self.family.standard(self.natural).items()}

    @property
    def mean(self) -> Array:
        """E[x]; for a Categorical its probabilities, on a last axis of their own."""
        return self._shaped(self.family.mean(self.natural))

    @property
    def var(self) -> Array:
        """Variance of each entry of x."""
        return self._shaped(self.family.var(self.natural))

    @property
    def std(self) -> Array:
        """Standard deviation of each entry of x."""
        return self._shaped(self.family.std(self.natural))

    @property
    def moments(self) -> Array:
        """Expected sufficient statistics, on a last axis of their own."""
        return self._shaped(self.family.moments(self.natural))

    @property
    def cov(self) -> Array:
        """Covariance of the entries of each element, on two last axes.

        That of numbers is their variance, that of a Categorical belongs to its one-hot vector, and
        that of a Wishart has four axes.
        """
        return self._shaped(self.family.cov(self.natural))

    def quantile(self, p: ArrayLike) -> Array:
        """Return the values that each entry of x is at most with probability p.

        Parameters
        ----------
        p
            A probability, or several: the result then has their axes first.

        Returns
        -------
        Array
            The quantiles, exact for every family. Those of a vector or matrix are of its entries,
            one by one. A Categorical has none: its categories have no order.
        """
        given = probabilities(p)
        each = given.reshape(given.shape + (1,) * (1 + self.family.event_ndim))
        try:
            found = self.family.quantile(self.natural, each)
        except NotImplementedError:
            kind = type(base_of(self.family)).__name__
            raise ModelError(
                f"quantiles of the {kind} '{self.name}' are not defined; use its mean or draws"
            ) from None
        return found.reshape((*given.shape, *self.plate, *found.shape[given.ndim + 1 :]))

    def interval(self, prob: float = 0.9) -> Array:
        """Return the central interval with a probability: `lower, upper = q.interval(0.9)`.

        Parameters
        ----------
        prob
            Between 0 and 1.

        Returns
        -------
        Array
            Lower and upper ends on a first axis.
        """
        return self.quantile(tails(prob))

    def logpdf(self, x: ArrayLike) -> Array:
        """Return the log density, or log probability, of values: -inf if they are not possible.

        Parameters
        ----------
        x
            Values that broadcast with the posterior's own shape, as `q.draw(10)` does.
        """
        given = array(x)
        family, events = self.family, self.family.event_ndim
        entries = np.shape(family.mean(self.natural))[1 : 1 + events]
        if given is None or given.shape[max(given.ndim - events, 0) :] != entries:
            raise ModelError(
                f"logpdf of '{self.name}' needs numbers with the shape {(*self.plate, *entries)}, "
                f"not {shown(x)}"
            )
        cut = given.ndim - events
        try:
            shape = np.broadcast_shapes(given.shape[:cut], self.plate)
            wide = np.broadcast_to(given, (*shape, *entries))
            if shape[len(shape) - len(self.plate) :] != self.plate:
                raise ValueError
        except ValueError:
            raise ModelError(
                f"logpdf of '{self.name}' needs the shape {(*self.plate, *entries)}, or axes "
                f"before it, not {given.shape}"
            ) from None
        lead = shape[: len(shape) - len(self.plate)]
        found = family.log_density(self.natural, wide.reshape(*lead, len(self.natural), *entries))
        return np.asarray(found).reshape(shape)

    def entropy(self) -> Array:
        """Entropy of each element, in nats."""
        return self._shaped(self.family.entropy(self.natural))

    def draw(self, size: int = 1, seed: Seed = None) -> Array:
        """Return independent draws from q, with a new first axis.

        Parameters
        ----------
        size
            Number of draws.
        seed
            By default new random numbers in each call. A whole number gives the same draws each
            time; variables of different names have different random numbers under the same seed.
            A `numpy.random.Generator` is used as it is.
        """
        draws = self._draws(generator(seed, self.name), draw_count(size))
        return draws.reshape((size, *self.plate, *draws.shape[2:]))

    def _draws(self, rng: np.random.Generator, size: int) -> Array:
        """Return draws of all elements, (size, elements, ...)."""
        return self.family.draw(self.natural, rng, size)

    def _shaped(self, values: Array) -> Array:
        return np.array(values).reshape((*self.plate, *np.shape(values)[1:]))

    def __getattr__(self, name: str) -> Array:
        if name.startswith("_") or name not in self.family.parameters:
            hint = f"; use .{OTHER[name]}" if name in OTHER else ""
            raise AttributeError(f"a posterior has no attribute '{name}'{hint}")
        return self.parameters[name]

    def __repr__(self) -> str:
        sds = "" if self.covariances == "q" else f", sds by {self.covariances}"
        kind = type(base_of(self.family)).__name__
        head = f"<q({self.name}): {kind}, dims {self.dims}{sds}>"
        rows = self.entry_rows() if self.is_small() else []
        return f"{head}\n\n{text_table(entry_heads(0.9), rows)}" if rows else head

    def is_small(self, entries: int = ENTRIES) -> bool:
        """Return whether it has at most this number of entries, each with a row in tables."""
        return len(self.natural) <= entries and self.mean.size <= entries

    def summary_row(self, prob: float = 0.9) -> Row:
        """Return its row in the table of `fit.summary()`, as text.

        Intervals are left out for a Categorical, and for more than 100,000 entries.
        """
        mean = self.mean
        ends = self._ends(prob) if mean.size <= LARGEST else None
        kind = type(base_of(self.family)).__name__
        return row(self.name, kind, self.dims, mean, self.std, ends)

    def entry_rows(self, prob: float = 0.9) -> list[Row]:
        """Return name, mean, sd and interval of each entry, as text."""
        mean = self.mean
        places = tuple(tuple(map(str, range(size))) for size in mean.shape)
        names = entry_names(self.name, self.labels or places)
        return entry_rows(names, mean, self.std, self._ends(prob) if mean.size else None)

    def _ends(self, prob: float) -> Array | None:
        """Return the ends of the intervals; a Categorical has none."""
        return None if base_of(self.family).nominal else self.interval(prob)

    def _repr_html_(self) -> str:
        entries = self.entry_rows() if self.is_small() else []
        return posterior_html(self.summary_row(), entries, self.parameters, 0.9, self.covariances)


def draw_count(size: Any, name: str = "size") -> int:
    """Return a number of draws, or refuse it; `name` is that of the argument."""
    whole = isinstance(size, Integral) and not isinstance(size, bool)
    if not whole or size < 0:
        raise ModelError(f"{name} must be a whole number of at least 0, not {shown(size)}")
    return int(size)


def probabilities(p: Any) -> Array:
    """Return the probabilities of quantiles as an array, or refuse them."""
    given = array(p)
    if given is None or given.dtype == bool or not ((given >= 0) & (given <= 1)).all():
        raise ModelError(f"quantiles need probabilities between 0 and 1, not {shown(p)}")
    return given.astype(np.float64)


def tails(prob: Any) -> Array:
    """Return the probabilities of the ends of a central interval.

    >>> tails(0.9)
    array([0.05, 0.95])
    """
    given = array(prob)
    if given is None or given.ndim or given.dtype == bool or not 0 < float(given) < 1:
        raise ModelError(f"an interval needs a probability between 0 and 1, not {shown(prob)}")
    return np.array([0.5 * (1 - float(given)), 0.5 * (1 + float(given))])


@dataclass(frozen=True, eq=False)
class Posteriors(EarlierBeliefs[Posterior]):
    """Posteriors by variable, some of which are computed on first access.

    Attributes
    ----------
    names
        The hidden variables, as declared.
    stored
        The posteriors of stored variables.
    make
        Computes the posterior of any other variable.
    """

    names: list[str]
    stored: Mapping[str, Posterior]
    make: Callable[[str], Posterior]
    _made: dict[str, Posterior] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Posterior:
        if name in self.stored:
            return self.stored[name]
        if name not in self.names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self.make(name)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

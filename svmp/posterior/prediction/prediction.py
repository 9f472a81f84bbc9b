"""A prediction: the distribution of rows under q, as users read it.

Rows are computed in blocks, so that memory is bounded; each block has draws of its own of what its
rows depend on. Where nothing needs to be drawn, all is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from svmp.errors import ModelError
from svmp.families.family import Array, Bools
from svmp.inference.running.seeds import Seed, generator
from svmp.network.grid import Ints
from svmp.network.keywords import known_keywords
from svmp.network.tables import Columns, html_table
from svmp.network.validation import array, shown
from svmp.network.variable import Variable
from svmp.posterior.marginals.posterior import draw_count, probabilities, tails
from svmp.posterior.prediction.blocks import is_single
from svmp.posterior.prediction.closed import closed_moments
from svmp.posterior.prediction.known import Known
from svmp.posterior.prediction.linearised import moved
from svmp.posterior.prediction.mixtures import RowMixture
from svmp.posterior.prediction.simulation import Simulation, check_finite, draw, family_of, needed
from svmp.posterior.prediction.targets import KINDS, Target, integrable, marginal_of
from svmp.posterior.tables.entries import Dim
from svmp.posterior.tables.frames import entries_frame, index_of

AT_ONCE = 1 << 21
"""Most numbers in the arrays of one block of rows."""
SHOWN = 10_000
"""Most entries of a prediction that a notebook computes to show them."""


@dataclass(frozen=True, eq=False)
class Prediction(Columns):
    """The distribution of the rows of one variable, given what a fit has learned.

    Attributes
    ----------
    name, dims
        The variable, and its dims.
    labels
        Labels along those of its dims that have them.
    noise
        Whether the rows are predicted, or their means given their parents.
    draws, seed
        Number of draws of the parents, where these cannot be integrated over, and their seed.
    covariances
        Where the variances and covariances of hidden variables are from: "q", "a joint
        block" or "linear response".
    """

    name: str
    dims: tuple[str, ...]
    labels: Mapping[str, Sequence[Any]]
    noise: bool
    draws: int
    seed: int
    covariances: str
    _known: Known

    @property
    def _variable(self) -> Variable:
        return self._known.variables[self.name]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the mean; a Categorical has one more axis, its probabilities."""
        axis = self._variable.category_axis
        return self._variable.shape if axis is None else (*self._variable.shape, axis[1])

    @property
    def mean(self) -> Array:
        """E[y]; for a Categorical its probabilities, on a last axis of their own."""
        return self._moments[0].copy()

    @property
    def var(self) -> Array:
        """Variance of each entry of y; infinite where it does not exist."""
        return self._moments[1].copy()

    @property
    def std(self) -> Array:
        """Standard deviation of each entry of y."""
        return np.asarray(np.sqrt(self._moments[1]))

    @property
    def exact(self) -> bool:
        """Whether mean and variance are closed forms or integrals, and not averages over draws."""
        return self._closed is not None or not self._simulation(self._rows).varying

    def quantile(self, p: ArrayLike) -> Array:
        """Return the values that each entry of y is at most with probability p.

        Parameters
        ----------
        p
            A probability, or several: the result then has their axes first.
        """
        given = probabilities(p)
        if self._variable.category_axis is not None and self.noise:
            raise ModelError(
                f"quantiles of the Categorical '{self.name}' are not defined: its categories have "
                "no order; use mean, its probabilities, or noise=False"
            )
        found = np.empty((given.size, self._variable.size, *self._entries))
        for rows, block in self._blocks():
            found[:, rows] = np.stack([block.quantile(float(x)) for x in given.ravel()])
        return found.reshape((*given.shape, *self.shape))

    @known_keywords
    def interval(self, prob: float = 0.9) -> Array:
        """Return the central interval with a probability: `lower, upper = p.interval(0.9)`.

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

    def cdf(self, x: ArrayLike) -> Array:
        """Return the probability that each entry of y is at most x.

        Parameters
        ----------
        x
            Numbers that broadcast to the shape of the prediction.
        """
        return self._at(x, "cdf", RowMixture.cdf)

    def logpdf(self, x: ArrayLike) -> Array:
        """Return the log predictive density of values, entry by entry; of counts, probabilities.

        Its mean over rows that were left out is a score that sees the uncertainty of q. A value
        that is NaN has NaN.

        Parameters
        ----------
        x
            Numbers that broadcast to the shape of the prediction; categories of a Categorical.
        """
        variable = self._variable
        if variable.category_axis is not None and self.noise:
            codes = self._numbers(x, "logpdf", variable.shape)
            there = ~np.isnan(codes)
            possible = there & variable.family.in_support(np.where(there, codes, 0.0))
            chosen = np.where(possible, codes, 0.0).astype(np.int64)[..., None]
            with np.errstate(divide="ignore"):
                found = np.log(np.take_along_axis(self.mean, chosen, axis=-1)[..., 0])
            return np.where(possible, found, np.where(there, -np.inf, np.nan))
        if type(variable.conditional.factor) not in KINDS or not self.noise:
            what = "a mean" if not self.noise else f"the {type(variable.family).__name__}"
            raise ModelError(f"the density of {what} '{self.name}' is not known; use draws")
        return self._at(x, "logpdf", RowMixture.log_density)

    def _numbers(self, x: ArrayLike, what: str, shape: tuple[int, ...]) -> Array:
        given = array(x)
        try:
            if given is None:
                raise ValueError
            return np.broadcast_to(given.astype(np.float64), shape)
        except ValueError:
            raise ModelError(
                f"{what} of '{self.name}' needs numbers of shape {shape}, not {shown(x)}"
            ) from None

    def _at(self, x: ArrayLike, what: str, function: Callable[[RowMixture, Array], Array]) -> Array:
        """Return a function of each row at some numbers, NaN where they are NaN."""
        each = self._numbers(x, what, self.shape).reshape(-1, *self._entries)
        found = np.empty(each.shape)
        for rows, block in self._blocks():
            part = each[rows]
            with np.errstate(all="ignore"):
                values = function(block, np.where(np.isnan(part), 0.0, part))
            found[rows] = np.where(np.isnan(part), np.nan, values)
        return found.reshape(self.shape)

    @known_keywords
    def draw(self, size: int = 1, seed: Seed = None) -> Array:
        """Return joint draws of all rows, with a new first axis; rows of a draw share parents.

        Parameters
        ----------
        size
            Number of draws.
        seed
            By default new random numbers in each call; a whole number gives the same draws each
            time.
        """
        variable, count, rows = self._variable, draw_count(size), self._rows
        rng = generator(seed, self.name, "draw")
        events = variable.shape[len(variable.plate.shape) :]
        out = np.empty((count, variable.size, *events))
        step = variable.conditional.chunk(variable.family.size)
        need, own = needed(self._known, self.name, rows), np.flatnonzero(self._own)
        joint = any(self.name in block.place for block in self._known.blocks)
        if joint and len(own):  # drawn together with what new elements depend on
            need = replace(need, known={**need.known, self.name: own})
        elif len(own):
            natural = self._known.natural[self.name][own]
            out[:, own] = family_of(variable, own).draw(natural, rng, count)
        simulation = Simulation(self._known, need)
        linear = [(b, b.joint.covariance.draw(rng, count)) for b in self._known.blocks if b.linear]
        with np.errstate(all="ignore"):
            for place, q in enumerate(simulation.draws(count, rng)):
                for start in range(0, len(rows), step):
                    part = rows[start : start + step]
                    natural = variable.conditional.to_child(q, part)
                    for block, drawn in linear:
                        shift = block.shift(variable.conditional, q, need.known, drawn[place])
                        natural = moved(variable.conditional, natural, shift[part])
                    family = family_of(variable, part)
                    values = draw(family, natural, rng) if self.noise else family.mean(natural)
                    if not self.noise and variable.category_axis is not None:
                        raise ModelError(
                            f"the mean of the Categorical '{self.name}' is its probabilities; draw "
                            "them by fit.draw, or give noise=True"
                        )
                    out[place, part] = values
                if joint and len(own):
                    numbers = q.moments[self.name][own, : max(1, int(np.prod(events)))]
                    out[place, own] = numbers.reshape(len(own), *events)
        check_finite(self.name, out)
        return out.reshape(count, *variable.shape)

    @known_keywords
    def to_frame(self, prob: float = 0.9, backend: str = "pandas") -> Any:
        """Return a data frame with a row for each entry: its labels, mean, sd and interval.

        Parameters
        ----------
        prob
            Probability of the intervals; a Categorical has none.
        backend
            "pandas", "polars" or "pyarrow".
        """
        numbers = self._statistics(prob)
        return entries_frame(self.name, self._axes, numbers, backend, self.covariances)

    def _statistics(self, prob: float) -> dict[str, Array]:
        """Return mean, sd and the ends of the interval, which a Categorical does not have."""
        tails(prob)
        numbers = {"mean": self.mean, "sd": self.std}
        if len(self.dims) == len(self.shape):
            numbers["lower"], numbers["upper"] = self.interval(prob)
        return numbers

    @property
    def _axes(self) -> list[Dim]:
        """The axes of the mean, with their labels; those of a Categorical end with categories."""
        found: list[Dim] = []
        for name, size in zip([*self.dims, self._category], self.shape, strict=False):
            known = self.labels.get(name)
            twice = any(other.name == name for other in found)
            labels = None if known is None else [*known]
            found.append(Dim(f"{name}_2" if twice else name, size, labels))
        return found

    def columns_by_name(self) -> dict[str, NDArray[Any]]:
        axes = self._axes
        columns = dict(zip([a.name for a in axes], index_of(axes, "pandas"), strict=True))
        return columns | {k: np.ravel(v) for k, v in self._statistics(0.9).items()}

    def _caption(self) -> str:
        what = "prediction" if self.noise else "prediction of the mean"
        return f"{what} of {self.name}, 90% interval, covariances of {self.covariances}"

    def _repr_html_(self) -> str:
        if math.prod(self.shape) > SHOWN:
            return html_table((), (), self._caption())
        return super()._repr_html_()

    @property
    def _category(self) -> str:
        """The dim of the categories of a Categorical, or a name for it."""
        axis = self._variable.category_axis
        dim = None if axis is None else axis[0]
        return f"{self.name}_category" if dim is None or dim in self.dims else dim

    @property
    def _entries(self) -> tuple[int, ...]:
        """Axes of the entries of a row."""
        return self.shape[len(self._variable.plate.shape) :]

    @cached_property
    def _own(self) -> Bools:
        """Which rows have a q of their own."""
        return self._known.own(self.name)

    @property
    def _rows(self) -> Ints:
        """The rows that have none."""
        return np.flatnonzero(~self._own)

    @cached_property
    def _closed(self) -> tuple[Array, Array] | None:
        return closed_moments(self._known, self.name, self._rows, self.noise)

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        mean, var = (np.empty((self._variable.size, *self._entries)) for _ in range(2))
        if self._closed is not None:
            mean[self._rows], var[self._rows] = self._closed
        for rows, block in self._blocks(closed=self._closed is not None):
            mean[rows], var[rows] = block.mean, block.var
        return mean.reshape(self.shape), var.reshape(self.shape)

    def _simulation(self, rows: Ints) -> Simulation:
        need = needed(self._known, self.name, rows)
        chosen = integrable(self._known, need, self.name)
        return Simulation(self._known, need, chosen, stratified=True)

    def _blocks(self, closed: bool = False) -> Iterator[tuple[Ints, RowMixture]]:
        """Yield rows and their mixtures over draws; only those with a q of their own if `closed`.

        Parameters
        ----------
        closed
            Whether the other rows have a closed form.
        """
        variable, rows = self._variable, self._rows
        given = variable.conditional
        step = max(1, AT_ONCE // max(1, self.draws * given.components * math.prod(self._entries)))
        for start in range(0, 0 if closed else len(rows), step):
            part = rows[start : start + step]
            yield part, self._block(part, generator(self.seed, self.name, start))
        own = np.flatnonzero(self._own)
        for start in range(0, len(own), step):
            part = own[start : start + step]
            rng, natural = generator(self.seed, self.name, "q"), self._known.natural[self.name]
            kind, arrays, _ = marginal_of(family_of(variable, part), natural[part], self.draws, rng)
            each = len(arrays[0])
            yield part, RowMixture(kind(*arrays), np.full((each, len(part)), 1 / each))

    def _block(self, rows: Ints, rng: np.random.Generator) -> RowMixture:
        given, simulation = self._variable.conditional, self._simulation(rows)
        varying = simulation.varying
        several = (b for b in self._known.blocks if not is_single(b, simulation.needed.known))
        target = Target(given, simulation.integrated, varying, self.noise, rng, {}, tuple(several))
        found, weights = [], []
        count = self.draws if varying or target.is_drawn else 1
        with np.errstate(all="ignore"):
            for q in simulation.draws(count, rng):
                kind, parameters, nodes = target.parameters(q, rows)
                found.append([by_place(a, given.components, nodes is not None) for a in parameters])
                chosen = target.weights(q, rows)
                each = np.ones((1, len(rows))) if chosen is None else chosen.T
                if nodes is not None:
                    at = by_place(nodes, given.components, True).reshape(len(each), -1, len(rows))
                    each = (each[:, None] * at).reshape(-1, len(rows))
                weights.append(each)
        arrays = [np.concatenate(part) for part in zip(*found, strict=True)]
        for parameter in arrays:
            check_finite(self.name, parameter)
        return RowMixture(kind(*arrays), np.concatenate(weights) / count)

    def __repr__(self) -> str:
        what = "prediction" if self.noise else "prediction of the mean"
        return (
            f"<{what} of {self.name}: dims {self.dims}, shape {self.shape}, covariances of "
            f"{self.covariances}>"
        )


def by_place(values: Array, components: int, nodes: bool) -> Array:
    """Return values of sub-rows, which may have nodes on their second axis.

    The result has the axes (components and nodes, rows, entries).
    """
    each = values.shape[1] if nodes else 1
    rest = values.shape[1 + nodes :]
    found = values.reshape(-1, components * each, *rest)
    return found.swapaxes(0, 1)

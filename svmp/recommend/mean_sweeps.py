"""Sweeps over the means of users and items, between sweeps in which covariances are updated.

If factors have covariances, a sweep reads K (K + 1) / 2 of them for every rating. They change
little after the first sweeps, whereas the means still have far to go. So a few sweeps update, with
the covariances and the noise as they are, the means of vectors, and the means and the precisions of
their priors. Priors have exact coordinate updates. Means take a step along one direction
(kernels/vectors/mean_steps.py), over-relaxed by a factor that grows to MOST. Both raise the bound.

These sweeps are no iterations of inference/engine.py, which would have to read and write q as
natural parameters and moments, 2 (K + K^2) numbers of each user and item, and to sum covariances
over ratings, in each of them. Here that is done once for all sweeps between two iterations. On
MovieLens 1M with K = 32 and two threads, a sweep takes 24 ms, reading q and its sums 92, writing it
7, and an iteration of the engine 211.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from svmp.inference.state.state import State
from svmp.kernels.machine.sorting import by_key, read_only, take
from svmp.kernels.machine.threads import share, use_threads
from svmp.kernels.vectors import means
from svmp.kernels.vectors.mean_steps import move_means
from svmp.kernels.vectors.means import Singles, SortedRows, padded
from svmp.network.network import Network
from svmp.ratings import Ratings
from svmp.recommend.network import BIAS_AND_SLOPE, VectorPrior

BEGIN, RAMP, MOST = 1.2, 0.1, 1.8
"""Over-relaxation of the first sweep over means, its growth with each, and its maximum."""


def relaxation(sweeps: int) -> float:
    """Return the factor of over-relaxation after some sweeps over means.

    >>> relaxation(0), relaxation(100)
    (1.2, 1.8)
    """
    return min(BEGIN + RAMP * sweeps, MOST)


@dataclass(frozen=True, eq=False)
class SortedPairs:
    """The users and items of ratings, sorted by either.

    Attributes
    ----------
    begin, order
        By "u" and "v": where the rows of each key begin, and their order; None if it does not
        change.
    other, owner
        By "u" and "v": for each row in that order the key of the other side, and the user.
    """

    begin: dict[str, NDArray[np.int64]]
    order: dict[str, NDArray[Any] | None]
    other: dict[str, NDArray[np.int32]]
    owner: dict[str, NDArray[np.int32]]

    @classmethod
    def of(cls, ratings: Ratings) -> Self:
        """Sort the rows of ratings."""
        user, item = (np.asarray(keys, np.int32) for keys in (ratings.user, ratings.item))
        found = {"u": by_key(user, ratings.users), "v": by_key(item, ratings.items)}
        order = {name: rows for name, (_, rows) in found.items()}
        owner = {name: read_only(take(user, rows)) for name, rows in order.items()}
        other = {"u": read_only(take(item, order["u"])), "v": owner["v"]}
        return cls({name: begin for name, (begin, _) in found.items()}, order, other, owner)

    def rows(self, name: str, target: Any, noise: NDArray[Any]) -> SortedRows:
        """Return the rows sorted by one key, with their ratings and the precision of the noise."""
        weight = np.asarray(noise, np.float32)
        weight = weight[self.owner[name]] if len(weight) > 1 else weight.repeat(len(target))
        values = read_only(take(np.asarray(target), self.order[name], np.float32))
        return SortedRows(self.begin[name], self.other[name], values, read_only(weight))


@dataclass(frozen=True, eq=False)
class SidePrior:
    """q of the mean and of the precision of the vectors of one side, and their priors.

    Attributes
    ----------
    prior
        Their priors.
    seen
        Whether each element has ratings; the others do not count.
    variances
        Sum of the variances of the vectors.
    mean, mean_var, alpha, beta
        q of the mean, Normal(mean, mean_var), and of the precision, Gamma(alpha, beta).
    """

    prior: VectorPrior
    seen: NDArray[np.bool_]
    variances: NDArray[Any]
    mean: NDArray[Any]
    mean_var: NDArray[Any]
    alpha: NDArray[Any]
    beta: NDArray[Any]

    def update(self, lines: Singles) -> None:
        """Update the precision, then the mean, given the means of the vectors."""
        vectors, prior = lines[self.seen, : len(self.mean)], self.prior
        total, square = vectors.sum(0, np.float64), (vectors**2).sum(0, np.float64)
        count, mean = len(vectors), self.mean
        second = square - 2 * mean * total + count * (mean**2 + self.mean_var) + self.variances
        self.beta[:] = prior.beta + second / 2
        precision = self.alpha / self.beta
        self.mean_var[:] = 1 / (prior.of_mean + count * precision)
        self.mean[:] = self.mean_var * (prior.of_mean * prior.mean + precision * total)


@dataclass(frozen=True, eq=False)
class MeanSweeps:
    """The means of a q whose covariances stay as they are.

    Attributes
    ----------
    rows, lines, triangles, fixed
        By "u" and "v": rows sorted by that key, means, covariances, and sums of the other side's
        covariances.
    priors
        By "u" and "v": q of the priors.
    """

    rows: dict[str, SortedRows]
    lines: dict[str, Singles]
    triangles: dict[str, Singles]
    fixed: dict[str, Singles]
    priors: dict[str, SidePrior]

    @classmethod
    def of(cls, state: State, pairs: SortedPairs, target: Any, share_of_prior: float) -> Self:
        """Read q; its vectors have covariances."""
        moments, lines, triangles, priors = state.q.moments, {}, {}, {}
        rows = {name: pairs.rows(name, target, moments["noise"][:, 0]) for name in ("u", "v")}
        for name in rows:
            size, width = len(moments[name]), len(moments[f"of_{name}"])
            lines[name] = np.zeros((size, padded(width)), np.float32)
            triangles[name] = np.zeros((size, padded(width * (width + 1) // 2)), np.float32)
            share(means.read_side, moments[name], width, lines[name], triangles[name])
            seen = np.diff(rows[name].begin) > 0
            of_mean, natural = moments[f"mean_{name}"][0], state.q.natural[f"of_{name}"]
            diagonal = np.arange(1, width + 1).cumsum() - 1
            priors[name] = SidePrior(
                VectorPrior.of(name, size, width - BIAS_AND_SLOPE, share_of_prior),
                seen,
                triangles[name][seen][:, diagonal].sum(0, np.float64),
                of_mean[:width].copy(),
                of_mean[width :: width + 1] - of_mean[:width] ** 2,
                natural[:, 1] + 1,
                -natural[:, 0],
            )
        fixed = {name: np.empty_like(triangles[name]) for name in rows}
        for name, other in (("u", "v"), ("v", "u")):
            share(means.sum_triangles, rows[name], triangles[other], fixed[name])
        return cls(rows, lines, triangles, fixed, priors)

    def sweep(self, omega: float) -> None:
        """Update the prior and then the means of the items, and those of the users."""
        for name, other in (("v", "u"), ("u", "v")):
            prior, own = self.priors[name], self.lines[name]
            prior.update(own)
            precision = prior.alpha / prior.beta
            spread = self.fixed[name], self.triangles[name]
            arguments = self.lines[other], *spread, precision, precision * prior.mean, omega, own
            share(move_means, self.rows[name], *arguments)

    def write(self, network: Network, state: State) -> None:
        """Write the means to q, in place."""
        q = state.q
        for name, prior in self.priors.items():
            width, lines = len(prior.mean), self.lines[name]
            share(means.write_side, lines, width, q.natural[name], q.moments[name])
            of_mean, of_precision = (network.hidden[f"{p}_{name}"] for p in ("mean", "of"))
            natural = of_mean.family.natural(mu=prior.mean, tau=np.diag(1 / prior.mean_var))
            network.move(q, of_mean.name, np.arange(1), natural.reshape(1, -1))
            natural = of_precision.family.natural(alpha=prior.alpha, beta=prior.beta)
            network.move(q, of_precision.name, np.arange(width), natural)
        q.means.clear()
        q.version += 1


def sweep_means(
    network: Network,
    state: State,
    pairs: SortedPairs,
    target: Any,
    weight: float,
    omegas: list[float],
    threads: int | None,
) -> None:
    """Sweep over the means of q, once with each of some factors of over-relaxation."""
    with np.errstate(all="ignore"), use_threads(threads, tell=False):
        sweeps = MeanSweeps.of(state, pairs, target, weight)
        for omega in omegas:
            sweeps.sweep(omega)
        sweeps.write(network, state)

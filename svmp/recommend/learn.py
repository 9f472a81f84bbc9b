"""Fit the network of ratings, with early stopping on held-out ratings (stages.py).

Rows are sorted once for all stages: from one to the next only the values change, and networks with
the same rows share the order.

To limit the influence of outliers, from the second stage on residuals are clipped at CUT standard
deviations, which is Huber's loss instead of a square.

If ratings are skewed, q is above or below their mean: low ratings of users who mostly give the
highest are clipped, and raise the noise of these users. Expected ratings minimise the squared error
if they are right on average, so in the end the mean residual is added to the offset.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.fitting.fit import fit
from svmp.fitting.online import Online
from svmp.inference.methods import FullVB
from svmp.inference.running.stopping import Interrupt, catch_interrupt
from svmp.inference.steps import Constant
from svmp.inference.updaters.setup import replace_observed, share_sorted_rows
from svmp.kernels.machine.threads import use_threads
from svmp.kernels.vectors.ahead import begin_to_compile_vectors
from svmp.models.factorization import Covariance
from svmp.network.network import Network
from svmp.posterior.marginals.posterior import Posterior
from svmp.posterior.result.result import Fit
from svmp.ratings import Ratings
from svmp.recommend.bias_sweeps import BiasSweeps
from svmp.recommend.mean_sweeps import SortedPairs, relaxation, sweep_means
from svmp.recommend.network import BIAS_AND_SLOPE, FIRM, Form, Noise, network, sides
from svmp.recommend.residuals import clipped, residuals
from svmp.recommend.side import Side, score_pairs
from svmp.recommend.spread import Spread
from svmp.recommend.stages import Search, Stage, StageRecord, search_best, status_of
from svmp.recommend.starts import MANY, bias_start, spectral_start, start, vector_start

BIASES = 40
"""Minimum number of sweeps without factors, which are cheap."""
CUT = 2.5
"""Residuals are clipped at this number of standard deviations of their user's noise."""
LAST = 4
"""Sweeps over all ratings, after those without the held-out ratings; at most half of all."""
RARELY = 10**9
"""Iterations between exact bounds: only the last is needed."""
FEW_MEANS, MEANS = 3, 8
"""Sweeps over means after each sweep, if factors have covariances: FEW_MEANS, one more for every
four factors, and at most MEANS. With K = 5 they take half of the time of a sweep, with K = 32 a
fifth."""
SPARSE, NUMBERS, WORK = 4, 15_000_000, 1_500_000_000
"""With covariance="auto" factors have covariances if vectors have at most SPARSE entries for each
rating, covariances at most NUMBERS entries, and all ratings together read at most WORK of these:
more would be slow."""
SLOW = 1e-3
"""Relative decrease of the held-out error below which a run with covariances stops."""
FEW = 35_000
"""Ratings, times the entries of a vector, from which on a fit uses the loops of the engine. With
2,000 ratings and K = 5 it takes 0.13 s without them; with them 0.1 s, after 15 s of compiling."""


class Learned(NamedTuple):
    """q in the units of the ratings.

    Attributes
    ----------
    users, items
        q of each user and item.
    any_user, any_item
        q of an unknown user or item.
    noise
        Variance of the noise, one for all or one per user.
    spread
        Distribution of the errors of the held-out ratings, after the shift.
    shift
        Mean residual of the ratings, which is to be added to the offset.
    fit, sweeps
        The final fit, and the total number of sweeps.
    status
        How the fit ended, in words.
    stages
        The stages before that fit.
    """

    users: Side
    items: Side
    any_user: Side
    any_item: Side
    noise: Any
    spread: Spread
    shift: float
    fit: Fit
    sweeps: float
    status: str
    stages: tuple[StageRecord, ...]


class LearnSettings(NamedTuple):
    """Parameters of `RatingModel` that `learn` needs, by the same names."""

    factors: int
    covariance: Form
    noise: Noise
    max_sweeps: float
    tol: float
    seed: int
    threads: int | None
    progress: bool | None


def learn(
    ratings: Ratings, held: NDArray[np.bool_], offset: float, settings: LearnSettings
) -> Learned:
    """Fit the network to ratings, minus the offset and in units of their standard deviation.

    The ratings at `held` are held out to decide when to stop, and to learn how far ratings are from
    their predictions; a few sweeps over all ratings come last.
    """
    factors, _, noise, max_sweeps, tol, seed, threads, progress = settings
    form = form_for(settings, ratings, bool(held.any()))
    scale = float(ratings.rating.std(dtype=np.float64)) or 1.0
    unit = (ratings.rating - offset) / scale
    table = Ratings(ratings.user, ratings.item, unit, ratings.user_ids, ratings.item_ids)
    differ, searched = bool(np.ptp(unit)), bool(held.any())
    most = math.ceil(max_sweeps)
    last, weight, sweeps, best, rows = most, FIRM, 0, None, table
    records: list[StageRecord] = []
    search: Search[Any] | None = None
    init: Any
    if most == 1 and searched:
        factors, init = 0, bias_start(table, most)  # a single sweep hardly moves factors
    else:
        init = start(table.users, table.items, differ, factors, form, seed, spectral=searched)
    if most > 1 and searched:
        last = min(LAST, most // 2)
        parts = table.take(np.flatnonzero(~held)), table.take(np.flatnonzero(held))
        search = SEARCHES[form](form, *parts, settings)
        with catch_interrupt() as interrupt:
            try:
                best, sweeps = search_best(search, factors, init, most - last, interrupt)
            finally:
                search.close()
        init, weight, factors = best.posteriors, best.weight, best.factors
        records = search.records
        with use_threads(threads, progress is not False):
            rows = clipped(table, init, CUT)
    options: Any = {"bound_every": RARELY, "tol": tol, "seed": seed, "threads": threads}
    options["kernels"] = uses_loops(settings, len(ratings))
    model = Network(network(rows, factors, form, noise, weight))
    found = fit(model, FullVB(), init=init, max_sweeps=last, progress=progress, **options)
    with use_threads(threads, progress is not False):
        shift = mean_residual(table, found.posteriors)
    spread = Spread.normal()
    if best is not None:
        std = std_of(best.posteriors, parts[1])
        spread = spread_of(best.errors - shift, std, found.posteriors, parts[1])
    status = status_of(search, most - last - sweeps, found.status)
    sweeps += found.iterations
    return learned(found, scale, form == "full", spread, shift, sweeps, status, records)


def form_for(settings: LearnSettings, ratings: Ratings, held: bool) -> Covariance:
    """Return the form of q of the factors; `held` tells whether ratings are held out.

    If it is not given, factors have covariances where these fit into memory and solving for them
    does not take much longer than reading the ratings; and if there are sweeps enough for them to
    converge. They predict better on sparse ratings too, so that little would be gained by fitting
    both forms and comparing them on held-out ratings.
    """
    if not settings.factors:
        return "diagonal"
    if settings.covariance != "auto":
        return settings.covariance
    width = settings.factors + BIAS_AND_SLOPE
    entries = (ratings.users + ratings.items) * width
    cheap = entries <= SPARSE * len(ratings) and entries * width <= NUMBERS
    cheap = cheap and len(ratings) * width**2 <= WORK
    enough = held and settings.max_sweeps >= MANY
    return "full" if cheap and enough else "diagonal"


def uses_loops(settings: LearnSettings, ratings: int) -> bool:
    """Return whether a fit to this many ratings uses compiled loops."""
    return ratings * (settings.factors + BIAS_AND_SLOPE) >= FEW


@dataclass
class TableSearch(Search[Online]):
    """Early stopping with all rows in memory.

    Attributes
    ----------
    form
        The form of q of the factors.
    rows, rest
        Training rows and held-out rows.
    settings
        How to fit.
    """

    form: Covariance
    rows: Ratings
    rest: Ratings
    settings: LearnSettings
    biases: ClassVar[int] = BIASES
    _networks: dict[tuple[int, float], Network] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        super().__init__()
        self.tol, self.progress = self.settings.tol, self.settings.progress
        self.loops = uses_loops(self.settings, len(self.rows) + len(self.rest))
        with use_threads(self.settings.threads, self.progress is not False):
            self.pairs = SortedPairs.of(self.rows)

    def begin(self, factors: int, init: Mapping[str, Any]) -> Online:
        tell, seed, threads = self.progress is not False, self.settings.seed, self.settings.threads
        if not factors:
            init = bias_start(self.rows, self.settings.max_sweeps)
            return BiasSweeps(Constant(1.0), seed, init, threads, tell=tell, pairs=self.pairs)
        with use_threads(threads, tell):
            init = {**init, **spectral_start(self.rows, init, factors, seed)}
        init = vector_start(init, factors)
        return Online(Constant(1.0), seed, init, threads, tell=tell, kernels=self.loops)

    def sweep(
        self, run: Online, factors: int, weight: float, sweeps: int, interrupt: Interrupt
    ) -> Stage:
        with use_threads(self.settings.threads, self.progress is not False):
            model, rows = self._network(run, factors, weight)
        for _ in range(sweeps):
            run.advance(model)
            if interrupt.pressed:
                break
            if factors:
                self.sweep_means(run, model, rows, weight)
        return Stage(run.posteriors, factors, weight, self.errors(run.posteriors))

    def _network(self, run: Online, factors: int, weight: float) -> tuple[Network, Ratings]:
        """Return the network of the training rows, and these, clipped at the q of a run."""
        rows = self.rows if run.state is None else clipped(self.rows, run.posteriors, CUT)
        known = self._networks.get((factors, weight))
        if known is not None:
            replace_observed(known, "r", rows.rating)
            return known, rows
        found = Network(network(rows, factors, self.form, self.settings.noise, weight))
        for other in self._networks.values():
            share_sorted_rows(found, other)
            break
        self._networks[factors, weight] = found
        return found, rows

    def errors(self, q: Mapping[str, Posterior]) -> NDArray[np.float32]:
        """Return the errors of the held-out ratings."""
        with use_threads(self.settings.threads, self.progress is not False):
            return residuals(self.rest, q)

    def sweep_means(self, run: Online, model: Network, rows: Ratings, weight: float) -> None:
        """Sweep over means, where that is cheaper than a sweep."""

    def close(self) -> None:
        """Release the sorted rows, rather than leave them to the garbage collector."""
        for one in self._networks.values():
            one.release()
        self._networks.clear()

    def kept(self, stage: Stage) -> Stage:
        q = {n: replace(p, natural=p.natural.copy()) for n, p in stage.posteriors.items()}
        return stage._replace(posteriors=q)


@dataclass
class VectorSearch(TableSearch):
    """Early stopping if factors have covariances.

    Sweeps over means follow each sweep but the first. They converge in few sweeps, so that stages
    are short, the weight of the prior is chosen after the second, and there are few of them.
    """

    first: ClassVar[int] = 1
    patient: ClassVar[int] = 2  # in the first, before any sweep over means, factors hardly move
    trial: ClassVar[int] = 2
    limit: ClassVar[float] = 18

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tol = max(self.tol, SLOW)
        if self.loops:
            with use_threads(self.settings.threads, self.progress is not False):
                begin_to_compile_vectors()

    def sweep_means(self, run: Online, model: Network, rows: Ratings, weight: float) -> None:
        begun = run.iteration - 2
        if begun >= 0 and run.state is not None:
            count = min(FEW_MEANS + self.settings.factors // 4, MEANS)
            omegas = [relaxation(begun * count + i) for i in range(count)]
            threads = self.settings.threads
            sweep_means(model, run.state, self.pairs, rows.rating, weight, omegas, threads)


SEARCHES: dict[Covariance, type[TableSearch]] = {"diagonal": TableSearch, "full": VectorSearch}


def mean_residual(rows: Ratings, q: Mapping[str, Posterior]) -> float:
    """Return the mean of ratings minus their expectations."""
    return float(residuals(rows, q).mean(dtype=np.float64))


def std_of(q: Mapping[str, Posterior], held: Ratings) -> NDArray[Any]:
    """Return the standard deviations of ratings under q."""
    users, items = sides(q)
    noise = 1 / np.broadcast_to(q["noise"].mean, len(users))
    _, var = score_pairs(users, held.user, items, held.item)
    return np.sqrt(var + noise[held.user])


def spread_of(
    errors: NDArray[Any], before: NDArray[Any], q: Mapping[str, Posterior], held: Ratings
) -> Spread:
    """Return the distribution of the held-out errors, for a q that has seen all ratings.

    `before` are the standard deviations under the q of these errors.
    """
    return Spread.of(errors, before).wider(float(before.mean() / std_of(q, held).mean()))


def learned(
    fit: Fit,
    scale: float,
    full: bool,
    spread: Spread,
    shift: float,
    sweeps: float,
    status: str,
    records: Sequence[StageRecord] = (),
) -> Learned:
    """Return q of a fit, and the shift, in the units of the ratings."""
    users, items = (side.scaled(scale) for side in sides(fit.posteriors))
    any_user, any_item = (
        _anyone(fit, bias, factors, full).scaled(scale)
        for bias, factors in (("a", "u"), ("b", "v"))
    )
    noise = scale**2 / fit.mean("noise")
    stages = tuple(record._replace(rmse=scale * record.rmse) for record in records)
    return Learned(
        users, items, any_user, any_item, noise, spread, scale * shift, fit, sweeps, status, stages
    )


def _anyone(fit: Fit, bias: str, factors: str, full: bool) -> Side:
    """Return q of an unknown user or item."""
    if factors not in fit.posteriors:
        return Side.prior(fit.mean(f"of_{bias}"), np.ones(0), full=False)
    return Side.prior(None, fit.mean(f"of_{factors}"), full, fit.mean(f"mean_{factors}"))

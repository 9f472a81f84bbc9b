"""Fit the network of ratings that lie in parts, each with all ratings of its users.

Biases, factors and noise of users belong to their part; items and precisions are shared by all. A
sweep is exact coordinate ascent over all parts, in which the factors of a user, and of an item, are
solved together. Early stopping (stages.py) is on ratings that are held out in every part. Residuals
are not clipped, as they are for ratings in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from svmp.fitting.fit import fit
from svmp.inference.engine import step
from svmp.inference.methods import Growing
from svmp.inference.running.stopping import Interrupt, catch_interrupt
from svmp.inference.state.state import State
from svmp.inference.steps import Constant
from svmp.kernels.machine.threads import use_threads
from svmp.models.factorization import Covariance
from svmp.network.model import Model
from svmp.network.network import Network
from svmp.parts.cache import forget
from svmp.parts.parts import Parts
from svmp.parts.problem import PartsProblem
from svmp.posterior.marginals.posterior import Posterior
from svmp.ratings import Ratings
from svmp.recommend.learn import (
    LAST,
    RARELY,
    Learned,
    LearnSettings,
    learned,
    spread_of,
    std_of,
)
from svmp.recommend.network import FIRM, Noise, network
from svmp.recommend.part_ratings import PartsSummary, RatingParts, Report, held_table
from svmp.recommend.residuals import residuals
from svmp.recommend.spread import Spread
from svmp.recommend.stages import Search, Stage, StageRecord, search_best, status_of
from svmp.recommend.starts import start, vector_start

BIASES = 8
"""Minimum number of sweeps without factors: each reads all parts, so they are not cheap."""
METHOD = Growing(1.0)
"""Full VB from the start, in which factors are solved together."""


@dataclass(frozen=True)
class DeclarePart:
    """Declares the network of one part.

    Attributes
    ----------
    factors, covariance, noise, weight
        As in `network`.
    users
        Number of users of all parts.
    """

    factors: int
    covariance: Covariance
    noise: Noise
    weight: float
    users: int

    def __call__(self, rows: Ratings) -> Model:
        """Return the network of a part's rows."""
        return network(rows, self.factors, self.covariance, self.noise, self.weight, self.users)

    @property
    def own(self) -> list[str]:
        """Names of the variables that belong to one part."""
        return ["u" if self.factors else "a", *(["noise"] if self.noise == "user" else [])]


@dataclass
class PartsRun:
    """A q that is updated by sweeps over parts.

    Attributes
    ----------
    init
        Where it starts.
    network, state
        The hidden variables, and the state of the run; None before the first sweep.
    """

    init: Mapping[str, Any]
    network: Network | None = None
    state: State | None = None

    @property
    def iteration(self) -> int:
        """Number of sweeps so far."""
        return 0 if self.state is None else self.state.iteration

    @property
    def posteriors(self) -> dict[str, Posterior]:
        """Posterior of every hidden variable; valid until the next sweep."""
        assert self.network is not None
        assert self.state is not None
        natural = self.state.q.natural
        return {
            name: Posterior(name, v.dims, v.plate.shape, v.family, natural[name])
            for name, v in self.network.hidden.items()
        }

    def copy(self) -> PartsRun:
        """Return an independent copy."""
        return replace(self, state=None if self.state is None else self.state.copy())


@dataclass
class PartsSearch(Search[PartsRun]):
    """Early stopping with rows in parts.

    Attributes
    ----------
    declare
        Returns the parts to fit, given the number of factors and the weight of their prior.
    rest
        The held-out rows, by the numbers of users.
    settings
        How to fit.
    client
        A Dask client, or None.
    report
        Is told what has been done.
    """

    declare: Callable[[int, float], Parts]
    rest: Ratings
    settings: LearnSettings
    client: Any
    report: Report
    biases: ClassVar[int] = BIASES
    progress: bool | None = field(default=False, init=False)
    _problems: dict[tuple[int, float], PartsProblem] = field(default_factory=dict, init=False)
    _open: PartsProblem | None = field(default=None, init=False)
    _sweeps: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        super().__init__()
        self.tol = self.settings.tol

    def begin(self, factors: int, init: Mapping[str, Any]) -> PartsRun:
        return PartsRun(vector_start(init, factors) if factors else init)

    def sweep(
        self, run: PartsRun, factors: int, weight: float, sweeps: int, interrupt: Interrupt
    ) -> Stage:
        tell = self.settings.progress is not False
        with np.errstate(all="ignore"), use_threads(self.settings.threads, tell=tell):
            problem = self._problem(factors, weight)
            program = problem.program(METHOD, Constant(1.0), True, self.settings.seed, ())
            if run.state is None:
                run.network, run.state = problem.network, State(problem.start(program, run.init))
                run.init = {}
            for _ in range(sweeps):
                run.state, _ = step(program, run.state)
                self._sweeps += 1
                self.report(f"sweep {self._sweeps:,} of at most {self.settings.max_sweeps:,.0f}")
                if interrupt.pressed:
                    break
            program.collect(run.state.q)
            q = run.posteriors
            some, held = among(q, self.rest)
            errors = residuals(held, some)
        return Stage(q, factors, weight, errors)

    def kept(self, stage: Stage) -> Stage:
        """Copy q in single precision, since it is only where further sweeps start."""
        single: Any = {name: np.float32(q.natural) for name, q in stage.posteriors.items()}
        q = {name: replace(q, natural=single[name]) for name, q in stage.posteriors.items()}
        return stage._replace(posteriors=q)

    def _problem(self, factors: int, weight: float) -> PartsProblem:
        """Return the parts to fit, after releasing those of another network."""
        known = self._problems.get((factors, weight))
        if known is None or known is not self._open:
            self.close()
        if known is None:
            known = self.declare(factors, weight).problem(self.client)
        self._problems[factors, weight] = self._open = known
        return known

    def close(self) -> None:
        """Release the parts in memory."""
        if self._open is not None:
            forget(self._open.context.token)
            self._open = None


def learn_parts(
    parts: RatingParts,
    about: PartsSummary,
    settings: LearnSettings,
    memory: int | None,
    client: Any,
    report: Report,
) -> Learned:
    """Fit the network to ratings in parts.

    Parameters
    ----------
    parts, about
        The parts, and what was found in all of them.
    settings
        How to fit.
    memory
        Memory for the rows of parts, in bytes.
    client
        A Dask client whose workers process the parts, or None.
    report
        Is told what has been done.
    """
    factors, form, noise, max_sweeps, tol, seed, threads, _ = settings
    covariance: Covariance = "full" if form == "full" else "diagonal"
    differ = about.high > about.low
    init: Any = start(about.users, about.items, differ, factors, covariance, seed)
    most = math.ceil(max_sweeps)
    last, weight, sweeps, best = most, FIRM, 0, None
    records: list[StageRecord] = []
    search: Search[Any] | None = None

    def declare(factors: int, weight: float, held: bool | None = False) -> Parts:
        of_part = DeclarePart(factors, covariance, noise, weight, about.users)
        return Parts(of_part, parts.only(held), own=of_part.own, memory=memory)

    if parts.share and most > 1:
        rest = held_table(parts, report)
        last = min(LAST, most // 2)
        search = PartsSearch(declare, rest, settings, client, report)
        with catch_interrupt() as interrupt:
            try:
                best, sweeps = search_best(search, factors, init, most - last, interrupt)
            finally:
                search.close()
        init, weight, factors = best.posteriors, best.weight, best.factors
        records = search.records
    options: Any = {"bound_every": RARELY, "tol": tol, "seed": seed, "threads": threads}
    found = fit(
        declare(factors, weight, None),
        METHOD,
        init=init,
        max_sweeps=last,
        progress=False,
        client=client,
        **options,
    )
    with use_threads(threads, tell=settings.progress is not False):
        shift = mean_residual(parts, found.posteriors, report)
    spread = Spread.normal()
    if best is not None:
        std = std_of(*among(best.posteriors, rest))
        spread = spread_of(best.errors - shift, std, *among(found.posteriors, rest))
    status = status_of(search, most - last - sweeps, found.status)
    scale, sweeps = about.std or 1.0, sweeps + found.iterations
    return learned(found, scale, covariance == "full", spread, shift, sweeps, status, records)


def mean_residual(parts: RatingParts, q: Mapping[str, Posterior], report: Report) -> float:
    """Return the mean of the ratings of all parts minus their expectations."""
    source, total, count = parts.only(None), 0.0, 0
    for part in range(len(parts)):
        report(f"averaging the residuals of part {part + 1:,} of {len(parts):,}")
        own = source.load(part)
        if len(own):
            user = own.user + parts.first[part]
            sizes = int(parts.first[-1]), own.items
            some, rows = among(q, Ratings.of_keys(user, own.item, own.rating, *sizes))
            total += float(residuals(rows, some).sum(dtype=np.float64))
            count += len(rows)
    return total / count


def among(q: Mapping[str, Posterior], rows: Ratings) -> tuple[dict[str, Posterior], Ratings]:
    """Return q of the users and items of some rows alone, and the rows with keys among these."""
    users, user = np.unique(rows.user, return_inverse=True)
    items, item = np.unique(rows.item, return_inverse=True)
    some = {"user": users, "item": items}
    found = {}
    for name, posterior in q.items():
        keys = some.get(posterior.dims[0]) if posterior.dims else None
        if keys is not None:
            plate = posterior.plate
            natural = posterior.natural.reshape(plate[0], -1)[keys]
            shape = (len(keys), *plate[1:])
            natural = natural.reshape(math.prod(shape), posterior.natural.shape[1])
            posterior = replace(posterior, plate=shape, natural=natural)
        found[name] = posterior
    return found, Ratings.of_keys(user, item, rows.rating, len(users), len(items))

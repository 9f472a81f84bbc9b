"""`update` with the last tenth of the rows beside a refit to all: time, and held-out score.

Rows are in random order, by the seed; the first nine tenths are fitted, and the last tenth comes by
`update`. The refit is a fit to all of them. Both times include the declaration of the model. The
factorization is the network of parts_spark.py in one table, the hierarchy has generated pupils in
schools, the regression and the mixture have generated rows, and topics are those of lda.py, divided
by documents. Held-out scores are the RMSE, the perplexity for topics, and for the mixture minus the
mean log density of a row at the posterior means. Figures are means over the seeds; of the log of
the ratio of scores, which topics need, as refits end at different maxima, the notes have the mean
over the seeds with its standard error. Times are processor seconds, which other programs on the
machine hardly affect; the notes have wall seconds.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import lda
import numpy as np
from common import Row, main
from parts_spark import network
from recommend_data import table

import svmp
from svmp.network.dims.data_columns import Columns
from svmp.ratings import Ratings
from svmp.recommend import RatingModel, split
from svmp.recommend.metrics import rmse

TENTH, SEEDS = 0.1, 3


class Case(ABC):
    """Rows and a model of them.

    Attributes
    ----------
    what, unit
        What is fitted, and the unit of its score.
    """

    what: str
    unit = "RMSE"

    @abstractmethod
    def prepare(self, seed: int) -> tuple[Any, Any, Any]:
        """Return all rows of the training data, the first nine tenths, and the last."""

    @abstractmethod
    def fit(self, rows: Any, seed: int) -> Any:
        """Fit to rows."""

    @abstractmethod
    def update(self, fitted: Any, rows: Any) -> Any:
        """Update a fit with rows."""

    @abstractmethod
    def score(self, fitted: Any) -> float:
        """Return the held-out score of a fit."""


@dataclass
class Recommender(Case):
    """`RatingModel` on ratings."""

    ratings: Ratings
    factors: int
    what = "RatingModel"

    def prepare(self, seed: int) -> tuple[Ratings, Ratings, Ratings]:
        train, self.test = split.random(self.ratings, TENTH, seed)
        return train, *split.random(train, TENTH, seed + 1)

    def fit(self, rows: Ratings, seed: int) -> RatingModel:
        return RatingModel(self.factors, seed=seed, progress=False).fit(rows)

    def update(self, fitted: RatingModel, rows: Ratings) -> RatingModel:
        return fitted.update(rows)

    def score(self, fitted: RatingModel) -> float:
        return rmse(self.test.rating, fitted.predict_keys(self.test.user, self.test.item)[0])


@dataclass
class Network(Case):
    """A network of rows with keys, by `svmp.fit` and `Fit.update`."""

    what: str
    columns: dict[str, Any]
    target: str
    declare: Callable[[Columns], svmp.Model]
    predict: Callable[[svmp.Fit, Columns], Any]

    def prepare(self, seed: int) -> tuple[Columns, Columns, Columns]:
        rows = Columns(self.columns)
        order = np.random.default_rng(seed).permutation(len(rows))
        test, last, first = np.split(
            order, [len(rows) // 10, len(rows) // 10 + len(rows) * 9 // 100]
        )
        self.test = rows.take(test)
        both = np.concatenate([first, last])
        return rows.take(both), rows.take(first), rows.take(last)

    def fit(self, rows: Columns, seed: int) -> svmp.Fit:
        return svmp.fit(self.declare(rows), seed=seed, progress=False)

    def update(self, fitted: svmp.Fit, rows: Columns) -> svmp.Fit:
        return fitted.update(self.declare(rows), progress=False)

    def score(self, fitted: svmp.Fit) -> float:
        return rmse(self.test[self.target], self.predict(fitted, self.test))


@dataclass
class Mixture(Network):
    """A mixture of Normals along one axis, scored by its density.

    All fits start at the same quantiles: from random means a fit may end at a poor maximum, another
    one for nine tenths of the rows than for all.
    """

    start: Any
    unit = "nats"

    def fit(self, rows: Columns, seed: int) -> svmp.Fit:
        model, init = self.declare(rows), {"mu": self.start}
        return svmp.fit(model, seed=seed, init=init, progress=False)

    def update(self, fitted: svmp.Fit, rows: Columns) -> svmp.Fit:
        return fitted.update(self.declare(rows), new=["row"], progress=False)

    def score(self, fitted: svmp.Fit) -> float:
        return -float(np.log(self.predict(fitted, self.test)).mean())


@dataclass
class Topics(Case):
    """Topics of documents."""

    train: Any
    held: Any
    topics: int
    what = "topics of twentynews"
    unit = "perplexity"

    def prepare(self, seed: int) -> tuple[Any, Any, Any]:
        count = self.train.shape[0]
        order = np.random.default_rng(seed).permutation(count)
        first, last = np.split(order, [count - count // 10])
        return self.train[order], self.train[first], self.train[last]

    def fit(self, rows: Any, seed: int) -> svmp.Fit:
        return svmp.fit(lda.network(rows, self.topics), seed=seed, progress=False)

    def update(self, fitted: svmp.Fit, rows: Any) -> svmp.Fit:
        model = lda.network(rows, self.topics)
        return fitted.update(model, new=["document"], progress=False)

    def score(self, fitted: svmp.Fit) -> float:
        return lda.perplexity(fitted.mean("phi"), self.held)


def factorization(ratings: Ratings, factors: int) -> Network:
    """Return the factorization of ratings, with users and items by label."""
    columns = {"user": ratings.user, "item": ratings.item, "rating": ratings.rating}

    def predict(fitted: svmp.Fit, test: Columns) -> Any:
        at = []
        for name, size in (("user", ratings.users), ("item", ratings.items)):
            place = np.full(size, -1)
            labels = np.asarray(fitted.coords[name])
            place[labels] = np.arange(len(labels))
            at.append(place[test[name]])
        user, item = at
        guess = np.where(user >= 0, fitted.mean("a")[user], 0) + fitted.mean("b")[item]
        both = np.einsum("rk,rk->r", fitted.mean("u")[user], fitted.mean("v")[item])
        return (mean + guess + np.where(user >= 0, both, 0)).clip(1, 5)

    mean = float(ratings.rating.mean())
    declare = network(ratings.items, factors, mean)
    what = f"factorization, Netflix-shaped, K = {factors}"
    return Network(what, columns, "rating", declare, predict)


def hierarchy(schools: int, pupils: int) -> Network:
    """Return pupils in schools, with effects and precisions that are learned."""
    rng = np.random.default_rng(0)
    effect, precision = rng.normal(size=schools), rng.gamma(4, 0.25, size=schools)
    school = rng.choice(schools, pupils, p=rng.dirichlet(np.ones(schools)))
    noise = rng.standard_normal(pupils) / np.sqrt(precision[school])
    columns = {"school": school, "score": 5 + effect[school] + noise}

    def declare(part: Columns) -> svmp.Model:
        key = part.keys("school")
        with svmp.Model(coords={"school": part.labels("school")}) as model:
            mu = svmp.Normal("mu", mu=0, tau=0.01)
            spread = svmp.Gamma("spread", alpha=1, beta=1)
            theta = svmp.Normal("theta", mu=mu, tau=spread, dims="school")
            level = svmp.Gamma("level", alpha=1, beta=1)
            tau = svmp.Gamma("tau", alpha=2, beta=level, dims="school")
            svmp.Normal("score", mu=theta[key], tau=tau[key], dims="pupil", observed=part["score"])
        return model

    def predict(fitted: svmp.Fit, test: Columns) -> Any:
        guess = np.full(schools, float(fitted.mean("mu")))
        guess[np.asarray(fitted.coords["school"])] = fitted.mean("theta")
        return guess[test["school"]]

    what = f"hierarchy, {pupils:,} pupils in {schools:,} schools"
    return Network(what, columns, "score", declare, predict)


def regression(covariates: int, rows: int) -> Network:
    """Return a regression whose noise, coefficients and their precision are learned."""
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(covariates)]
    x, w = rng.normal(size=(rows, covariates)), rng.normal(size=covariates)
    columns = dict(zip(names, x.T, strict=True)) | {"y": x @ w + rng.normal(size=rows)}

    def declare(part: Columns) -> svmp.Model:
        with svmp.Model(coords={"name": names}) as model:
            spread, tau = (svmp.Gamma(name, alpha=1, beta=1) for name in ("spread", "tau"))
            w = svmp.Normal("w", mu=0, tau=spread, dims="name")
            svmp.Normal("y", mu=svmp.dot(part[names], w), tau=tau, dims="row", observed=part["y"])
        return model

    def predict(fitted: svmp.Fit, test: Columns) -> Any:
        return test[names] @ fitted.mean("w")

    return Network(f"regression, {rows:,} rows", columns, "y", declare, predict)


def mixture(components: int, rows: int) -> Mixture:
    """Return a mixture of Normals that overlap a little."""
    rng = np.random.default_rng(0)
    centre, of = 4.0 * np.arange(components), rng.integers(0, components, rows)
    columns = {"y": centre[of] + rng.normal(size=rows)}

    def declare(part: Columns) -> svmp.Model:
        labels = [f"c{i}" for i in range(components)]
        with svmp.Model(coords={"component": labels, "row": len(part)}) as model:
            w = svmp.Dirichlet("w", a=1.0, dims="component")
            z = svmp.Categorical("z", p=w, dims="row")
            mu = svmp.Normal("mu", mu=0, tau=0.01, dims="component")
            tau = svmp.Gamma("tau", alpha=1, beta=1, dims="component")
            normals = svmp.Normal.dist(mu=mu, tau=tau)
            svmp.Mixture("y", z, normals, dims="row", observed=part["y"])
        return model

    def density(fitted: svmp.Fit, test: Columns) -> Any:
        w, mu, tau = (fitted.mean(name) for name in ("w", "mu", "tau"))
        apart = test["y"][:, None] - mu
        return np.exp(-0.5 * tau * apart**2) @ (w * np.sqrt(tau / (2 * np.pi)))

    start = np.quantile(columns["y"], (np.arange(components) + 0.5) / components)
    what = f"mixture of {components}, {rows:,} rows"
    return Mixture(what, columns, "y", declare, density, start)


class Timed(NamedTuple):
    """A result with its processor seconds and wall seconds."""

    result: Any
    cpu: float
    wall: float


def timed(function: Callable[..., Any], *arguments: Any) -> Timed:
    cpu, wall = time.process_time(), time.perf_counter()
    result = function(*arguments)
    return Timed(result, time.process_time() - cpu, time.perf_counter() - wall)


def compare(case: Case, seeds: int) -> Iterator[Row]:
    found = []
    for seed in range(seeds):
        every, first, last = case.prepare(seed)
        refit = timed(case.fit, every, seed)
        before = case.fit(first, seed)
        alone = case.score(before)
        after = timed(case.update, before, last)
        scores = case.score(after.result), case.score(refit.result), alone
        found.append((after.cpu, refit.cpu, after.wall, refit.wall, *scores))
    cpu, other, wall, other_wall, score, best, alone = np.mean(found, axis=0)
    note = f"wall seconds {wall:.3g} and {other_wall:.3g}: {wall / other_wall:.3g}; {seeds} seeds"
    yield Row(f"update, {case.what}", cpu, other, "a refit", "s", 0.1, note)
    ratios = np.array([100 * np.log(row[4] / row[5]) for row in found])
    each = ", ".join(f"{ratio:+.2f}%" for ratio in ratios)
    error = np.std(ratios, ddof=1) / np.sqrt(seeds) if seeds > 1 else np.nan
    note = f"log of the ratio {ratios.mean():+.2f} +- {error:.2f}% ({each})"
    note += f"; without the last tenth {alone:,.4f}"
    yield Row(f"score after update, {case.what}", score, best, "a refit", case.unit, 1.005, note)


def cases(quick: bool) -> Iterator[Case]:
    ratings = table("Netflix-shaped", 0.01 if quick else 1.0)
    factors = 2 if quick else 16
    yield hierarchy(*((50, 2000) if quick else (5000, 1_000_000)))
    yield regression(*((3, 2000) if quick else (20, 200_000)))
    yield mixture(*((2, 2000) if quick else (3, 200_000)))
    yield factorization(ratings, factors)
    yield Recommender(ratings, factors)
    yield Topics(*lda.load("twentynews", 0.02 if quick else 1.0), 5 if quick else 20)


def measure(quick: bool) -> Iterator[Row]:
    for case in cases(True) if not quick else ():  # compiles the loops
        list(compare(case, 1))
    for case in cases(quick):
        yield from compare(case, 1 if quick else SEEDS)


if __name__ == "__main__":
    main(measure, __doc__)

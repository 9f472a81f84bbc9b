"""Evaluate a recommender on ratings that it has not seen, next to two baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import Interface, RatingsError, argument
from svmp.inference.running.seeds import Seed, generator
from svmp.ratings import Ratings
from svmp.recommend import metrics
from svmp.recommend.baselines import Popularity, biases
from svmp.recommend.factor_model import FactorModel
from svmp.recommend.metrics import Score
from svmp.recommend.rating import RatingModel
from svmp.recommend.top import BLOCK, CELLS, rank

LEVELS = (0.5, 0.9, 0.95)
CURVE = tuple(round(0.05 * step, 2) for step in range(1, 20))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The result of `evaluate`.

    Attributes
    ----------
    scores
        Scores by model ("model", "biases", "popularity") and measure.
    calibration
        Coverage of the held-out ratings by level of the interval.
    by_spread
        For each fifth of the ratings by predicted standard deviation: the mean of that deviation,
        and the root mean squared error.
    ratings, users
        Number of ratings that were predicted, and of users whose rankings were scored.
    n
        Length of a ranking.
    remarks
        Sentences on what the scores show that is easily missed.
    """

    scores: Mapping[str, Mapping[str, Score]]
    calibration: Mapping[float, float]
    by_spread: list[tuple[float, float]]
    ratings: int
    users: int
    n: int
    remarks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as lists and dicts, as for JSON."""
        scores = {
            model: {measure: score._asdict() for measure, score in found.items()}
            for model, found in self.scores.items()
        }
        return {
            "scores": scores,
            "calibration": [[level, share] for level, share in self.calibration.items()],
            "by_spread": [list(pair) for pair in self.by_spread],
            "ratings": self.ratings,
            "users": self.users,
            "n": self.n,
            "remarks": list(self.remarks),
        }

    def plot(self) -> NDArray[Any]:
        """Draw calibration, error by predicted deviation, and ranking scores; for events the last.

        Returns
        -------
        array of Axes
            One for each; `axes[0].figure` is the figure.
        """
        from svmp.recommend.plot import plot

        return plot(self.scores, self.calibration, self.by_spread)

    def __str__(self) -> str:
        names = list(self.scores)
        measures = list(dict.fromkeys(m for found in self.scores.values() for m in found))
        wide = max(map(len, measures))
        lines = [f"{'':{wide}}  " + "  ".join(f"{name:>28}" for name in names)]
        for measure in measures:
            cells = (_shown(self.scores[name].get(measure)) for name in names)
            lines.append(f"{measure:{wide}}  " + "  ".join(f"{cell:>28}" for cell in cells))
        return "\n".join([*lines, *self.remarks])


def evaluate(
    model: FactorModel,
    test: Any,
    *,
    n: int = 10,
    relevant: float | None = None,
    users: int | None = 5000,
    draws: int = 500,
    seed: Seed = 0,
) -> Evaluation:
    """Score a fitted model on ratings that it has not seen.

    Parameters
    ----------
    model
        A model that has been fitted to other ratings.
    test
        The ratings to predict, such as the test set of a `svmp.recommend.split`, in any form that
        `model.fit` reads.
    n
        Number of recommendations per user.
    relevant
        Least rating of a relevant item; by default the upper quarter of the range, as 4 on a scale
        from 1 to 5. All events are relevant.
    users
        Number of users whose rankings are scored, drawn at random from those with relevant items;
        None means all.
    draws
        Number of bootstrap resamples, of ratings and of users.
    seed
        Seed of the choice of users and of the bootstrap.

    Returns
    -------
    Evaluation
        Scores of the model, of popularity and, for ratings, of the same model without factors. A
        model of events is scored by its rankings only.
    """
    model._check_fitted()
    test = model.read(test, model._text_ids(test))
    if not len(test):
        raise RatingsError("there are no ratings to predict")
    training = trained_on(model)
    models: dict[str, FactorModel] = {"model": model}
    least = -np.inf if relevant is None else relevant
    if isinstance(model, RatingModel):
        models["biases"] = biases(training, model)
        low, high = model.range_
        least = low + 0.75 * (high - low) if relevant is None else relevant
    models["popularity"] = Popularity().fit(training)
    user = model.users_.keys(test.user_ids, "prior")[test.user]
    item = model.items_.keys(test.item_ids, "prior")[test.item]
    good = (test.rating >= least) & (user >= 0) & (item >= 0)
    chosen = np.unique(user[good])
    if users is not None and len(chosen) > users:
        chosen = np.sort(generator(seed).choice(chosen, users, replace=False))
    good &= np.isin(user, chosen)
    scores: dict[str, dict[str, Score]] = {}
    for name, one in models.items():
        found: dict[str, Score] = {}
        if isinstance(one, RatingModel):
            found |= _of_ratings(one, test, user, item, seed, draws)
        if len(chosen):
            found |= _of_rankings(one, chosen, user[good], item[good], n, seed, draws)
        scores[name] = found
    calibration: dict[float, float] = {}
    by_spread: list[tuple[float, float]] = []
    if isinstance(model, RatingModel):
        calibration = {
            level: metrics.coverage(test.rating, *model.interval_of_keys(user, item, level))
            for level in CURVE
        }
        by_spread = metrics.by_spread(test.rating, *model.predict_keys(user, item))
    remarks = remarks_on(scores, isinstance(model, RatingModel))
    return Evaluation(scores, calibration, by_spread, len(test), len(chosen), n, remarks)


def remarks_on(scores: Mapping[str, Mapping[str, Score]], of_ratings: bool) -> tuple[str, ...]:
    """Say so if popularity ranks better than the model, by intervals that do not overlap."""
    model, popularity = scores["model"], scores["popularity"]
    worse = [
        f"{name} is {model[name].value:.3f}, and {popularity[name].value:.3f} by popularity"
        for name in model
        if name.startswith(("recall", "NDCG")) and model[name].high < popularity[name].low
    ]
    if not worse:
        return ()
    other = f"EventModel({argument('at_least', '4')})"
    if Interface.flags:
        other = "--events --at-least 4"
    why = (
        "; a model of ratings ranks by the expected rating, which is not what users choose next; "
        f"to predict that, fit a model of events, as {other}"
    )
    return (f"Popularity ranks better: {'; '.join(worse)}{why if of_ratings else ''}.",)


def trained_on(model: FactorModel) -> Ratings:
    """Return the ratings that a model was fitted to."""
    h = model.history_
    return Ratings(h.user, h.item, h.rating, model.users_.ids, model.items_.ids, h.time)


def ranks(
    model: FactorModel, users: NDArray[np.int64], user: NDArray[np.int64], item: NDArray[np.int64]
) -> metrics.Ranks:
    """Return the ranks of items among all that their users have not rated; all given as keys."""
    size = max(1, min(BLOCK, CELLS // len(model.items_)))
    place = np.searchsorted(users, user)
    order = np.argsort(place, kind="stable")
    found, shown = np.empty(len(user), np.int64), np.empty(len(users), np.int64)
    for start in range(0, len(users), size):
        some = users[start : start + size]
        begin, seen = model.history_.items(some)
        first, last = np.searchsorted(place[order], [start, start + len(some)])
        cells = order[first:last]
        scores = np.ascontiguousarray(model.scores(model.users_.at(some)))
        out = np.empty(len(cells), np.int64)
        rank(scores, begin, seen, place[cells] - start, item[cells], out)
        found[cells], shown[start : start + len(some)] = out, len(model.items_) - np.diff(begin)
    return metrics.Ranks(place, found, shown)


def _of_ratings(
    model: RatingModel, test: Ratings, user: Any, item: Any, seed: Seed, draws: int
) -> dict[str, Score]:
    mean, std = model.predict_keys(user, item)
    error = test.rating.astype(np.float64) - mean
    density = metrics.log_density(test.rating, mean, std)
    rmse = np.sqrt(metrics.bootstrap(error**2, seed, draws)).tolist()
    mae = metrics.bootstrap(np.abs(error), seed, draws)
    likelihood = metrics.bootstrap(density, seed, draws)
    found = {
        "RMSE": Score(metrics.rmse(test.rating, mean), *rmse),
        "MAE": Score(metrics.mae(test.rating, mean), *mae),
        "log likelihood": Score(metrics.log_likelihood(test.rating, mean, std), *likelihood),
    }
    for level in LEVELS:
        inside = metrics.inside(test.rating, *model.interval_of_keys(user, item, level))
        found[f"in {100 * level:g}% interval"] = _score(inside, seed, draws)
    return found


def _of_rankings(
    model: FactorModel, users: Any, user: Any, item: Any, n: int, seed: Seed, draws: int
) -> dict[str, Score]:
    found = ranks(model, users, user, item)
    by_user = {
        f"recall@{n}": found.recall(n),
        f"precision@{n}": found.precision(n),
        f"NDCG@{n}": found.ndcg(n),
        f"MAP@{n}": found.average_precision(n),
        "mean percentile rank": found.percentile(),
    }
    scores = {name: _score(values, seed, draws) for name, values in by_user.items()}
    top = model.recommend(model.users_.ids[users], n, progress=False)
    share = len(np.unique(top.items[~np.isnan(top.scores)])) / len(model.items_)
    scores["catalogue coverage"] = Score(share, share, share)
    return scores


def _score(values: Any, seed: Seed, draws: int) -> Score:
    return Score(float(np.mean(values)), *metrics.bootstrap(values, seed, draws))


def _shown(score: Score | None) -> str:
    return "" if score is None else f"{score.value:.4f} ({score.low:.4f} to {score.high:.4f})"

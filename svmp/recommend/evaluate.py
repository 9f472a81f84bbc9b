"""How good a recommender is, on ratings that it has not seen, always beside two baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.errors import RatingsError
from svmp.inference.seeds import Seed, generator
from svmp.ratings import Ratings
from svmp.recommend import metrics
from svmp.recommend.baselines import Popularity, biases
from svmp.recommend.factor_model import FactorModel
from svmp.recommend.rating import RatingModel
from svmp.recommend.top import BLOCK, CELLS, rank

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVELS = (0.5, 0.9, 0.95)
CURVE = tuple(round(0.05 * step, 2) for step in range(1, 20))


class Score(NamedTuple):
    """A figure, and a 95% bootstrap interval for it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What `evaluate` found.

    Attributes
    ----------
    scores
        By model ("model", "biases", "popularity"), by measure.
    calibration
        By level of an interval: the share of the held-out ratings that such intervals held.
    by_spread
        From the fifth with the least predicted standard deviation to that with the greatest: the
        mean of it, and the root mean squared error.
    ratings, users
        How many ratings were predicted, and how many users were given recommendations.
    n
        How many of those each.
    """

    scores: Mapping[str, Mapping[str, Score]]
    calibration: Mapping[float, float]
    by_spread: list[tuple[float, float]]
    ratings: int
    users: int
    n: int

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain lists and dicts, as for JSON."""
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
        }

    def plot(self) -> Figure:
        """Draw calibration, error by predicted spread, and the scores of the rankings."""
        from svmp.recommend.plot import plot

        return plot(self)

    def __str__(self) -> str:
        names = list(self.scores)
        measures = list(dict.fromkeys(m for found in self.scores.values() for m in found))
        wide = max(map(len, measures))
        lines = [f"{'':{wide}}  " + "  ".join(f"{name:>28}" for name in names)]
        for measure in measures:
            cells = (_shown(self.scores[name].get(measure)) for name in names)
            lines.append(f"{measure:{wide}}  " + "  ".join(f"{cell:>28}" for cell in cells))
        return "\n".join(lines)


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
        The ratings to predict, as `svmp.recommend.split` leaves them out; read like those that
        `model.fit` takes.
    n
        How many recommendations a user is given.
    relevant
        A held-out item is relevant to its user if it was rated so high or higher; by default the
        upper quarter of the range, as 4 of 1 to 5; of events, every one.
    users
        Rankings are scored for so many users, drawn at random from those with relevant items;
        None means all.
    draws
        Bootstrap draws, of ratings and of users.
    seed
        Decides the users and the bootstrap.

    Returns
    -------
    Evaluation
        Of the model, of popularity, and for ratings of the same model without factors. A model of
        events is scored by its rankings alone.
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
        calibration = {level: _covered(model, test, user, item, level) for level in CURVE}
        by_spread = metrics.by_spread(test.rating, *model.predict_keys(user, item))
    return Evaluation(scores, calibration, by_spread, len(test), len(chosen), n)


def trained_on(model: FactorModel) -> Ratings:
    """Return the ratings that a model has been fitted to."""
    h = model.history_
    return Ratings(h.user, h.item, h.rating, model.users_.ids, model.items_.ids, h.time)


def ranks(
    model: FactorModel, users: NDArray[np.int64], user: NDArray[np.int64], item: NDArray[np.int64]
) -> metrics.Ranks:
    """Return where items stand among all that their users have not rated; all by keys."""
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
    z = error / std
    density = -0.5 * z**2 - np.log(std) - 0.5 * np.log(2 * np.pi)
    squared = _score(error**2, seed, draws)
    found = {
        "RMSE": Score(*(float(np.sqrt(x)) for x in squared)),
        "MAE": _score(np.abs(error), seed, draws),
        "log likelihood": _score(density, seed, draws),
    }
    for level in LEVELS:
        held = _held(model, test, user, item, level)
        found[f"in {100 * level:g}% interval"] = _score(held, seed, draws)
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


def _held(model: RatingModel, test: Ratings, user: Any, item: Any, level: float) -> Any:
    low, high = model.interval_of_keys(user, item, level)
    return (test.rating >= low) & (test.rating <= high)


def _covered(model: RatingModel, test: Ratings, user: Any, item: Any, level: float) -> float:
    return float(np.mean(_held(model, test, user, item, level)))


def _score(values: Any, seed: Seed, draws: int) -> Score:
    return Score(float(np.mean(values)), *metrics.bootstrap(values, seed, draws))


def _shown(score: Score | None) -> str:
    return "" if score is None else f"{score.value:.4f} ({score.low:.4f} to {score.high:.4f})"

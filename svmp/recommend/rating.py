"""`RatingModel`: from a table of ratings to predictions and recommendations, with uncertainty."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.inference.result import Fit
from svmp.inference.seeds import Seed, whole_seed
from svmp.inference.stopping import catch_interrupt
from svmp.models.factorization import Covariance
from svmp.ratings import Ratings, read_ratings
from svmp.ratings.columns import Columns
from svmp.ratings.read import check_range
from svmp.ratings.table import Duplicates
from svmp.recommend.estimator import check_choice, check_number, check_whole
from svmp.recommend.factor_model import FactorModel, Person
from svmp.recommend.files import Arrays, need
from svmp.recommend.fold import Array, UserPosterior
from svmp.recommend.history import History
from svmp.recommend.learn import LearnSettings, learn
from svmp.recommend.network import Noise
from svmp.recommend.schema import LARGE, SMALL, ArraySpec, number
from svmp.recommend.side import EntityTable, Floats, Keys, Side, score
from svmp.recommend.spread import GRID, Spread
from svmp.recommend.update import RatingState, update_ratings

HELD_OUT = 20_000
"""How many ratings are held out for the intervals, at most."""


class RatingModel(FactorModel):
    """Ratings as r = mean + a_user + b_item + u_user . v_item + noise, all Normal, in full Bayes.

    The precisions of the noise, the biases and the factors are learned; nothing is to be tuned.

    Parameters
    ----------
    factors
        How many factors a user and an item have; none where ratings that are held out are predicted
        better without.
    covariance
        "diagonal": q factorises over all numbers; "full": the factors of a user, and those of an
        item, have a covariance matrix. That is slower, and more honest where ratings are few.
    noise
        "user": each user's ratings have noise of their own precision; "shared": all have the same.
    range
        The least and the greatest rating: predictions are kept within; by default those of the
        data.
    calibrate
        The share of the ratings, at most 20,000, that is first held out, to stop the run where
        their error is least, to decide whether there are factors, and to learn how far ratings fall
        from their predictions. A few sweeps over all ratings follow. 0 does without.
    columns, duplicates
        How to read data, see `svmp.ratings.read_ratings`.
    max_sweeps, tol
        Sweeps at most, first without and then with factors, those over all ratings included, and by
        what share errors must fall for the run to go on.
    seed
        As for `svmp.fit`, or a `numpy.random.Generator`, or None; `seed_` is what `fit` has used.
    threads, progress
        For `svmp.fit`, which does the inference.

    Attributes
    ----------
    users_, items_
        Ids and q of all users and items, `history_` what they have rated.
    fit_
        How the run ended: `status`, `bound`, `trace`. It is not saved. `sweeps_` is how many sweeps
        it took.
    spread_
        How far ratings fall from their predictions.

    >>> from svmp.study.netflix import netflix_shaped
    >>> model = RatingModel(factors=4, max_sweeps=10).fit(netflix_shaped(0.01))
    >>> model.predict(3, [14, 15]).shape, model.recommend(3, n=5).items.shape
    ((2,), (5,))
    """

    ARRAYS: ClassVar = {
        "noise": ArraySpec(np.float32, ("users",), SMALL, LARGE**2),
        "quantiles": ArraySpec(np.float64, (GRID,), 0, LARGE),
    }
    noise_: NDArray[np.float32]
    prior_noise_: float
    range_: tuple[float, float]
    spread_: Spread
    fit_: Fit | None
    sweeps_: float | None

    def __init__(
        self,
        factors: int = 32,
        *,
        covariance: Covariance = "diagonal",
        noise: Noise = "user",
        range: tuple[float, float] | None = None,
        calibrate: float = 0.05,
        columns: Columns | None = None,
        duplicates: Duplicates = "error",
        seed: Seed = 0,
        max_sweeps: float = 150,
        tol: float = 1e-5,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.factors = factors
        self.covariance = covariance
        self.noise = noise
        self.range = range
        self.calibrate = calibrate
        self.columns = columns
        self.duplicates = duplicates
        self.seed = seed
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.threads = threads
        self.progress = progress

    # --- learning --------------------------------------------------------------------------

    def fit(self, data: Any) -> Self:
        """Learn from ratings: a path, a table, or arrays, see `svmp.ratings.read_ratings`.

        Ctrl-C ends it with what was learned by then, and `interrupted_` is True; before anything
        was, it raises KeyboardInterrupt and leaves the model as it is.
        """
        self._check_parameters()
        ratings = self.read(data)
        tell = self.progress is not False
        with self._all_or_nothing(), catch_interrupt(tell) as interrupt:
            self._learn(ratings)
            if interrupt.pressed and not self.sweeps_:
                raise KeyboardInterrupt
            self.interrupted_ = interrupt.pressed
            if interrupt.pressed and self.fit_ is not None:
                self.fit_ = replace(self.fit_, status="interrupted")
        return self

    def _learn(self, ratings: Ratings) -> None:
        self.seed_ = whole_seed(self.seed)
        self.offset_ = float(ratings.rating.mean(dtype=np.float64))
        self.range_ = self.range or (float(ratings.rating.min()), float(ratings.rating.max()))
        settings = LearnSettings(
            self.factors,
            self.covariance,
            self.noise,
            self.max_sweeps,
            self.tol,
            self.seed_,
            self.threads,
            self.progress,
        )
        found = learn(ratings, self._held_out(len(ratings)), self.offset_, settings)
        self.fit_, self.sweeps_, self.spread_ = found.fit, found.sweeps, found.spread
        self.users_ = EntityTable("user", ratings.user_ids, found.users, found.any_user)
        self.items_ = EntityTable("item", ratings.item_ids, found.items, found.any_item)
        self.noise_ = np.array(np.broadcast_to(found.noise, ratings.users), np.float32)
        self.prior_noise_ = float(np.mean(found.noise))
        self.history_ = History.of(ratings)

    def update(self, data: Any) -> Self:
        """Take in more ratings, of known and of new users and items, without fitting anew.

        The q of before is the prior of these rows, which alone are read. The precisions of noise,
        biases and factors stay as they are. A second rating of a pair takes the place of the first:
        it moves q by as much as the two differ. Rows without times, where others have them, are as
        late as the latest. Ctrl-C leaves the model as it was.
        """
        self._check_fitted()
        with self._all_or_nothing():
            state = update_ratings(
                RatingState(self.users_, self.items_, self.history_, self.noise_),
                self.read(data, self._text_ids(data)),
                prior_noise=self.prior_noise_,
                offset=self.offset_,
                seed=self.seed_,
                threads=self.threads,
                progress=self.progress,
            )
            self.users_, self.items_, self.history_, self.noise_ = state
        return self

    def fold_in(self, items: Any, ratings: Any = None, *, unknown: str = "error") -> Person:
        """Return q of a user who is not in the model, from what they have rated.

        Parameters
        ----------
        items, ratings
            Ids and ratings, or one dict of both. Without any, q is the prior.
        unknown
            What to do about an item that is not in the model: "error", or "prior".

        Returns
        -------
        Person
            May stand in the place of a user in `predict` and `recommend`. The model stays as it is.
        """
        self._check_fitted()
        if isinstance(items, Mapping):
            items, ratings = list(items), list(items.values())
        keys = self.items_.keys(items, unknown) if np.size(items) else np.zeros(0, np.int64)
        values = np.atleast_1d(np.asarray([] if ratings is None else ratings, np.float64))
        if values.shape != keys.shape or not np.isfinite(values).all():
            raise ModelError("fold_in needs a finite rating for each item")
        known = keys >= 0
        if len(np.unique(keys[known])) < known.sum():
            raise ModelError("fold_in has two ratings of one item")
        return Person(self._conditional(keys, values, -1).side(), keys[known], values[known])

    # --- asking ----------------------------------------------------------------------------

    def predict(
        self, users: Any, items: Any, *, return_std: bool = False, unknown: str = "error"
    ) -> Any:
        """Return the expected ratings of items by users, pair by pair.

        Parameters
        ----------
        users, items
            Ids, as many of both, or one of either. A `Person` may stand for the user.
        return_std
            Return the standard deviation of a new rating as well, the noise included.
        unknown
            What to do about ids that are not in the model: "error", or "prior".
        """
        mean, std = self._predicted(users, items, unknown)
        mean = np.clip(mean, *self.range_)
        return (mean, std * np.float32(self.spread_.scale)) if return_std else mean

    def predict_interval(
        self,
        users: Any,
        items: Any,
        level: float = 0.9,
        *,
        clip: bool = True,
        unknown: str = "error",
    ) -> tuple[Floats, Floats]:
        """Return intervals that hold a new rating with the probability that is asked for.

        `clip=False` lets them reach beyond the least and the greatest rating.
        """
        return self._interval(self._predicted(users, items, unknown), level, clip)

    # --- inside ----------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_whole("factors", self.factors, 0)
        for name, kinds in (("covariance", Covariance), ("noise", Noise)):
            check_choice(name, getattr(self, name), get_args(kinds))
        check_number("calibrate", self.calibrate, 0)
        if not self.calibrate < 0.5:
            raise ModelError(f"calibrate must be a share below 0.5, not {self.calibrate!r:.60}")
        check_number("max_sweeps", self.max_sweeps, 1)
        check_number("tol", self.tol, 0)
        check_range(self.range)
        self._check_reading(events=False)

    def read(self, data: Any, text_ids: Collection[str] = ()) -> Ratings:
        """Return data as a table of ratings, in the way that `fit` reads it."""
        return read_ratings(
            data,
            columns=self.columns,
            duplicates=self.duplicates,
            range=self.range,
            text_ids=text_ids,
        )

    def _held_out(self, count: int) -> NDArray[np.bool_]:
        """Choose the ratings from which the intervals are learned."""
        held = np.zeros(count, bool)
        size = min(int(self.calibrate * count), HELD_OUT)
        rng = np.random.default_rng([self.seed_, 1])
        held[rng.choice(count, size if size >= 50 else 0, replace=False)] = True
        return held

    def _own_state(self) -> tuple[dict[str, Any], Arrays]:
        about = {
            "range": self.range_,
            "prior_noise": self.prior_noise_,
            "scale": self.spread_.scale,
        }
        return about, {"noise": self.noise_, "quantiles": self.spread_.quantiles}

    def _own_restore(self, about: dict[str, Any], arrays: Arrays) -> None:
        low, high = check_range(about["range"]) or (1.0, 0.0)
        need(-LARGE <= low <= high <= LARGE, "damaged: the range of ratings makes no sense")
        self.range_, self.fit_, self.sweeps_ = (low, high), None, None
        self.prior_noise_ = number(about, "prior_noise", -(LARGE**2), LARGE**2)
        need(self.prior_noise_ >= SMALL, "damaged: the noise is no variance")
        self.noise_, quantiles = arrays["noise"], arrays["quantiles"]
        need((np.diff(quantiles) >= 0).all(), "damaged: the quantiles are not in order")
        self.spread_ = Spread(number(about, "scale", 0, LARGE), quantiles)

    def _on_scale(self, scores: Floats) -> Floats:
        return np.clip(scores, *self.range_)

    def _noise(self, users: Keys) -> Floats:
        """Return the variance of the noise for users."""
        known = self.noise_[np.maximum(users, 0)]
        return np.where(users < 0, np.float32(self.prior_noise_), known)

    def _moments(self, users: Any, items: Any) -> tuple[Floats, Floats]:
        """Return the mean and the standard deviation of new ratings, by keys."""
        keys = np.asarray(users, np.int64)
        mean, var = score(self.users_.at(keys), self.items_.at(np.asarray(items, np.int64)))
        return mean + np.float32(self.offset_), np.sqrt(var + self._noise(keys))

    def predict_keys(self, users: Any, items: Any) -> tuple[Floats, Floats]:
        """Return expected ratings and their standard deviations, by keys; -1 is unknown."""
        mean, std = self._moments(users, items)
        return np.clip(mean, *self.range_), std * np.float32(self.spread_.scale)

    def interval_of_keys(self, users: Any, items: Any, level: float) -> tuple[Floats, Floats]:
        """Return intervals for new ratings, by keys; -1 is unknown."""
        return self._interval(self._moments(users, items), level)

    def _interval(
        self, moments: tuple[Floats, Floats], level: float, clip: bool = True
    ) -> tuple[Floats, Floats]:
        """Return intervals around means, as wide as the ratings that were held out ask for."""
        mean, std = moments
        reach = np.float32(self.spread_.reach(level)) * std
        low, high = self.range_ if clip else (-np.inf, np.inf)
        return np.clip(mean - reach, low, high), np.clip(mean + reach, low, high)

    def _predicted(self, users: Any, items: Any, unknown: str) -> tuple[Floats, Floats]:
        self._check_fitted()
        item = self.items_.keys(items, unknown)
        if isinstance(users, Person):
            mean, var = score(users.side.at(np.zeros(len(item), np.int64)), self.items_.at(item))
            return mean + np.float32(self.offset_), np.sqrt(var + np.float32(self.prior_noise_))
        user = self.users_.keys(users, unknown)
        if len(user) != len(item) and 1 not in (len(user), len(item)):
            raise ModelError(f"there are {len(user)} users and {len(item)} items; give as many")
        return self._moments(*np.broadcast_arrays(user, item))

    def _parts(self, items: Keys, ratings: Floats, user: int, one: Side) -> Array:
        return self._conditional(items, ratings, user).parts(one)

    def _conditional(self, items: Keys, ratings: Any, user: int) -> UserPosterior:
        """Return a user's posterior given the items."""
        noise = 1 / float(self._noise(np.array([user]))[0])
        centred = np.asarray(ratings, np.float64) - self.offset_
        return UserPosterior.of(self.items_.at(items), centred, noise, self.users_.prior)

"""`RatingModel`: predictions and recommendations from ratings, with uncertainty."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError, RatingsError, argument
from svmp.inference.running.seeds import Seed, whole_seed
from svmp.inference.running.stopping import Interrupt, catch_interrupt
from svmp.parts.memory import parse_memory
from svmp.parts.sources import Source
from svmp.posterior.result.result import Fit
from svmp.ratings import Ratings, read_ratings
from svmp.ratings.columns import Columns
from svmp.ratings.read import check_range
from svmp.ratings.table import Duplicates, Ids
from svmp.recommend.estimator import check_choice, check_number, check_whole
from svmp.recommend.factor_model import Person
from svmp.recommend.files import Arrays, need
from svmp.recommend.fold import Array, UserPosterior
from svmp.recommend.history import History
from svmp.recommend.learn import Learned, LearnSettings, learn
from svmp.recommend.learn_parts import learn_parts
from svmp.recommend.network import Form, Noise
from svmp.recommend.out_of_core import MemoryNeeds, history_of, parts_of, reporting
from svmp.recommend.part_ratings import RatingParts, summarise
from svmp.recommend.part_reader import PartReader
from svmp.recommend.schema import LARGE, SMALL, ArraySpec, number
from svmp.recommend.side import EntityTable, Floats, Keys, Side, score_pairs
from svmp.recommend.spread import GRID, Spread
from svmp.recommend.stages import StageRecord
from svmp.recommend.streaming import StreamingModel
from svmp.recommend.update import RatingState, update_ratings

HELD_OUT = 20_000
"""Maximum number of held-out ratings."""
FEWEST = 50
"""Minimum number of held-out ratings; with fewer, none are held out."""


class RatingModel(StreamingModel):
    """Ratings as r = mean + t_item a_user + s_user b_item + u_user . v_item + noise.

    All terms are Normal: biases a and b, slopes s and t around 1, and factors u and v. The
    precisions of all of them and of the noise are learned; there is nothing to tune.

    Parameters
    ----------
    factors
        Number of factors of a user and of an item. They are dropped if held-out ratings are
        predicted better without.
    covariance
        "diagonal": q factorises over all scalars; "full": the factors, bias and slope of a user,
        and those of an item, have a covariance matrix, which predicts better. "auto" is "full"
        unless that takes much more memory or time: with few ratings per user and item for the
        number of factors, with very many ratings, if nothing is held out, if `max_sweeps` is below
        30, or if ratings are in parts.
    noise
        "user": each user has a noise precision; "shared": there is one for all.
    range
        The least and the greatest rating, to which predictions are clipped; by default those of the
        data.
    calibrate
        Share of the ratings, at most 20,000, that are held out at first: for early stopping, to
        decide whether to keep factors, and to calibrate intervals. A few sweeps over all ratings
        follow. With 0 nothing is held out.
    columns, duplicates
        How to read data, see `svmp.ratings.read_ratings`.
    max_sweeps, tol
        Maximum number of sweeps, including those without factors and those over all ratings; and
        the relative decrease of the held-out error below which the run stops.
    seed
        As for `svmp.fit`, or a `numpy.random.Generator`, or None; `seed_` is what `fit` has used.
    threads, progress
        As for `svmp.fit`.

    Attributes
    ----------
    users_, items_
        Ids and q of all users and items; `history_` has their ratings. Unless factors were dropped,
        the vectors of `users_.side.mean` are (u, a, s), those of `items_.side.mean` are (v, t, b).
    status_
        How the fit ended, in words: usually "stopped early: the held-out error no longer fell".
    fit_
        The final fit, with its `bound` and `trace`, of the few last sweeps over all ratings.
        `sweeps_` is the number of all sweeps. These three are not saved.
    stages_
        A record of each stage of the search on held-out ratings: number of factors, sweeps, seconds
        and RMSE. It is not saved.
    spread_
        Distribution of the errors of held-out ratings.
    offset_
        The mean in the equation above: that of the ratings, plus the mean residual.

    >>> from svmp.datasets import netflix_shaped
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
    status_: str | None
    sweeps_: float | None
    stages_: tuple[StageRecord, ...]

    def __init__(
        self,
        factors: int = 32,
        *,
        covariance: Form = "auto",
        noise: Noise = "user",
        range: tuple[float, float] | None = None,
        calibrate: float = 0.05,
        columns: Columns | None = None,
        duplicates: Duplicates = "error",
        seed: Seed = 0,
        max_sweeps: float = 150,
        tol: float = 1e-4,
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

    def fit(self, data: Any, *, memory: int | str | None = None, client: Any = None) -> Self:
        """Fit to ratings: a path, a table, or arrays, see `svmp.ratings.read_ratings`.

        Ctrl-C ends the fit early with what was learned so far, and sets `interrupted_`. Before the
        first sweep it raises KeyboardInterrupt and leaves the model unchanged.

        Parameters
        ----------
        data
            The ratings; or ratings in parts, which need not fit into memory: `svmp.parquet(...)` or
            another source of `svmp.Parts`. All ratings of a user must be in the same part, as in
            those that `svmp.ratings.partition` writes.
        memory
            Memory to use, as "4GB", if the ratings are in parts; a path is then that of Parquet
            files, as `"ratings/*.parquet"`. By default about 1 GB are used for the rows of parts.
            If the ratings themselves do not fit, `history_` is empty, with a warning.
        client
            A Dask client whose workers process the parts.
        """
        self._check_parameters()
        limit = None if memory is None else parse_memory(memory)
        in_parts = isinstance(data, Source) or memory is not None or client is not None
        source = parts_of(data, self.columns) if in_parts else None
        ratings = self.read(data) if source is None else None
        with self._all_or_nothing(), catch_interrupt(self.progress is not False) as interrupt:
            if ratings is not None:
                self._learn(ratings)
            elif source is not None:
                self._learn_parts(source, limit, client, interrupt)
            if interrupt.pressed and not self.sweeps_:
                raise KeyboardInterrupt
            self._changed(anew=True)
            self.interrupted_ = interrupt.pressed
            if interrupt.pressed and self.fit_ is not None:
                self.fit_, self.status_ = replace(self.fit_, status="interrupted"), "interrupted"
        return self

    def _learn(self, ratings: Ratings) -> None:
        self.seed_ = whole_seed(self.seed)
        self.offset_ = float(ratings.rating.mean(dtype=np.float64))
        self.range_ = self.range or (float(ratings.rating.min()), float(ratings.rating.max()))
        found = learn(ratings, self._held_out(len(ratings)), self.offset_, self._settings())
        self._keep(found, ratings.user_ids, ratings.item_ids)
        self.history_ = History.of(ratings)

    def _learn_parts(
        self, source: Source, memory: int | None, client: Any, interrupt: Interrupt
    ) -> None:
        reader = PartReader(source, self.columns, self.duplicates, self.range)
        with reporting(self.progress) as report:
            about = summarise(reader, report, lambda: interrupt.pressed)
            needs = MemoryNeeds.of(about, self.factors, self.covariance)
            of_parts = None if memory is None else needs.left(memory)
            self.seed_, self.offset_ = whole_seed(self.seed), about.mean
            self.range_ = self.range or (about.low, about.high)
            size = min(int(self.calibrate * about.ratings), HELD_OUT)
            share = size / about.ratings if size >= FEWEST else 0.0
            parts = RatingParts.of(reader, about, self.seed_, share)
            found = learn_parts(parts, about, self._settings(), of_parts, client, report)
            self._keep(found, about.user_ids, about.item_ids)
            fits = memory is None or needs.of_history <= memory
            self.history_ = history_of(parts, about, report) if fits else History.empty(about.users)
        if not fits:
            warnings.warn(needs.without_history(), UserWarning, stacklevel=3)

    def _settings(self) -> LearnSettings:
        return LearnSettings(
            self.factors,
            self.covariance,
            self.noise,
            self.max_sweeps,
            self.tol,
            self.seed_,
            self.threads,
            self.progress,
        )

    def _keep(self, found: Learned, user_ids: Ids, item_ids: Ids) -> None:
        self.fit_, self.sweeps_, self.spread_ = found.fit, found.sweeps, found.spread
        self.stages_, self.status_ = found.stages, found.status
        self.offset_ += found.shift
        self.users_ = EntityTable("user", user_ids, found.users, found.any_user)
        self.items_ = EntityTable("item", item_ids, found.items, found.any_item)
        self.noise_ = np.array(np.broadcast_to(found.noise, len(user_ids)), np.float32)
        self.prior_noise_ = float(np.mean(found.noise))

    def update(self, data: Any) -> Self:
        """Update the model with more ratings, of known and of new users and items.

        The current q is the prior of the new rows; only these are read. The precisions of noise,
        biases and factors do not change. A second rating of a pair replaces the first: q moves in
        proportion to their difference. New rows without times get the latest time of the history.
        A rating outside `range_` is refused. Ctrl-C leaves the model unchanged.
        """
        self._check_fitted()
        with self._all_or_nothing():
            ratings = self.read(data, self._text_ids(data))
            self._check_scale(ratings, self.range_)
            state = update_ratings(
                RatingState(self.users_, self.items_, self.history_, self.noise_),
                ratings,
                prior_noise=self.prior_noise_,
                offset=self.offset_,
                seed=self.seed_,
                threads=self.threads,
                progress=self.progress,
            )
            self.users_, self.items_, self.history_, self.noise_ = state
            self._changed(anew=False)
        return self

    def fold_in(self, items: Any, ratings: Any = None, *, unknown: str = "error") -> Person:
        """Return q of a user who is not in the model, given their ratings.

        Parameters
        ----------
        items, ratings
            Ids and ratings, or one dict of both. Without any, q is the prior.
        unknown
            How to treat an item that is not in the model: "error", or "prior".

        Returns
        -------
        Person
            Can be passed as a user to `predict` and `recommend`. The model does not change.
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
        """Return the expected ratings of items by users, for each pair.

        Parameters
        ----------
        users, items
            Ids: arrays of the same length, or a single one of either. The user may be a `Person`.
        return_std
            Also return the standard deviation of a new rating, including the noise.
        unknown
            How to treat ids that are not in the model: "error", or "prior".
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
        """Return prediction intervals of new ratings at the given level.

        With `clip=False` they may exceed the range of ratings.
        """
        return self._interval(self._predicted(users, items, unknown), level, clip)

    # --- inside ----------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_whole("factors", self.factors, 0)
        for name, kinds in (("covariance", Form), ("noise", Noise)):
            check_choice(name, getattr(self, name), get_args(kinds))
        check_number("calibrate", self.calibrate, 0)
        if not self.calibrate < 0.5:
            raise ModelError(f"calibrate must be a share below 0.5, not {self.calibrate!r:.60}")
        check_number("max_sweeps", self.max_sweeps, 1)
        check_number("tol", self.tol, 0)
        check_range(self.range)
        self._check_reading(events=False)

    def read(self, data: Any, text_ids: Collection[str] = ()) -> Ratings:
        """Read data into a table of ratings, in the same way as `fit`."""
        ratings = read_ratings(
            data,
            columns=self.columns,
            duplicates=self.duplicates,
            range=self.range,
            text_ids=text_ids,
        )
        if self.range is not None:
            self._check_scale(ratings, self.range)
        return ratings

    def _check_scale(self, ratings: Ratings, span: tuple[float, float]) -> None:
        """Raise if a rating is outside a range."""
        off = off_scale(ratings.rating, span)
        if off is not None:
            who, what = ratings.user_ids[ratings.user[off]], ratings.item_ids[ratings.item[off]]
            said = beyond(float(ratings.rating[off]), span)
            raise RatingsError(f"user {who!s:.60}, item {what!s:.60}: {said}")

    def _held_out(self, count: int) -> NDArray[np.bool_]:
        """Choose the held-out ratings at random."""
        held = np.zeros(count, bool)
        size = min(int(self.calibrate * count), HELD_OUT)
        rng = np.random.default_rng([self.seed_, 1])
        held[rng.choice(count, size if size >= FEWEST else 0, replace=False)] = True
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
        need(-LARGE <= low <= high <= LARGE, "damaged: the range of ratings is invalid")
        self.range_, self.fit_, self.sweeps_, self.stages_ = (low, high), None, None, ()
        self.status_ = None
        self.prior_noise_ = number(about, "prior_noise", -(LARGE**2), LARGE**2)
        need(self.prior_noise_ >= SMALL, "damaged: the noise variance is invalid")
        self.noise_, quantiles = arrays["noise"], arrays["quantiles"]
        need((np.diff(quantiles) >= 0).all(), "damaged: the quantiles are not in order")
        self.spread_ = Spread(number(about, "scale", 0, LARGE), quantiles)

    def _on_scale(self, scores: Floats) -> Floats:
        return np.clip(scores, *self.range_)

    def _noise(self, users: Keys) -> Floats:
        """Return the variance of the noise of users, by keys; -1 is unknown."""
        known = self.noise_[np.maximum(users, 0)]
        return np.where(users < 0, np.float32(self.prior_noise_), known)

    def _moments(
        self, keys: Keys, users: Side | EntityTable, user: Keys, item: Keys
    ) -> tuple[Floats, Floats]:
        """Return the mean and the standard deviation of new ratings; see `_pairs`."""
        mean, var = score_pairs(users, user, self.items_, item)
        return mean + np.float32(self.offset_), np.sqrt(var + self._noise(keys))

    def _moments_of_keys(self, users: Any, items: Any) -> tuple[Floats, Floats]:
        user, item = np.asarray(users, np.int64), np.asarray(items, np.int64)
        return self._moments(user, self.users_, user, item)

    def predict_keys(self, users: Any, items: Any) -> tuple[Floats, Floats]:
        """Return expected ratings and their standard deviations, by keys; -1 is unknown."""
        mean, std = self._moments_of_keys(users, items)
        return np.clip(mean, *self.range_), std * np.float32(self.spread_.scale)

    def interval_of_keys(self, users: Any, items: Any, level: float) -> tuple[Floats, Floats]:
        """Return intervals for new ratings, by keys; -1 is unknown."""
        return self._interval(self._moments_of_keys(users, items), level)

    def _interval(
        self, moments: tuple[Floats, Floats], level: float, clip: bool = True
    ) -> tuple[Floats, Floats]:
        """Return intervals around means, calibrated on the held-out ratings."""
        mean, std = moments
        reach = np.float32(self.spread_.reach(level)) * std
        low, high = self.range_ if clip else (-np.inf, np.inf)
        return np.clip(mean - reach, low, high), np.clip(mean + reach, low, high)

    def _predicted(self, users: Any, items: Any, unknown: str) -> tuple[Floats, Floats]:
        return self._moments(*self._pairs(users, items, unknown))

    def _parts(self, items: Keys, ratings: Floats, user: int, one: Side) -> Array:
        return self._conditional(items, ratings, user).parts(one)

    def _conditional(self, items: Keys, ratings: Any, user: int) -> UserPosterior:
        """Return a user's posterior given the items."""
        noise = 1 / float(self._noise(np.array([user]))[0])
        centred = np.asarray(ratings, np.float64) - self.offset_
        return UserPosterior.of(self.items_.at(items), centred, noise, self.users_.prior)


def off_scale(ratings: NDArray[Any], span: tuple[float, float]) -> int | None:
    """Return the place of the first rating that is not within a range; None if all are."""
    with np.errstate(over="ignore"):  # infinity is a bound too
        low, high = np.float32(span[0]), np.float32(span[1])
    single = np.asarray(ratings, np.float32)
    outside = ~((single >= low) & (single <= high))
    return int(np.argmax(outside)) if outside.any() else None


def beyond(rating: float, span: tuple[float, float]) -> str:
    """Return that a rating is outside a range, and what to do if it is valid."""
    low, high = span
    wide = min(low, rating), max(high, rating)
    valid = argument("range", "({:g}, {:g})".format(*wide), "{:g},{:g}".format(*wide))
    return (
        f"the rating {rating:g} is not between {low:g} and {high:g}, the range of the ratings of "
        f"this model; if it is valid, fit the model with {valid}"
    )

"""`EventModel`: recommendations from events such as clicks, plays and purchases."""

from __future__ import annotations

from collections.abc import Callable, Collection
from numbers import Real
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError, RatingsError
from svmp.fitting.online import Online
from svmp.inference.running.seeds import Seed, whole_seed
from svmp.inference.running.stopping import catch_interrupt
from svmp.inference.steps import HoldThenDecay
from svmp.kernels.machine.threads import use_threads
from svmp.posterior.marginals.posterior import Posterior
from svmp.ratings import Ratings, read_ratings
from svmp.ratings.columns import Columns
from svmp.ratings.table import Duplicates
from svmp.recommend.estimator import check_choice, check_number, check_whole
from svmp.recommend.event_state import EventSettings, EventState, event_times
from svmp.recommend.factor_model import Person
from svmp.recommend.files import Arrays, need
from svmp.recommend.fold import Array, Explanation
from svmp.recommend.fold_events import fold_in_events
from svmp.recommend.graph import EventGraph, network, popularity, side_of
from svmp.recommend.history import History
from svmp.recommend.more_events import update_events
from svmp.recommend.population import Population
from svmp.recommend.probability import interval, moments, probability
from svmp.recommend.schema import ArraySpec
from svmp.recommend.side import EntityTable, Floats, Keys, Side, score, score_all, variance_all
from svmp.recommend.streaming import StreamingModel
from svmp.recommend.top import Explore, scorer, shown
from svmp.recommend.vectors import Vectors

LARGEST = 1e9
"""Limit of ratios, powers and precisions: larger ones have no use, and may overflow."""
MOST = 10**6
"""Limit of the numbers of factors and iterations."""
Rule = Literal["z", "z + 1/2 log pi", "probability"]
MOST_OF_ONE = 10_000_000
"""Maximum number of events in a fold-in."""
CERTAIN = 1e-9
"""Variance of the users' biases, which are 0: every user takes the same share of what they
consider."""


class EventModel(StreamingModel):
    """Events as a random graph: an item that was considered is taken with probability 1/(1+e^-z).

    z = u_user . v_item + b_item - log(ratio), with Normal terms. If a user did not take an item,
    they may never have considered it. So negatives (items that were considered and not taken) are
    sampled at random in every iteration, with odds that increase with popularity.

    Parameters
    ----------
    factors
        Number of factors of a user and of an item.
    ratio
        Number of negatives per event. More are better, and take longer.
    power
        Negatives are drawn with odds proportional to popularity to this power.
    score
        Ranking score: "z"; "z + 1/2 log pi", with pi the odds of being considered, which restores
        some of the popularity that z lacks; or the "probability" of being taken, which takes the
        uncertainty of z into account.
    precision
        Prior precision of the factors; None learns one for each factor.
    iterations, hold, kappa
        Number of graphs that are drawn. The first `hold` iterations take full steps; from then on
        iteration t takes a step of (1 + t)^-kappa, so that q is an average over graphs.
    at_least
        Least rating that counts as an event, if the data are ratings. By default any above 0.
    counts
        Whether a rating is the number of times that the event happened.
    columns, duplicates
        How to read data, see `svmp.ratings.read_ratings`; users and items are enough.
    seed
        As for `svmp.fit`, or a `numpy.random.Generator`, or None; `seed_` is what `fit` has used.
    threads, progress
        As for `svmp.fit`.

    Attributes
    ----------
    users_, items_
        Ids and q of all users and items; `history_` has their events.
    odds_
        Odds of each item as a negative, with a sum of 1.
    learned_
        Number of events of each item when it was last learned from all of them.

    >>> rng = np.random.default_rng(0)
    >>> user, item = rng.integers(0, 40, 600), rng.integers(0, 15, 600)
    >>> item += 15 * (user % 2)  # two groups of users, with separate items
    >>> model = EventModel(factors=2, progress=False).fit((user, item))
    >>> bool((model.recommend(7, n=3).items >= 15).all())
    True
    """

    WIDTHS: ClassVar = {"thompson": 0.5}
    ARRAYS: ClassVar = {
        "odds": ArraySpec(np.float64, ("items",), 1e-300, 1.0),
        "learned": ArraySpec(np.int64, ("items",), 0, np.inf),
    }
    odds_: NDArray[np.float64]
    learned_: Keys

    def __init__(
        self,
        factors: int = 32,
        *,
        ratio: float = 3.0,
        power: float = 1.0,
        score: Rule = "z + 1/2 log pi",
        precision: float | None = 1.0,
        iterations: int = 8,
        hold: int = 5,
        kappa: float = 0.7,
        at_least: float | None = None,
        counts: bool = False,
        columns: Columns | None = None,
        duplicates: Duplicates = "sum",
        seed: Seed = 0,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.factors = factors
        self.ratio = ratio
        self.power = power
        self.score = score
        self.precision = precision
        self.iterations = iterations
        self.hold = hold
        self.kappa = kappa
        self.at_least = at_least
        self.counts = counts
        self.columns = columns
        self.duplicates = duplicates
        self.seed = seed
        self.threads = threads
        self.progress = progress

    # --- learning --------------------------------------------------------------------------

    def fit(self, data: Any) -> Self:
        """Fit to events: a path, a table, or arrays, see `svmp.ratings.read_ratings`.

        Ctrl-C ends the fit early with what was learned so far, and sets `interrupted_`. Before the
        first iteration it raises KeyboardInterrupt and leaves the model unchanged.
        """
        self._check_parameters()
        ratings = self.read(data)
        with self._all_or_nothing():
            self._learn(ratings)
        return self

    def _learn(self, ratings: Ratings) -> None:
        self.seed_ = whole_seed(self.seed)
        self.history_ = History.of(ratings)
        self.offset_ = -float(np.log(self.ratio))
        events = self._events(self.history_, ratings.items)
        self.learned_ = np.bincount(events.item, minlength=ratings.items)
        self.odds_ = events.weights
        steps = HoldThenDecay(self.hold, self.kappa, tau=1.0)
        tell = self.progress is not False
        run = Online(steps, self.seed_, threads=self.threads, tell=tell)
        with use_threads(self.threads, tell), catch_interrupt(tell) as interrupt:
            for t in shown(range(1, self.iterations + 1), self.progress, "drawing graphs", few=1):
                item = events.draw(self.seed_, t)
                run.advance(network(events, item, self.factors, self.precision))
                if interrupt.pressed:
                    break
        self._keep(run.posteriors, ratings)
        self._changed(anew=True)
        self.interrupted_ = interrupt.pressed

    def update(self, data: Any) -> Self:
        """Update the model with more events, of known and of new users and items.

        The current q is the prior of these events. The update also samples users who passed over
        new items, and reads all events of an item that has a quarter more of them than when it was
        last learned. Users and items without new events do not change. An event that the model
        already contains counts again. Ctrl-C leaves the model unchanged.
        """
        self._check_fitted()
        with self._all_or_nothing():
            state, settings = self._state(), self._settings()
            state = update_events(state, settings, self.read(data, self._text_ids(data)))
            self.users_, self.items_, self.history_, self.odds_, self.learned_ = state
            self._changed(anew=False)
        return self

    def fold_in(self, items: Any, counts: Any = None, *, unknown: str = "error") -> Person:
        """Return q of a user who is not in the model, given the items that they took.

        Parameters
        ----------
        items, counts
            Ids, and numbers of events if the model counts. Without any, q is the prior.
        unknown
            How to treat an item that is not in the model: "error", or "prior" to ignore it.

        Returns
        -------
        Person
            Can be passed as a user to `predict` and `recommend`. The model does not change.
        """
        self._check_fitted()
        keys = self.items_.keys(items, unknown) if np.size(items) else np.zeros(0, np.int64)
        times = np.ones(len(keys)) if counts is None else np.atleast_1d(counts)
        if times.shape != keys.shape or not np.all(np.asarray(times) > 0):
            raise ModelError("fold_in needs a positive count for each item")
        known = keys >= 0
        seen, first = np.unique(keys[known], return_index=True)
        if len(seen) < known.sum():
            raise ModelError("fold_in has an item twice; give its count instead")
        counted = event_times(times[known][first], self.counts)
        if counted.sum() > MOST_OF_ONE:
            raise ModelError(f"fold_in takes at most {MOST_OF_ONE:,} events of a user")
        side, _ = fold_in_events(self._state(), self._settings(), seen, counted)
        return Person(side, seen, counted.astype(np.float32))

    # --- asking ----------------------------------------------------------------------------

    def predict(
        self, users: Any, items: Any, *, return_std: bool = False, unknown: str = "error"
    ) -> Any:
        """Return the probability that users take items which they consider, for each pair.

        Parameters
        ----------
        users, items
            Ids: arrays of the same length, or a single one of either. The user may be a `Person`.
        return_std
            Also return the standard deviation of the probability.
        unknown
            How to treat ids that are not in the model: "error", or "prior".

        Returns
        -------
        Expected probabilities, or a pair with their standard deviations. The logit of a probability
        is Normal; `predict_interval` returns intervals of the same distribution.
        """
        found, std = moments(*self._logits(users, items, unknown))
        return (found, std) if return_std else found

    def vectors(self, users: Any = None) -> Vectors:
        """Return users and items as vectors whose inner products rank, for approximate search.

        See `FactorModel.vectors`. Probabilities also depend on variances, and have no vectors.
        """
        if self.score == "probability":
            raise ModelError(
                "with score='probability' rankings are not inner products of vectors; fit with "
                "another score"
            )
        return super().vectors(users)

    def predict_interval(
        self, users: Any, items: Any, level: float = 0.9, *, unknown: str = "error"
    ) -> tuple[Floats, Floats]:
        """Return credible intervals of the probabilities, at the given level.

        They are central intervals, unless these do not contain the mean that `predict` returns: the
        distribution is skewed if there are few data, and such an interval ends at the mean.
        """
        if not 0 < level < 1:
            raise ModelError(f"the level of an interval must be between 0 and 1, not {level}")
        return interval(*self._logits(users, items, unknown), level)

    def explain(self, user: Any, item: Any) -> Explanation:
        """Explain a logit z: how much each of the items that a user took contributes to it.

        The contribution of the negatives is in `rest`. The user may be a `Person`.
        """
        return super().explain(user, item)

    # --- inside ----------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        for name, least in (("factors", 1), ("iterations", 1), ("hold", 0)):
            check_whole(name, getattr(self, name), least)
            check_number(name, getattr(self, name), least, MOST)
        for name in ("ratio", "power", "kappa", "precision"):
            value = getattr(self, name)
            learned = name == "precision" and value is None
            if not learned and not (isinstance(value, Real) and 0 <= float(value) <= LARGEST):
                raise ModelError(
                    f"{name} must be a positive number of at most {LARGEST:g}, not {value!r:.60}"
                )
            if value == 0 and name != "power":
                raise ModelError(f"{name} must be a positive number, not 0")
        check_choice("score", self.score, get_args(Rule))
        if self.at_least is not None:
            check_number("at_least", self.at_least, -np.inf)
        check_choice("counts", self.counts, (False, True))
        self._check_reading(events=True)

    def read(self, data: Any, text_ids: Collection[str] = ()) -> Ratings:
        """Read the events into a table of all users and items in the data."""
        ratings = read_ratings(
            data,
            columns=self.columns,
            duplicates=self.duplicates,
            events=True,
            text_ids=text_ids,
        )
        least = self.at_least
        events = ratings.rating > 0 if least is None else ratings.rating >= least
        if not events.any():
            words = "above 0" if least is None else f"of {least:g} or more"
            raise RatingsError(f"there are no events: no rating is {words}")
        return ratings.take(np.flatnonzero(events))

    def _state(self) -> EventState:
        return EventState(self.users_, self.items_, self.history_, self.odds_, self.learned_)

    def _settings(self) -> EventSettings:
        return EventSettings(
            ratio=self.ratio,
            power=self.power,
            iterations=self.iterations,
            hold=self.hold,
            kappa=self.kappa,
            counts=self.counts,
            seed=self.seed_,
            threads=self.threads,
            offset=self.offset_,
        )

    def _events(self, history: History, items: int) -> EventGraph:
        times = event_times(history.rating, self.counts)
        begin = np.concatenate([[0], np.cumsum(times)])[history.begin]
        item = np.repeat(history.item, times)
        return EventGraph(begin, item, popularity(item, items, self.power), float(self.ratio))

    def _keep(self, q: dict[str, Posterior], ratings: Ratings) -> None:
        """Store q of users and items, and the prior of unknown ones."""
        zero, certain = np.zeros(ratings.users), np.full(ratings.users, CERTAIN)
        tau = {x: q[f"of_{x}"].mean if f"of_{x}" in q else self.precision for x in "uv"}
        of_u, of_v = (np.full(self.factors, tau[x]) for x in "uv")
        side = side_of(zero, certain, q["u"])
        self.users_ = EntityTable(
            "user", ratings.user_ids, side, Side.prior(1 / CERTAIN, of_u, full=False)
        )
        side = side_of(q["b"].mean, q["b"].var, q["v"])
        self.items_ = EntityTable(
            "item", ratings.item_ids, side, Side.prior(q["of_b"].mean, of_v, full=False)
        )

    def _logits(self, users: Any, items: Any, unknown: str) -> tuple[Floats, Floats]:
        """Return mean and variance of z of each pair."""
        _, known, user, item = self._pairs(users, items, unknown)
        mean, var = score(
            self._population(self.users_).shrunk(known.at(user)),
            self._population(self.items_).shrunk(self.items_.at(item)),
        )
        return mean + np.float32(self.offset_), var

    def _population(self, known: EntityTable) -> Population:
        """Return the population of users or of items, which is cached."""
        kept: dict[str, Population] = self.__dict__.setdefault("_populations", {})
        found = kept.get(known.what)
        if found is None or found.known is not known:
            found = kept[known.what] = Population.of(known)
        return found

    def _ranked(self) -> Side:
        items = self._population(self.items_).all
        if self.score != "z + 1/2 log pi":
            return items
        bias = items.bias + 0.5 * np.log(self.odds_).astype(np.float32)
        return Side(bias, items.bias_var, items.mean, items.cov)

    def _scorer(
        self, items: Side, explore: Explore, width: float, seed: Seed
    ) -> Callable[[int, Side], Floats]:
        shrunk = self._population(self.users_).shrunk
        if self.score != "probability" or explore is not None:
            of_block = scorer(items, explore, width, seed)
            return lambda block, users: of_block(block, users if explore is None else shrunk(users))
        shift = np.float32(self.offset_)
        return lambda block, users: probability(
            score_all(users, items) + shift, variance_all(shrunk(users), items)
        )

    def _pair_scores(self, users: Side, items: Side) -> tuple[Floats, Floats]:
        mean, std = super()._pair_scores(self._population(self.users_).shrunk(users), items)
        return moments(mean, std**2) if self.score == "probability" else (mean, std)

    def _parts(self, items: Keys, ratings: Floats, user: int, one: Side) -> Array:
        times = event_times(ratings, self.counts)
        _, posterior = fold_in_events(self._state(), self._settings(), items, times)
        return posterior.parts(one)[: len(items)]

    def _own_state(self) -> tuple[dict[str, Any], Arrays]:
        return {}, {"odds": self.odds_, "learned": self.learned_}

    def _own_restore(self, about: dict[str, Any], arrays: Arrays) -> None:
        self.odds_ = arrays["odds"]
        need(abs(self.odds_.sum() - 1) < 1e-6, "damaged: the odds do not add up to 1")
        event_times(self.history_.rating, self.counts)  # raises unless they are counts
        events = np.bincount(self.history_.item, minlength=len(self.items_))
        self.learned_ = arrays.get("learned", events)  # older models have no such array

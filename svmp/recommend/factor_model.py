"""Base class of the recommenders: users and items with biases and factors.

A subclass fits a network, stores q here, and defines how a score relates to an observation.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from svmp.errors import FileError, ModelError, naming
from svmp.inference.running.seeds import Seed, whole_seed
from svmp.locking import WAIT
from svmp.network.tables import Columns, first_and_last, text_table
from svmp.ratings import Ratings, read_ratings
from svmp.recommend import files
from svmp.recommend.estimator import BaseEstimator, check_choice, check_whole
from svmp.recommend.export import Exported, check_file, write_blocks
from svmp.recommend.fold import Array, Explanation
from svmp.recommend.history import History
from svmp.recommend.ranking import Block, Lists, Ranking, Rules, labels, pair_scores
from svmp.recommend.schema import (
    LARGE,
    ArraySpec,
    check,
    number,
    of_history,
    of_known,
    to_history,
    to_known,
)
from svmp.recommend.side import EntityTable, Floats, Keys, Side, score
from svmp.recommend.similar import Similarity
from svmp.recommend.top import Explore, scorer, shown
from svmp.recommend.vectors import Vectors, vectors_of


@dataclass(frozen=True, eq=False, repr=False)
class Top(Columns):
    """Items in decreasing order of their score: for one user a list, for several a row each.

    It is unpacked as `items, scores, stds`, printed as a table, and read as a table by data frames.
    A row with fewer items than requested ends with scores of NaN and items of -1, or ''.

    Attributes
    ----------
    items
        Their ids.
    scores, stds
        Expected score, clipped to the range of ratings, and its standard deviation under q.
    users
        Ids of the users, if they are several; else None.
    raw
        Expected scores before they are clipped; None for similarities.
    skipped
        Ids of users that are not in the model, and were skipped.
    """

    items: NDArray[Any]
    scores: Floats
    stds: Floats
    users: NDArray[Any] | None = None
    raw: Floats | None = None
    skipped: tuple[Any, ...] = ()

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter((self.items, self.scores, self.stds))

    def __len__(self) -> int:
        return 3

    def __getitem__(self, place: Any) -> Any:
        return (self.items, self.scores, self.stds)[place]

    def row(self, place: int) -> tuple[NDArray[Any], Floats, Floats]:
        """Return items, scores and standard deviations of one of several users."""
        return self.items[place], self.scores[place], self.stds[place]

    def columns_by_name(self) -> dict[str, NDArray[Any]]:
        """Return a row for each item of each user, as columns: what a table of it has."""
        items, scores, stds = self
        there = ~np.isnan(scores)
        rank = np.broadcast_to(np.arange(1, scores.shape[-1] + 1), scores.shape)
        columns = {"rank": rank, "item": items, "score": scores, "sd": stds}
        if scores.ndim > 1:
            users = np.arange(len(scores)) if self.users is None else self.users
            columns = {"user": np.broadcast_to(users[:, None], scores.shape), **columns}
        return {name: values[there] for name, values in columns.items()}

    def __repr__(self) -> str:
        columns = self.columns_by_name()
        return text_table(list(columns), first_and_last(columns))


@dataclass(frozen=True, eq=False)
class Person:
    """A user who is not in the model, with q given their own history.

    Attributes
    ----------
    side
        q of their bias and factors.
    seen, ratings
        Keys of the items they rated, and the ratings.
    """

    side: Side
    seen: Keys
    ratings: Floats

    @property
    def seen_lists(self) -> Lists:
        """Keys of the items they rated, as the list of a single user."""
        return Lists(np.array([0, len(self.seen)]), self.seen)


class Asked(NamedTuple):
    """Who gets recommendations, and which.

    Attributes
    ----------
    ranking
        Ranks items for them.
    keys, ids
        The users: keys, -1 for unknown ones, and ids.
    skipped
        Ids of unknown users that are left out.
    person
        The only user, if that is a `Person`.
    """

    ranking: Ranking
    keys: Keys
    ids: NDArray[Any]
    skipped: tuple[Any, ...]
    person: Person | None = None


class FactorModel(BaseEstimator, ABC):
    """Users and items with biases and factors.

    Attributes
    ----------
    users_, items_
        Ids and q of all users and items.
    history_
        The training data, sorted by user.
    offset_
        A constant that is added to every score.
    seed_
        The seed of the fit, a whole number.
    interrupted_
        Whether Ctrl-C ended the fit early.
    """

    WIDTHS: ClassVar[dict[str, float]] = {}
    """Default `width` of each kind of exploration; 1 if not listed."""
    ARRAYS: ClassVar[dict[str, ArraySpec]] = {}
    """Arrays of a saved model besides those of users, items and their history."""
    users_: EntityTable
    items_: EntityTable
    history_: History
    offset_: float
    seed: Seed
    seed_: int
    interrupted_: bool = False
    _origin: files.Origin | None = None
    """The saved version from which this model goes on, and which it may replace."""
    _saved: files.Origin | None = None
    """The version that this model was saved as, unless it has changed."""

    def recommend(
        self,
        users: Any,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        candidates: Any = None,
        exclude: Any = None,
        explore: Explore = None,
        width: float | None = None,
        items: Any = None,
        where: Mapping[str, Any] | None = None,
        boost: Mapping[str, Any] | None = None,
        quota: Mapping[str, Any] | None = None,
        diversity: float = 0.0,
        unknown: str = "error",
        seed: Seed = None,
        progress: bool | None = None,
    ) -> Top:
        """Return the n items with the highest scores, for one user or many.

        Parameters
        ----------
        users
            An id, an array of ids, or a `Person` from `fold_in`.
        n
            Number of items; if there are fewer, all of them.
        exclude_seen
            Leave out items that the user has rated.
        candidates, exclude
            Ids of the only items that may be recommended, and of items that may not. Candidates may
            be a list for each user, as `[[1, 2], [6]]` for two.
        explore
            None ranks by the expected score; "ucb" by that plus `width` standard deviations;
            "thompson" by the score under one draw from q per user, with `width` times the standard
            deviations of q.
        width
            By default 1, but 0.5 for "thompson" on events: with the full standard deviations, lists
            lose more relevant items than exploring is worth.
        items
            What is known about the items, for the next three: an `ItemTable`, or the path of a CSV
            or Parquet file, a data frame or a dict of columns, one of them of ids.
        where
            Conditions on the columns of `items` that a recommended item fulfils: by column a value,
            a list of which it has one, or a dict of "min", "max" and "not".
        boost
            Points that are added to scores before ranking: by column of numbers the points for each
            unit, or by column a dict of points by value. The scores returned are without them.
        quota
            How many items of a list may have the same value: by column a number for every value, or
            a dict of numbers by value.
        diversity
            Points that the score of an item loses in the ranking if one just like it is before it
            in the list, and in proportion if less similar: maximal marginal relevance, by the
            similarity of `similar_items`.
        unknown
            How to treat users that are not in the model: "error"; "prior", as without any data; or
            "skip": they are left out, and `skipped` of the result has their ids.
        seed
            Seed of the draws: a whole number for the same draws each time, or a
            `numpy.random.Generator`. By default they are different each time.
        progress
            Whether to show progress; by default on a terminal or in a notebook.

        Returns
        -------
        Top
            Items, expected scores and their standard deviations.
        """
        self._check_fitted()
        of_items = items, where, boost, quota, diversity
        rules = Rules(exclude_seen, candidates, exclude, explore, width, seed, *of_items)
        asked = self._asked(users, unknown, n, rules)
        found = np.empty((len(asked.keys), asked.ranking.n), np.int64)
        stds, raw = np.empty((2, *found.shape), np.float32)
        for rows, block in self._blocks(asked, progress):
            found[rows], raw[rows], stds[rows] = block
        ids, scores = labels(self.items_.ids, found), self._on_scale(raw)
        if isinstance(users, Person) or np.ndim(users) == 0:
            some = found[0] >= 0
            return Top(ids[0][some], scores[0][some], stds[0][some], raw=raw[0][some])
        return Top(ids, scores, stds, asked.ids, raw, asked.skipped)

    def recommend_all(
        self,
        path: str | os.PathLike[str],
        n: int = 10,
        *,
        users: Any = None,
        exclude_seen: bool = True,
        candidates: Any = None,
        exclude: Any = None,
        explore: Explore = None,
        width: float | None = None,
        items: Any = None,
        where: Mapping[str, Any] | None = None,
        boost: Mapping[str, Any] | None = None,
        quota: Mapping[str, Any] | None = None,
        diversity: float = 0.0,
        unknown: str = "error",
        seed: Seed = None,
        progress: bool | None = None,
    ) -> Exported:
        """Write the n best items of all users, or of some, to a Parquet or CSV file.

        They are those of `recommend`, written block by block in bounded memory. The columns are
        user, rank (from 1), item, score, unclipped (the score before it was clipped) and sd. The
        file takes its place when it is whole; Ctrl-C leaves none.

        Parameters
        ----------
        path
            The file, which ends in .parquet or .csv. It needs PyArrow.
        n
            Number of items of each user; users for whom there are fewer have fewer rows.
        users
            Ids; by default all users of the model, in its order.
        exclude_seen, candidates, exclude, explore, width, items, where, boost, quota, diversity
            As for `recommend`, and so are `unknown`, `seed` and `progress`.

        Returns
        -------
        Exported
            The numbers of users and of rows, and the users that were skipped.

        >>> import tempfile
        >>> from svmp.recommend import RatingModel
        >>> model = RatingModel(0, progress=False).fit(([1, 1, 2], [7, 8, 9], [4.0, 5.0, 3.0]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = model.recommend_all(f"{folder}/top.parquet", n=2)
        >>> written.users, written.rows
        (2, 3)
        """
        self._check_fitted()
        target = check_file(path)
        if users is not None and (isinstance(users, Person) or np.ndim(users) == 0):
            raise ModelError("users must be a list of ids; for a single user see recommend")
        of_items = items, where, boost, quota, diversity
        rules = Rules(exclude_seen, candidates, exclude, explore, width, seed, *of_items)
        asked = self._asked(users, unknown, n, rules)
        blocks = self._blocks(asked, progress)
        counts = write_blocks(target, asked.ids, self.items_.ids, blocks, self._on_scale)
        return Exported(target, *counts, asked.skipped)

    def vectors(self, users: Any = None) -> Vectors:
        """Return users and items as vectors whose inner products rank, for approximate search.

        The unclipped score of item n for user m is `users[m] @ items[n] + constant[m]`. Items that
        users have seen are not left out.

        Parameters
        ----------
        users
            Ids of users, or a `Person`; by default all users of the model.
        """
        self._check_fitted()
        if isinstance(users, Person):
            side, ids = users.side, None
        elif users is None:
            side, ids = self.users_.side, self.users_.ids
        else:
            keys = self.users_.keys(users)
            side, ids = self.users_.at(keys), self.users_.ids[keys]
        return vectors_of(side, self._ranked(), self.offset_, ids, self.items_.ids)

    def _asked(self, users: Any, unknown: str, n: int, rules: Rules) -> Asked:
        """Return who gets which items; all users if `users` is None."""
        ids = self.users_.ids if users is None else users
        keys = np.arange(len(ids)) if users is None else self._user_keys(users, unknown)
        kept = keys >= 0 if unknown == "skip" else np.ones(len(keys), bool)
        ranking = Ranking.of(self, n, rules, kept)
        if kept.all():
            person = users if isinstance(users, Person) else None
            return Asked(ranking, keys, np.asarray([] if person else ids), (), person)
        ids = np.asarray(ids)
        return Asked(ranking, keys[kept], ids[kept], tuple(ids[~kept].tolist()))

    def _blocks(self, asked: Asked, progress: bool | None) -> Iterator[tuple[slice, Block]]:
        """Yield the best items of users, block by block."""
        size = asked.ranking.size
        for start in shown(range(0, len(asked.keys), size), progress):
            keys = asked.keys[start : start + size]
            if asked.person is not None:
                some, seen = asked.person.side, asked.person.seen_lists
            else:
                some, seen = self.users_.at(keys), Lists(*self.history_.items(keys))
            yield slice(start, start + len(keys)), asked.ranking.block(start, some, seen)

    def _user_keys(self, users: Any, unknown: str) -> Keys:
        """Return the keys of users, -1 for unknown ones."""
        check_choice("unknown", unknown, ("error", "prior", "skip"))
        if isinstance(users, Person):
            return np.array([-1])
        if unknown == "skip" and np.ndim(users) == 0:
            raise ModelError("unknown='skip' is for several users, and this is a single one")
        return self.users_.keys(users, "error" if unknown == "error" else "prior")

    def similar_items(self, item: Any, n: int = 10) -> Top:
        """Return the items most similar to one, with similarities and their standard deviations.

        The similarity is the correlation, over all users, of the contributions of the factors to
        the scores of the two items: 1 if everybody who likes one more than expected likes the
        other.
        """
        return self._similar(self.items_, self.users_, item, n)

    def similar_users(self, user: Any, n: int = 10) -> Top:
        """Return the users most similar to one, with similarities and their standard deviations."""
        return self._similar(self.users_, self.items_, user, n)

    def explain(self, user: Any, item: Any) -> Explanation:
        """Explain a score: how much each of the user's own ratings contributes to it.

        The user may be a `Person`.
        """
        self._check_fitted()
        one = self.items_.at(self.items_.keys(item))
        key = -1 if isinstance(user, Person) else int(self.users_.keys(user)[0])
        if isinstance(user, Person):
            side, keys, ratings = user.side, user.seen, user.ratings
        else:
            rows = self.history_.rows(key)
            keys, ratings = self.history_.item[rows].astype(np.int64), self.history_.rating[rows]
            side = self.users_.at(np.array([key]))
        parts = self._parts(keys, ratings, key, one)
        base = self.offset_ + float(score(self.users_.prior, one)[0][0])
        found = float(self._on_scale(self.offset_ + score(side, one)[0])[0])
        order = np.argsort(-np.abs(parts), kind="stable")
        rest = found - base - float(parts.sum())
        ids = self.items_.ids[keys[order]]
        return Explanation(found, base, ids, ratings[order], parts[order], rest)

    def save(self, path: str | os.PathLike[str], *, wait: float = WAIT) -> None:
        """Write the model to a folder atomically; `svmp.recommend.load` reads it.

        A model that is there is replaced. If this one was loaded from there, or was saved there and
        then updated, and another process has saved a newer version in the meantime, a FileError is
        raised instead: load that one, and repeat the update. `svmp.recommend.lock` avoids it.

        Parameters
        ----------
        path
            The folder.
        wait
            Seconds to wait for another process that writes there.
        """
        self._check_fitted()
        arrays = of_known("users", self.users_) | of_known("items", self.items_)
        arrays |= of_history(self.history_)
        about = {
            "kind": type(self).__name__,
            "parameters": self.get_params() | {"seed": self.seed_},
            "offset": self.offset_,
        }
        more, others = self._own_state()
        ids = {"users": self.users_.ids, "items": self.items_.ids}
        both = {**about, **more}, {**arrays, **others}
        self._saved = files.write(path, *both, ids, origin=self._origin, wait=wait)
        self._origin = None

    def _changed(self, anew: bool) -> None:
        """Note that the model is not the one that was saved, but one fitted anew, or updated."""
        self._origin = None if anew else self._origin or self._saved
        self._saved = None

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Restore the model if an exception, or Ctrl-C, ends the block."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mapped: bool = True) -> Self:
        """Load a saved model.

        Its arrays are memory-mapped from the folder and read-only; with `mapped=False` they are
        read into memory, so that the folder may change afterwards.
        """
        about, arrays, ids = files.read(path, mapped)
        origin = files.Origin(os.path.realpath(path), files.version_of(about))
        try:
            kind, parameters = about.get("kind"), about.get("parameters", {})
            files.need(kind == cls.__name__, f"this is a {kind!s:.40}, not a {cls.__name__}")
            check(arrays, ids, cls.ARRAYS)
            try:
                model = cls(**parameters)
                with naming(flags=False):
                    model._check_parameters()
                model.seed_ = whole_seed(model.seed)
                if model.seed_ != model.seed:  # a saved seed is always a whole number
                    raise ValueError("the seed is not a whole number below 2**63")
                model.offset_ = number(about, "offset", -LARGE, LARGE)
                model.users_ = to_known("users", ids["users"], arrays)
                model.items_ = to_known("items", ids["items"], arrays)
                model.history_ = to_history(arrays)
                model._own_restore(about, arrays)
                model._origin = origin
            except (TypeError, KeyError, ValueError, OverflowError) as error:
                if isinstance(error, FileError):
                    raise
                raise FileError(f"damaged: model.json is invalid ({error!s:.100})") from None
        except FileError as error:
            raise FileError(f"{path}: {error}") from None
        return model

    def read(self, data: Any, text_ids: Collection[str] = ()) -> Ratings:
        """Read data into a table, in the same way as `fit`."""
        return read_ratings(data, text_ids=text_ids)

    def _text_ids(self, data: Any) -> list[str]:
        """Return whose ids in a file are text because the model's are: "user", "item"."""
        if not self.is_fitted or not isinstance(data, str | os.PathLike):
            return []
        return [known.what for known in (self.users_, self.items_) if known.ids.dtype.kind == "U"]

    def scores(self, users: Side) -> Floats:
        """Return the score by which items are ranked, of every user with every item."""
        return self._scorer(self._ranked(), None, 0.0, 0)(0, users)

    def _ranked(self) -> Side:
        """Return q of the items as it is used for ranking."""
        return self.items_.side

    def _scorer(
        self, items: Side, explore: Explore, width: float, seed: Seed
    ) -> Callable[[int, Side], Floats]:
        """Return a function of the number and the users of a block that scores them on items."""
        return scorer(items, explore, width, seed)

    def _on_scale(self, scores: Floats) -> Floats:
        """Map expected scores to the scale of the output; rankings use the scores themselves."""
        return scores

    def _check_parameters(self) -> None:
        """Raise if parameters are invalid."""

    @abstractmethod
    def _parts(self, items: Keys, ratings: Floats, user: int, one: Side) -> Array:
        """Return the contribution of each rating of a user to the score of one item."""

    def _own_state(self) -> tuple[dict[str, Any], files.Arrays]:
        """Return entries of model.json, and arrays, that this kind of model saves in addition."""
        return {}, {}

    def _own_restore(self, about: dict[str, Any], arrays: files.Arrays) -> None:
        """Restore what `_own_state` returned."""

    def _pairs(
        self, users: Any, items: Any, unknown: str
    ) -> tuple[Keys, Side | EntityTable, Keys, Keys]:
        """Return what is needed to score pairs of users and items.

        These are the keys of the users in the model, -1 for unknown ones; the table that has q of
        the users, which is that of the model or of a `Person`; the keys in that table; and the keys
        of the items.
        """
        self._check_fitted()
        item = self.items_.keys(items, unknown)
        if isinstance(users, Person):
            nobody = np.full(len(item), -1)
            return nobody, users.side, np.zeros(len(item), np.int64), item
        user = self.users_.keys(users, unknown)
        if len(user) != len(item) and 1 not in (len(user), len(item)):
            raise ModelError(
                f"there are {len(user)} users and {len(item)} items; give as many of both, or one "
                "of either"
            )
        user, item = np.broadcast_arrays(user, item)
        return user, self.users_, user, item

    def _similar(self, known: EntityTable, others: EntityTable, one: Any, n: int) -> Top:
        self._check_fitted()
        check_whole("n", n, 0)
        key = int(known.keys(one)[0])
        places, similarity, stds = self._similarity(known, others).most(key, n)
        return Top(known.ids[places], similarity, stds)

    def _similarity(self, known: EntityTable, others: EntityTable) -> Similarity:
        """Return similarities of users, or of items, which are cached."""
        kept: dict[str, Similarity] = self.__dict__.setdefault("_likeness", {})
        found = kept.get(known.what)
        if found is None or found.side is not known.side or found.others is not others.side:
            found = kept[known.what] = Similarity.of(known.side, others.side)
        return found

    def _pair_scores(self, users: Side, items: Side) -> tuple[Floats, Floats]:
        """Return expected scores of pairs, before they are clipped, and standard deviations."""
        return pair_scores(users, items, self.offset_)

"""Update a fitted model with more ratings: its posterior is the prior of the new rows.

Only the new rows are read, and only their users and items change. They are updated in turn, as in a
fit to the new rows whose noise is given (kernels/vectors/more_rows.py).

If a pair is rated again, q already contains its first rating. Both ratings have the same precision
tau, so replacing one message by the other leaves tau E[x] (new - old). A row with a fraction of tau
has the same effect if its residual is larger by the inverse of that fraction.

A rating further than CUT standard deviations from its prediction is clipped to that distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.kernels.machine.sorting import by_key, read_only, take
from svmp.kernels.machine.threads import STREAM, share, threads_for, use_threads
from svmp.kernels.vectors import more_rows
from svmp.kernels.vectors.means import Singles, SortedRows, padded
from svmp.ratings import Ratings
from svmp.ratings.table import Ids, keys_of
from svmp.recommend.fold import TOO_FAR
from svmp.recommend.history import History
from svmp.recommend.learn import CUT
from svmp.recommend.network import BIAS_AND_SLOPE, bias_at
from svmp.recommend.schema import LARGE
from svmp.recommend.side import EntityTable, Keys, Side

SWEEPS = 3
"""Sweeps over the new rows: more change held-out errors by less than 0.05%, also those of new users
and items."""
AGAIN = 0.25
"""Fraction of the noise precision that is given to a pair that is rated again."""
APART = 0.1
"""Standard deviation of the random shift of the starting means of new elements, relative to that of
their prior: it breaks the symmetry between factors."""
DAMAGED = "the covariances of this model are not positive definite: fit it again"
KNOWN = np.float32(1e-30)
"""Variance of a slope that is known to be 1."""


class RatingState(NamedTuple):
    """What a model of ratings has learned, and an update changes.

    Attributes
    ----------
    users, items
        Ids and q of all users and items.
    history
        The ratings, by user.
    noise
        Variance of the noise of each user.
    """

    users: EntityTable
    items: EntityTable
    history: History
    noise: NDArray[np.float32]


def update_ratings(
    state: RatingState,
    ratings: Ratings,
    *,
    prior_noise: float,
    offset: float,
    seed: int,
    threads: int | None,
    progress: bool | None,
) -> RatingState:
    """Return the state of a model after more ratings; `prior_noise` is that of new users."""
    (users, of_user), (items, of_item) = (
        enlarged(known, ids)
        for known, ids in ((state.users, ratings.user_ids), (state.items, ratings.item_ids))
    )
    user, item = of_user[ratings.user], of_item[ratings.item]
    new = len(users) - len(state.users)
    noise = np.concatenate([state.noise, np.full(new, prior_noise, np.float32)])
    with np.errstate(all="ignore"), use_threads(threads, progress is not False):
        history = with_rows(state.history, user, item, ratings, len(users))
        who, what = RatedVectors.of(users, user), RatedVectors.of(items, item)
        change = ratings.rating - state.history.ratings_of(user, item)
        again = ~np.isnan(change)
        now, var = _scores(who, what)
        reach = CUT * np.sqrt(var + noise[user])
        target = np.clip(ratings.rating - np.float32(offset), now - reach, now + reach)
        target[again] = now[again] + change[again] / AGAIN
        precision = np.where(again, np.float32(AGAIN), np.float32(1)) / noise[user]
        rng = np.random.default_rng([seed, len(history.item)])
        what.displace(what.keys >= len(state.items), rng)
        rows = who.rows(what, target, precision), what.rows(who, target, precision)
        for _ in range(SWEEPS):
            sweep(who, what, rows)
        return RatingState(who.written(users), what.written(items), history, noise)


@dataclass(frozen=True, eq=False)
class RatedVectors:
    """q of the users, or of the items, that have new rows.

    Attributes
    ----------
    keys, place
        Their keys, and the place of each row in them.
    lines, spreads
        Means, and variances or lower triangles of covariances, as in kernels/vectors/more_rows.py.
    precision, pull
        Prior precision, laid out as `spreads`, and its product with the prior mean.
    full
        Whether there are covariances.
    """

    keys: Keys
    place: NDArray[np.int32]
    lines: Singles
    spreads: Singles
    precision: NDArray[np.float64]
    pull: NDArray[np.float64]
    full: bool

    @classmethod
    def of(cls, known: EntityTable, keys: Keys) -> RatedVectors:
        """Return the vectors of the keys of some rows."""
        place = np.zeros(len(known), np.int32)
        place[keys] = 1
        some = np.flatnonzero(place)
        place[some] = np.arange(len(some), dtype=np.int32)
        side, own = known.side, some
        if not side.joined:
            side, own = with_slopes(side.at(some), known.what), np.arange(len(some))
        width, count = side.width, len(some)
        size = width * (width + 1) // 2 if side.full else width
        lines = np.zeros((count, padded(width)), np.float32)
        spreads = np.zeros((count, padded(size)), np.float32)
        precision, pull = np.empty((count, size)), np.empty((count, width))
        sound = np.ones(count, bool)
        of_side = read_only(side.mean), read_only(side.spread())
        with threads_for(precision.size * width // STREAM):
            found = lines, spreads, precision, pull, sound
            share(more_rows.read_vectors, read_only(own), *of_side, *found)
        if not sound.all():
            raise ModelError(DAMAGED)
        return cls(some, place[keys], lines, spreads, precision, pull, side.full)

    @property
    def width(self) -> int:
        """Number of entries of a vector."""
        return self.pull.shape[1]

    def displace(self, new: NDArray[np.bool_], rng: np.random.Generator) -> None:
        """Move the means of the factors of some vectors at random."""
        factors = self.width - BIAS_AND_SLOPE
        each = np.arange(1, factors + 1).cumsum() - 1 if self.full else slice(factors)
        variances = self.spreads[new][:, each]
        self.lines[new, :factors] += (
            APART * np.sqrt(variances) * rng.standard_normal(variances.shape, np.float32)
        )

    def rows(self, other: RatedVectors, target: Any, precision: Any) -> SortedRows:
        """Return the rows sorted by these vectors."""
        begin, order = by_key(self.place, len(self.keys))
        columns = ((other.place, np.int32), (target, np.float32), (precision, np.float32))
        return SortedRows(begin, *(read_only(take(x, order, dtype)) for x, dtype in columns))

    def update(self, other: RatedVectors, rows: SortedRows) -> None:
        """Update q given q of the other side, in place."""
        sound = np.ones(len(self.keys), bool)
        cost = len(rows.other) * self.spreads.shape[1] + self.precision.size * self.width
        with threads_for(cost // STREAM):
            loop = more_rows.update_vectors if self.full else more_rows.update_entries
            own = self.precision, self.pull, self.lines, self.spreads, sound
            share(loop, rows, other.lines, other.spreads, *own)
        if not (sound.all() and np.isfinite(self.lines).all()):
            raise ModelError(TOO_FAR)

    def written(self, known: EntityTable) -> EntityTable:
        """Return a table with this q, if it could be loaded after being saved."""
        if not np.abs(self.lines).max(initial=0) <= (LARGE**0.5 if known.side.joined else LARGE):
            raise ModelError(TOO_FAR)
        if known.side.joined:
            side = Side(*(np.array(array) for array in known.side.arrays()))
            self._write(self.keys, side)
            return EntityTable(known.what, known.ids, side, known.prior)
        count, width = self.pull.shape
        cov = np.empty((count, width, width) if self.full else (count, width), np.float32)
        none = np.zeros(count, np.float32)
        side = Side(none, none, np.empty((count, width), np.float32), cov)
        self._write(np.arange(count), side)
        return replaced(known, self.keys, without_slopes(side, known.what))

    def _write(self, keys: Keys, side: Side) -> None:
        """Write q to some keys, in place."""
        q = self.lines, self.spreads, side.mean, side.cov.reshape(len(side), -1)
        with threads_for(self.spreads.size // STREAM):
            share(more_rows.write_vectors, read_only(keys), *q)


def sweep(users: RatedVectors, items: RatedVectors, rows: tuple[SortedRows, SortedRows]) -> None:
    """Update the users given the items, and the items given the users."""
    users.update(items, rows[0])
    items.update(users, rows[1])


def _scores(users: RatedVectors, items: RatedVectors) -> tuple[Any, Any]:
    """Return mean and variance of u . v of each row."""
    out = np.empty((len(users.place), 2))
    q = users.lines, users.spreads, items.lines, items.spreads
    with threads_for(len(out) * users.spreads.shape[1] // STREAM):
        share(more_rows.score_rows, users.place, items.place, *q, users.width, users.full, out)
    return out[:, 0], out[:, 1]


def with_slopes(side: Side, what: str) -> Side:
    """Return q with biases among the factors, each next to a slope of the other side that is 1."""
    count, width = side.mean.shape
    bias, shape = bias_at("u" if what == "user" else "v", width), (count, width + BIAS_AND_SLOPE)
    mean, var = np.ones(shape, np.float32), np.full(shape, KNOWN)
    mean[:, :width], mean[:, bias], var[:, bias] = side.mean, side.bias, side.bias_var
    if side.full:
        cov = var[:, :, None] * np.eye(shape[1], dtype=np.float32)
        cov[:, :width, :width] = side.cov
    else:
        cov = var
        cov[:, :width] = side.cov
    none = np.zeros(count, np.float32)
    return Side(none, none, mean, cov)


def without_slopes(side: Side, what: str) -> Side:
    """Undo `with_slopes`."""
    bias = bias_at("u" if what == "user" else "v", side.width - BIAS_AND_SLOPE)
    var = side.cov[:, bias, bias] if side.full else side.cov[:, bias]
    return Side(side.mean[:, bias], var, *side.tastes())


def enlarged(known: EntityTable, ids: Ids) -> tuple[EntityTable, Keys]:
    """Add the ids that are not known yet, with the prior as their q; return the keys of all."""
    keys = keys_of(known.ids, ids)
    new = keys < 0
    count = int(new.sum())
    if not count:
        return known, keys
    keys[new] = len(known) + np.arange(count)
    prior = (np.repeat(array, count, axis=0) for array in known.prior.arrays())
    both = zip(known.side.arrays(), prior, strict=True)
    side = Side(*(np.concatenate(arrays) for arrays in both))
    return EntityTable(known.what, np.concatenate([known.ids, ids[new]]), side, known.prior), keys


def replaced(known: EntityTable, keys: Keys, some: Side) -> EntityTable:
    """Return a table in which the q of some keys is replaced."""
    arrays = [np.array(array) for array in known.side.arrays()]
    for array, new in zip(arrays, some.arrays(), strict=True):
        array[keys] = new
    return EntityTable(known.what, known.ids, Side(*arrays), known.prior)


def with_rows(
    history: History, user: Keys, item: Keys, ratings: Ratings, users: int, add: bool = False
) -> History:
    """Add rows to a history; a pair that exists gets the new rating, or with `add` the sum."""
    rating = ratings.rating
    if add:
        rating = rating + np.nan_to_num(history.ratings_of(user, item))
    return history.then(users, user, item, rating, ratings.time)

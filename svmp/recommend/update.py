"""Update a fitted model with more ratings: its posterior is the prior of the new rows.

Only the new rows are read, and only their users and items change: `Fit.update` with the noise
given.

If a pair is rated again, q already contains its first rating. Both ratings have the same precision
tau, so replacing one message by the other leaves tau E[x] (new - old). A row with a fraction of tau
has the same effect if its residual is larger by the inverse of that fraction.

A rating further than CUT standard deviations from its prediction is clipped to that distance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.inference import updating
from svmp.inference.methods import FullVB
from svmp.ratings import Ratings
from svmp.ratings.table import Ids, keys_of
from svmp.recommend.history import History
from svmp.recommend.learn import CUT
from svmp.recommend.network import continued, earlier_run, sides
from svmp.recommend.side import EntityTable, Keys, Side, score

SWEEPS = 3
"""Sweeps over the new rows: more change held-out errors by less than 0.05%, also those of new users
and items."""
AGAIN = 0.25
"""Fraction of the noise precision that is given to a pair that is rated again."""
APART = 0.1
"""Standard deviation of the starting means of new elements, relative to the prior's: it breaks the
symmetry between factors."""


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
    known = state.users, state.items
    users, items = enlarged(known[0], ratings.user_ids), enlarged(known[1], ratings.item_ids)
    user = keys_of(users.ids, ratings.user_ids)[ratings.user]
    item = keys_of(items.ids, ratings.item_ids)[ratings.item]
    history = joined(state.history, user, item, ratings, len(users))
    new = len(users) - len(known[0])
    noise = np.concatenate([state.noise, np.full(new, prior_noise, np.float32)])
    some_users, u = np.unique(user, return_inverse=True)
    some_items, i = np.unique(item, return_inverse=True)
    centred = ratings.rating - np.float32(offset)
    precision = 1 / noise[user].astype(np.float64)
    change = ratings.rating - state.history.ratings_of(user, item)
    again = ~np.isnan(change)
    now, var = score(users.side.at(user), items.side.at(item))
    reach = CUT * np.sqrt(var + noise[user])
    centred = np.where(again, now + change / AGAIN, np.clip(centred, now - reach, now + reach))
    precision[again] *= AGAIN
    rows = Ratings(u.astype(np.int32), i.astype(np.int32), centred, some_users, some_items)
    before = users.side.at(some_users), items.side.at(some_items)
    anyone = known[0].prior.at(np.zeros(len(some_users), np.int64))
    anything = known[1].prior.at(np.zeros(len(some_items), np.int64))
    network = continued(rows, anyone, anything, precision)
    rng = np.random.default_rng([seed, len(history.item)])
    start = {
        **_start("a", "u", before[0], some_users >= len(known[0]), rng),
        **_start("b", "v", before[1], some_items >= len(known[1]), rng),
    }
    options = {
        "method": FullVB(),
        "init": start,
        "seed": seed,
        "max_sweeps": SWEEPS,
        "bound_every": SWEEPS,
        "tol": 0,
        "threads": threads,
        "progress": progress,
    }
    found = updating.update(earlier_run(*before), network, 0.0, (), options)
    if found.outcome.status == "interrupted":
        raise KeyboardInterrupt
    after = sides(found.posteriors)
    return RatingState(
        replaced(users, some_users, after[0]), replaced(items, some_items, after[1]), history, noise
    )


def enlarged(known: EntityTable, ids: Ids) -> EntityTable:
    """Add the ids that are not known yet, with the prior as their q."""
    new = ids[keys_of(known.ids, ids) < 0]
    if not len(new):
        return known
    prior = (np.repeat(array, len(new), axis=0) for array in known.prior.arrays())
    both = zip(known.side.arrays(), prior, strict=True)
    side = Side(*(np.concatenate(arrays) for arrays in both))
    return EntityTable(known.what, np.concatenate([known.ids, new]), side, known.prior)


def replaced(known: EntityTable, keys: Keys, some: Side) -> EntityTable:
    """Return a table in which the q of some keys is replaced."""
    arrays = [np.array(array) for array in known.side.arrays()]
    for array, new in zip(arrays, some.arrays(), strict=True):
        array[keys] = new
    return EntityTable(known.what, known.ids, Side(*arrays), known.prior)


def joined(
    history: History, user: Keys, item: Keys, ratings: Ratings, users: int, add: bool = False
) -> History:
    """Add rows to a history; a pair that exists gets the new rating, or with `add` the sum.

    New rows without times get the latest time of the history; if the history has no times, those of
    new rows are dropped.
    """
    all_users = np.concatenate([history.user, user.astype(np.int32)])
    all_items = np.concatenate([history.item, item.astype(np.int32)])
    more = ratings.rating
    if add:
        more = more + np.nan_to_num(history.ratings_of(user, item))
    rating = np.concatenate([history.rating, more])
    time = None
    if history.time is not None:
        late = np.full(len(user), history.time.max(initial=0.0))
        time = np.concatenate([history.time, late if ratings.time is None else ratings.time])
    items = int(all_items.max()) + 1
    pair = all_users.astype(np.int64) * items + all_items
    _, last = np.unique(pair[::-1], return_index=True)
    whole = Ratings(all_users, all_items, rating, np.arange(users), np.arange(items), time)
    return History.of(whole.take(np.sort(len(pair) - 1 - last)))


def _start(
    bias: str, factors: str, side: Side, new: NDArray[np.bool_], rng: np.random.Generator
) -> dict[str, Any]:
    """Return a start at q, with random displacements of new elements."""
    mean = side.mean.astype(np.float64)
    variances = np.diagonal(side.cov, axis1=1, axis2=2) if side.full else side.cov
    mean[new] += APART * np.sqrt(variances[new]) * rng.standard_normal(mean[new].shape)
    of_bias = {} if side.joined else {bias: side.bias}
    return {**of_bias, factors: mean} if side.width else of_bias

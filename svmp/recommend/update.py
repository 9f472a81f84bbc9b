"""More ratings for a model that is fitted: what it believes is the prior of what comes.

Only the new rows are read, and only the users and items that they name are touched.

A pair that is rated again has its first rating in q already. Both have the same precision tau, so
that of the two messages, one out and one in, only the pull tau E[x] (new - old) is left. A row with
a small share of tau pulls as much if it lies as many times as far from what is predicted.

A rating that is further than CUT standard deviations from its prediction is brought to there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from svmp.inference.fit import fit
from svmp.inference.selection import FullVB
from svmp.ratings import Ratings
from svmp.ratings.table import Ids, keys_of
from svmp.recommend.history import History
from svmp.recommend.learn import CUT
from svmp.recommend.network import continued, sides
from svmp.recommend.side import EntityTable, Keys, Side, score

if TYPE_CHECKING:
    from svmp.recommend.rating import RatingModel

SWEEPS = 3
"""Sweeps over the new rows: more change held-out errors by less than a twentieth of a percent, also
those of new users and items."""
AGAIN = 0.25
"""The share of the precision with which a pair counts that is rated again."""
APART = 0.1
"""How far new elements start from 0, in standard deviations, so that no two factors are alike."""


def taken_in(model: RatingModel, ratings: Ratings) -> None:
    """Let a model learn from more ratings."""
    known = model.users_, model.items_
    users, items = enlarged(known[0], ratings.user_ids), enlarged(known[1], ratings.item_ids)
    user = keys_of(users.ids, ratings.user_ids)[ratings.user]
    item = keys_of(items.ids, ratings.item_ids)[ratings.item]
    history = joined(model.history_, user, item, ratings, len(users))
    new = len(users) - len(known[0])
    noise = np.concatenate([model.noise_, np.full(new, model.prior_noise_, np.float32)])
    some_users, u = np.unique(user, return_inverse=True)
    some_items, i = np.unique(item, return_inverse=True)
    centred = ratings.rating - np.float32(model.offset_)
    precision = 1 / noise[user].astype(np.float64)
    change = ratings.rating - model.history_.ratings_of(user, item)
    again = ~np.isnan(change)
    now, var = score(users.side.at(user), items.side.at(item))
    reach = CUT * np.sqrt(var + noise[user])
    centred = np.where(again, now + change / AGAIN, np.clip(centred, now - reach, now + reach))
    precision[again] *= AGAIN
    rows = Ratings(u.astype(np.int32), i.astype(np.int32), centred, some_users, some_items)
    before = users.side.at(some_users), items.side.at(some_items)
    network = continued(rows, *before, precision)
    rng = np.random.default_rng([model.seed_, len(history.item)])
    start = {
        **_start("a", "u", before[0], some_users >= len(known[0]), rng),
        **_start("b", "v", before[1], some_items >= len(known[1]), rng),
    }
    q = fit(
        network,
        FullVB(),
        init=start,
        seed=model.seed_,
        max_sweeps=SWEEPS,
        bound_every=SWEEPS,
        tol=0,
        threads=model.threads,
        progress=model.progress,
    )
    if q.status == "interrupted":
        raise KeyboardInterrupt
    after = sides(q.posteriors)
    model.users_ = replaced(users, some_users, after[0])
    model.items_ = replaced(items, some_items, after[1])
    model.history_, model.noise_ = history, noise


def enlarged(known: EntityTable, ids: Ids) -> EntityTable:
    """Add those that are not known yet, as they are before any data."""
    new = ids[keys_of(known.ids, ids) < 0]
    if not len(new):
        return known
    prior = (np.repeat(array, len(new), axis=0) for array in known.prior.arrays())
    both = zip(known.side.arrays(), prior, strict=True)
    side = Side(*(np.concatenate(arrays) for arrays in both))
    return EntityTable(known.what, np.concatenate([known.ids, new]), side, known.prior)


def replaced(known: EntityTable, keys: Keys, some: Side) -> EntityTable:
    """Put in what has become of some."""
    arrays = [np.array(array) for array in known.side.arrays()]
    for array, new in zip(arrays, some.arrays(), strict=True):
        array[keys] = new
    return EntityTable(known.what, known.ids, Side(*arrays), known.prior)


def joined(
    history: History, user: Keys, item: Keys, ratings: Ratings, users: int, add: bool = False
) -> History:
    """Add rows to a history; a pair that is there already gets the new rating, or the sum.

    Rows without times are as late as the latest before; without times before, none are kept.
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
    """Start where q is; new elements a little apart."""
    mean = side.mean.astype(np.float64)
    variances = np.diagonal(side.cov, axis1=1, axis2=2) if side.full else side.cov
    mean[new] += APART * np.sqrt(variances[new]) * rng.standard_normal(mean[new].shape)
    return {bias: side.bias, factors: mean} if side.factors else {bias: side.bias}

"""Negatives of an update: items that users considered and did not take, given more events.

In a fit to all events, a user with d events has `ratio` d negatives, drawn with odds pi. With new
events these become d' and pi', and the expected number of additional negatives is `ratio` times

    d' pi' - d pi  =  (d' - d) pi'  +  d (pi' - pi).

The first term concerns the users of the new events; where the second term is negative, it reduces
the first. The second term concerns all users. It matters most for new items, which were passed over
by everybody who did not take them: without it they would have events and hardly any negatives, and
would be ranked at the top of every list.

Rows that q already contains cannot be removed. So an item whose odds have fallen is updated by no
more new rows than its total in the formula; in the other rows only the user is updated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from svmp.kernels.machine.threads import share
from svmp.recommend.draw_graph import Odds, draw_graph, odds
from svmp.recommend.event_state import EventSettings, EventState
from svmp.recommend.history import History
from svmp.recommend.side import Floats, Keys

STEPS = 4
"""Newton steps, after which the relative error is below 0.001."""


@dataclass(frozen=True, eq=False)
class OwnNegatives:
    """The first term: negatives of the users of the new events.

    Attributes
    ----------
    users
        Their keys.
    own, items, ends
        User `users[m]` took `items[own[m] : own[m + 1]]`, and has the rows `ends[m] : ends[m + 1]`
        including the negatives drawn now.
    table
        Alias table of the odds of all items.
    growth
        Ratio of earlier to new events of each user.
    rise
        Relative increase of the odds of each item, at most 0.
    most
        Maximum number of rows that may update each item.
    """

    users: Keys
    own: Keys
    items: NDArray[np.int32]
    ends: Keys
    table: Odds
    growth: Floats
    rise: Floats
    most: Floats

    def draw(self, seed: int, iteration: int, rng: np.random.Generator) -> tuple[Keys, Keys]:
        """Return users and items of rows; an item that the row does not update is given as ~key."""
        out = np.empty(self.ends[-1], np.int32)
        share(draw_graph, seed, iteration, self.table, self.own, self.items, self.ends, out)
        place = np.repeat(np.arange(len(self.users)), np.diff(self.ends))
        other = np.arange(len(out)) - self.ends[place] >= np.diff(self.own)[place]
        kept = other & (rng.random(len(out)) < 1 + self.growth[place] * self.rise[out])
        item = out[kept].astype(np.int64)
        count = np.bincount(item, minlength=len(self.rise))
        learns = rng.random(len(item)) * count[item] < self.most[item]
        return self.users[place[kept]], np.where(learns, item, ~item)


@dataclass(frozen=True, eq=False)
class OtherNegatives:
    """The second term: additional negatives of all users, for items whose odds have risen.

    Attributes
    ----------
    ends
        Cumulative sum over users of their drawing times, see `draw_times`.
    expected
        Expected number of rows of each item.
    taken
        Events of such items, as user * items + item; sorted.
    named
        Whether each user has new events.
    share
        Share of the rows of each item that update such users; the others are in q already.
    """

    ends: Floats
    expected: Floats
    taken: Keys
    named: NDArray[np.bool_]
    share: Floats

    def draw(self, rng: np.random.Generator, user: Keys, item: Keys) -> tuple[Keys, Keys]:
        """Return users and items of rows; a user whom the row does not update is given as ~key.

        `user` and `item` are the rows of the first term, which are not repeated.
        """
        items = len(self.expected)
        count = np.floor(self.expected + rng.random(items)).astype(np.int64)
        first = np.sort(user * items + np.where(item < 0, ~item, item))
        user = np.searchsorted(self.ends, self.ends[-1] * rng.random(count.sum()), "right")
        pairs = np.sort(user * items + np.repeat(np.arange(items), count))
        again = np.append(False, pairs[1:] == pairs[:-1])[: len(pairs)]
        pairs = pairs[~again & ~_among(pairs, self.taken) & ~_among(pairs, first)]
        user, item = np.divmod(pairs, items)
        learns = self.named[user] & (rng.random(len(user)) < self.share[item])
        return np.where(learns, user, ~user), item


@dataclass(frozen=True, eq=False)
class NegativeSampler:
    """Draws the negatives of an update: both terms."""

    first: OwnNegatives
    second: OtherNegatives

    @classmethod
    def of(
        cls,
        state: EventState,
        settings: EventSettings,
        history: History,
        now: Floats,
        user: Keys,
        afresh: NDArray[np.bool_],
    ) -> NegativeSampler:
        """Compare the events and odds of a model with the history and odds `now`.

        `user` has the users of the new events, and `afresh` marks items that are learned afresh:
        these get all rows that they would have in a fit.
        """
        users, new = np.unique(user, return_counts=True)
        begin, rows = history.rows_of(users)
        old = np.concatenate([[0], np.cumsum(settings.times(state.history.rating))])
        events = np.zeros(len(history.begin) - 1, np.int64)
        events[: len(state.users)] = np.diff(old[state.history.begin])
        change = now - np.pad(state.odds, (0, len(now) - len(state.odds)))
        left = np.maximum(len(now) - np.diff(begin), 0) // 2
        others = np.minimum(np.maximum(np.rint(settings.ratio * new), 1), left).astype(np.int64)
        total = settings.ratio * (len(user) * now + events.sum() * change)
        first = OwnNegatives(
            users,
            begin,
            history.item[rows],
            np.concatenate([[0], np.cumsum(np.diff(begin) + others)]),
            odds(now),
            events[users] / new,
            np.minimum(change / now, 0),
            np.where((change < 0) & ~afresh, total, np.inf),
        )
        ends = np.cumsum(draw_times(history, events, now, settings.ratio))
        rows = ends[-1] * np.where(afresh, now, np.maximum(change, 0))
        some = rows[history.item] > 0
        taken = history.user[some].astype(np.int64) * len(now) + history.item[some]
        named = np.zeros(len(events), bool)
        named[users] = True
        known = np.where(afresh, np.clip(change / now, 0, 1), 1.0)
        second = OtherNegatives(ends, rows, np.sort(taken), named, known)
        return cls(first, second)

    def draw(self, seed: int, iteration: int) -> tuple[Keys, Keys]:
        """Return users and items of rows, given as ~key where the row does not update them."""
        rng = np.random.default_rng([seed, iteration])
        first = self.first.draw(seed, -iteration, rng)
        second = self.second.draw(rng, *first)
        return np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]])


def _among(values: Keys, ordered: Keys) -> NDArray[np.bool_]:
    """Return which values are contained in a sorted array."""
    if not len(ordered):
        return np.zeros(len(values), bool)
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.asarray(ordered[at] == values)


def draw_times(history: History, events: Keys, odds: Floats, ratio: float) -> Floats:
    """Return how long each user draws negatives, if item i arrives after a time Exp(odds_i).

    Drawing k items without replacement is equivalent to waiting for k arrivals among the items that
    the user did not take. Item i has arrived by time t with probability 1 - exp(-t odds_i); t is
    the time at which these probabilities add up to k, found by Newton's method from below.
    """
    left = np.maximum(len(odds) - np.diff(history.begin), 0) // 2
    time = wanted = np.minimum(np.rint(ratio * events), left).astype(np.float64)
    rates, many = np.unique(odds, return_counts=True)
    grid = np.append(0, np.geomspace(0.5, 50 * max(time.max(), 1), 200))
    absent = np.exp(-np.outer(grid, rates))
    come, speed = (1 - absent) @ many, absent @ (many * rates)
    user, rate = history.user, odds[history.item]
    for _ in range(STEPS):
        own = np.exp(-time[user] * rate)
        there = np.interp(time, grid, come) - np.bincount(user, 1 - own, len(time))
        slope = np.interp(time, grid, speed) - np.bincount(user, own * rate, len(time))
        time = time + np.maximum(wanted - there, 0) / np.maximum(slope, 1e-9)
    return time

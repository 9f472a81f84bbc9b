"""Which items were considered and passed by, once there are more events.

In a fit to all events a user of d events considers `ratio` d others, drawn with odds pi. With new
events these become d' and pi', and the difference is `ratio` times

    d' pi' - d pi  =  (d' - d) pi'  +  d (pi' - pi).

The first part is that of the users whom the new events name; where the second is negative, it takes
some of that away. The second part is that of all users. It matters most to new items, which were
passed by everybody who did not take them: without it they would have events and little else, and
stand at the top of every list.

Rows that are in q already cannot be taken out again. So an item whose odds have fallen learns from
no more new rows than make up its total; in others it is only there for users to learn from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from svmp.kernels.machine.threads import share
from svmp.recommend.draw_graph import Odds, draw_graph, odds
from svmp.recommend.history import History
from svmp.recommend.side import Floats, Keys

if TYPE_CHECKING:
    from svmp.recommend.events import EventModel

STEPS = 4
"""Of Newton's method, which leave an error of less than a thousandth."""


@dataclass(frozen=True, eq=False)
class OwnNegatives:
    """The first part: what the users consider whom the new events name.

    Attributes
    ----------
    users
        Their keys.
    own, items, ends
        User `users[m]` took `items[own[m] : own[m + 1]]`, and with the others that are drawn now
        has the rows `ends[m] : ends[m + 1]`.
    table
        The odds of all items.
    growth
        Events of each user before, for each new one.
    rise
        By how much the odds of each item have risen, as a share of what they are now.
    most
        From how many rows each item may learn.
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
        """Return users and items of rows, the item as ~key where it is not to learn."""
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
    """The second part: who else passed by the items whose odds have risen.

    Attributes
    ----------
    ends
        Time for which users draw, see `draw_times`, added up from the first to each.
    expected
        Number of rows of each item.
    taken
        Pairs of such items, as user * items + item, that are events; sorted.
    named
        Of each user, whether the new events name them.
    share
        Of each item, the share of the rows that such users learn from: the rest they know.
    """

    ends: Floats
    expected: Floats
    taken: Keys
    named: NDArray[np.bool_]
    share: Floats

    def draw(self, rng: np.random.Generator, user: Keys, item: Keys) -> tuple[Keys, Keys]:
        """Return users and items of rows, the user as ~key where they are not to learn.

        Pairs that are in the first part are left out.
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
    """Both parts together."""

    first: OwnNegatives
    second: OtherNegatives

    @classmethod
    def of(
        cls,
        model: EventModel,
        history: History,
        now: Floats,
        user: Keys,
        afresh: NDArray[np.bool_],
    ) -> NegativeSampler:
        """Compare the events and odds of a model with those of now.

        The users of the new events are given, and which items are learned afresh: these read all
        rows that they would have in a fit.
        """
        users, new = np.unique(user, return_counts=True)
        begin, rows = history.rows_of(users)
        old = np.concatenate([[0], np.cumsum(model._times(model.history_.rating))])
        events = np.zeros(len(history.begin) - 1, np.int64)
        events[: len(model.users_)] = np.diff(old[model.history_.begin])
        change = now - np.pad(model.odds_, (0, len(now) - len(model.odds_)))
        left = np.maximum(len(now) - np.diff(begin), 0) // 2
        others = np.minimum(np.maximum(np.rint(model.ratio * new), 1), left).astype(np.int64)
        total = model.ratio * (len(user) * now + events.sum() * change)
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
        ends = np.cumsum(draw_times(history, events, now, model.ratio))
        rows = ends[-1] * np.where(afresh, now, np.maximum(change, 0))
        some = rows[history.item] > 0
        taken = history.user[some].astype(np.int64) * len(now) + history.item[some]
        named = np.zeros(len(events), bool)
        named[users] = True
        known = np.where(afresh, np.clip(change / now, 0, 1), 1.0)
        second = OtherNegatives(ends, rows, np.sort(taken), named, known)
        return cls(first, second)

    def draw(self, seed: int, iteration: int) -> tuple[Keys, Keys]:
        """Return users and items of rows, as ~key where one is not to learn."""
        rng = np.random.default_rng([seed, iteration])
        first = self.first.draw(seed, -iteration, rng)
        second = self.second.draw(rng, *first)
        return np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]])


def _among(values: Keys, ordered: Keys) -> NDArray[np.bool_]:
    """Return which values are among some that are sorted."""
    if not len(ordered):
        return np.zeros(len(values), bool)
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.asarray(ordered[at] == values)


def draw_times(history: History, events: Keys, odds: Floats, ratio: float) -> Floats:
    """Return for how long each user draws others, if item i comes after a time of Exp(odds_i).

    To draw without repeats until there are enough is to wait until so many of the items that are
    not the user's own have come. After a time t an item has come with probability 1 - exp(-t odds),
    and t is such that these add up to what is wanted. By Newton's method, from below.
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

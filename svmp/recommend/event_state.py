"""State and settings of a model of events, which fits, updates and fold-in share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.errors import RatingsError, argument
from svmp.recommend.history import History
from svmp.recommend.side import EntityTable, Keys

MOST_EVENTS = 2**31
"""Maximum number of events of a model."""


class EventState(NamedTuple):
    """What a model of events has learned.

    Attributes
    ----------
    users, items
        Ids and q of all users and items.
    history
        The events, by user.
    odds
        Odds of each item as a negative, with a sum of 1.
    learned
        Number of events of each item when it was last learned from all of them.
    """

    users: EntityTable
    items: EntityTable
    history: History
    odds: NDArray[np.float64]
    learned: Keys


class EventSettings(NamedTuple):
    """Parameters of `EventModel` by the same names, and the constant term of its logits."""

    ratio: float
    power: float
    iterations: int
    hold: int
    kappa: float
    counts: bool
    seed: int
    threads: int | None
    offset: float

    def times(self, ratings: Any) -> Keys:
        """Return how often each event counts: the rating if the model counts, else once."""
        return event_times(ratings, self.counts)


def event_times(ratings: Any, counts: bool) -> Keys:
    """Return how often each event counts: the rating if `counts`, else once.

    >>> event_times([2, 1, 3], counts=True)
    array([2, 1, 3])
    """
    if not counts:
        return np.ones(len(ratings), np.int64)
    whole = np.rint(ratings)
    if not np.array_equal(whole, ratings) or (whole < 1).any():
        counted = argument("counts", "True", "")
        raise RatingsError(f"with {counted} a rating is a count: 1, 2, 3, ...")
    if whole.sum(dtype=np.float64) >= MOST_EVENTS:
        raise RatingsError(f"the counts add up to more than {MOST_EVENTS:,} events")
    return np.asarray(whole, np.int64)

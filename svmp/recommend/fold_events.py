"""Fold-in for events: the posterior of one user's factors given q of the items.

The negatives of the user are drawn several times and weighted down accordingly, to approximate the
mean over graphs. A row acts as a rating (x - 1/2) / w with precision w, where w depends on the
moments of its logit (Jaakkola and Jordan's bound). So w and the posterior, which is that of fold.py
given w, are updated in turn until they no longer change.
"""

from __future__ import annotations

import numpy as np

from svmp.factors.bernoulli_logit import weight
from svmp.recommend.event_state import EventSettings, EventState
from svmp.recommend.fold import UserPosterior
from svmp.recommend.graph import EventGraph
from svmp.recommend.side import Keys, Side, score

DRAWS = 4
"""Draws of the negatives."""
PASSES = 50
TOLERANCE = 1e-4
"""The iteration has converged when no mean changes by more than this."""


def fold_in_events(
    state: EventState, settings: EventSettings, items: Keys, times: Keys
) -> tuple[Side, UserPosterior]:
    """Return q of a user who took items, `times` times each, and the posterior it comes from."""
    prior = state.users.prior
    begin = np.array([0, times.sum()])
    events = EventGraph(begin, np.repeat(items, times).astype(np.int32), state.odds, settings.ratio)
    draws = [events.draw(settings.seed, -t)[begin[1] :] for t in range(1, DRAWS + 1)]
    others = np.concatenate(draws).astype(np.int64)
    rows = state.items.at(np.concatenate([items, others]))
    taken = np.repeat([1.0, 0.0], [len(items), len(others)])
    count = np.concatenate([times, np.full(len(others), 1 / DRAWS)])
    user = prior
    for _ in range(PASSES):
        mean, var = score(user.at(np.zeros(len(rows), np.int64)), rows)
        w = weight(np.sqrt((mean + settings.offset) ** 2 + var).astype(np.float64))
        target = (taken - 0.5) / w - settings.offset
        posterior = UserPosterior.of(rows, target, count * w, prior)
        before, user = user, posterior.side()
        if np.abs(user.mean - before.mean).max(initial=0) <= TOLERANCE:
            break
    return user, posterior
